// A histogram of message delays. Every percentile is accurate to a tenth of its value.

/** Buckets: eight for each doubling from one microsecond on, up to about 19 hours. */
const BUCKETS_PER_DOUBLING = 8
const DOUBLINGS = 36
const NS_PER_MICROSECOND = 1_000
const MICROSECONDS_PER_MS = 1_000

/** The maximum lag of a bucket, in milliseconds. */
export function lagOfBucketMs(bucket: number): number {
  return 2 ** ((bucket + 1) / BUCKETS_PER_DOUBLING) / MICROSECONDS_PER_MS
}

export class LagHistogram {
  #counts: Uint32Array | undefined
  count = 0

  /** Continues from the result of an earlier `counts()`. */
  static of(counts: Uint32Array | undefined): LagHistogram {
    const histogram = new LagHistogram()
    histogram.#counts = counts?.slice()
    histogram.count = counts?.reduce((sum, count) => sum + count, 0) ?? 0
    return histogram
  }

  /** The counts by bucket; undefined if nothing was ever counted. */
  counts(): Uint32Array | undefined {
    return this.#counts?.slice()
  }

  /** Adds a lag. A lag below one microsecond, which comes from differing clocks, counts as one microsecond. */
  add(ns: number): void {
    this.#counts ??= new Uint32Array(BUCKETS_PER_DOUBLING * DOUBLINGS)
    const bucket =
      ns <= NS_PER_MICROSECOND ? 0 : Math.floor(Math.log2(ns / NS_PER_MICROSECOND) * BUCKETS_PER_DOUBLING)
    this.#counts[Math.min(bucket, this.#counts.length - 1)]!++
    this.count++
  }

  /** The bucket that `share` (0 to 1) of the messages do not exceed; undefined without messages. */
  percentileBucket(share: number): number | undefined {
    if (this.count === 0) return undefined
    let left = Math.ceil(share * this.count)
    for (const [bucket, count] of this.#counts!.entries()) {
      left -= count
      if (left <= 0) return bucket
    }
    return undefined
  }

  /** The lag in milliseconds that `share` of the messages do not exceed; undefined without messages. */
  percentileMs(share: number): number | undefined {
    const bucket = this.percentileBucket(share)
    return bucket === undefined ? undefined : lagOfBucketMs(bucket)
  }

  clear(): void {
    this.#counts?.fill(0)
    this.count = 0
  }
}
