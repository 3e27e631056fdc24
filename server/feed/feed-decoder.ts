// What the import needs of an exchange's decoder: frames in, records of book events out, each with the span of the feed
// that it came with. What a record does to a book is not the decoder's affair: that is folded when everything is known
// that belongs to it (server/lake/market-fold.ts).

import type { BookEvent } from '../lake/series-recording.ts'
import { FEED_LEFT, STRAND_OVER } from '../lake/market-fold.ts'
import { MARKET_ID_BYTES_MAX } from '../../shared/limits.ts'
import { EVENT_CLEAR, EVENT_SET, SIDE_BID } from '../../shared/lob-v1.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import { BadLineError } from './bad-line.ts'
import type { FeedRun } from './feed-run.ts'
import type { FeedSpans } from './feed-spans.ts'
import type { LeftOut } from './message-clock-options.ts'
import type { RunEnd } from './read-span.ts'
import type { ImportTally } from './import-tally.ts'
import { shown } from './bad-line.ts'
import type { RecordedMessage } from './frame.ts'

/** Where records go: the recording writer, or a test's array. */
export interface BookEventSink {
  append(series: string, event: BookEvent): void
}

/** As the report names messages that are left out. */
export const LEFT_OUT: Readonly<Record<LeftOut, string>> = {
  timeless: 'none in its connection has a time',
  'out of order':
    'its time fits none of those around it, and the file’s lines are not in the order of their receipt',
}

export interface FeedDecoder {
  /** A new file begins; `name` is for messages. */
  startFile(name: string): void
  /** One message in order of arrival. Throws BadLineError. */
  decode(message: RecordedMessage): void
  /** A message could not be read and is skipped: what it would have changed is unknown. */
  skipBadLine(): void
  /** The file ends: what waited for a time is taken. */
  finishFile(): void
}

/** A decoder that can be put away between two messages and go on later. */
export interface ResumableDecoder extends FeedDecoder {
  /** Plain data for the constructor's option `state`. */
  state(): unknown
  forgetMarkets(): void
}

export interface FeedDecoderOptions {
  readonly sink: BookEventSink
  readonly spans: FeedSpans
  readonly tally: ImportTally
  /** Files every market under this series instead of its own. */
  readonly series?: string | undefined
  /** The series of single markets, where the recorder knows it; before `series`. */
  readonly seriesOf?: ((marketId: string) => string | undefined) | undefined
  /** The recorder's own log: receive times are right, and a run that ends is over at once. */
  readonly isLive?: boolean | undefined
}

/** When a message happened and arrived (ns), and its number, 0 where it has none. */
export interface Stamp {
  readonly ts: bigint
  readonly recvTs: bigint
  readonly seq: number
}

/** Puts a run's records into the sink. */
export class RunRecords {
  readonly #sink: BookEventSink
  readonly #tally: ImportTally
  readonly #isLive: boolean
  readonly #seriesOf: (marketId: string) => string
  readonly #seriesById = new Map<string, string>()

  constructor(options: FeedDecoderOptions, ownSeriesOf: (marketId: string) => string) {
    const { sink, tally, series, seriesOf, isLive = false } = options
    this.#sink = sink
    this.#tally = tally
    this.#isLive = isLive
    this.#seriesOf = (id) => seriesOf?.(id) ?? series ?? ownSeriesOf(id)
  }

  /** Throws BadLineError for an id that the lake cannot hold. */
  checkId(id: string): void {
    if (this.#seriesById.has(id)) return
    const bytes = Buffer.byteLength(id)
    if (bytes === 0 || bytes > MARKET_ID_BYTES_MAX || !isSeriesName(this.#seriesOf(id))) {
      throw new BadLineError(`no market id: ${shown(id)}`)
    }
  }

  /** The whole book anew: a `clear` and its levels. */
  snapshot(run: FeedRun, id: string, stamp: Stamp, levels: readonly BookLevel[]): void {
    this.#tally.snapshots++
    this.level(run, id, stamp, EVENT_CLEAR, { side: SIDE_BID, price: 0, qty: 0 })
    for (const level of levels) if (level.qty !== 0) this.level(run, id, stamp, EVENT_SET, level)
  }

  level(run: FeedRun, id: string, { ts, recvTs, seq }: Stamp, event: number, level: BookLevel): void {
    const series = this.#open(run, id, ts)
    const { side, price, qty } = level
    this.#sink.append(series, {
      marketId: id,
      ts,
      recvTs,
      seq: BigInt(seq),
      event,
      side,
      price,
      qty,
      span: run.number,
    })
    this.#tally.events++
  }

  /** Whether the run speaks of the market. */
  follows(run: FeedRun, id: string): boolean {
    return run.has(this.#seriesNow(id), id)
  }

  /** The run speaks of the market no more. */
  leave(run: FeedRun, id: string, { ts, recvTs, seq }: Stamp): void {
    const series = this.#seriesNow(id)
    if (!run.has(series, id)) return
    const event = { marketId: id, ts, recvTs, seq: BigInt(seq), event: FEED_LEFT, side: SIDE_BID }
    this.#sink.append(series, { ...event, price: 0, qty: 0, span: run.number })
    run.removeMarket(series, id)
    this.#tally.countGap('no longer followed')
  }

  /** A run is over. An import only knows what that means when everything is read. */
  end(run: FeedRun, reason: RunEnd): void {
    run.end(reason)
    if (!this.#isLive) return
    for (const [series, id] of run.markets()) {
      this.#sink.append(series, overRecord(run, id))
      if (reason !== 'end of file') this.#tally.countGap(reason)
    }
  }

  /** Markets that are over leave the memory, or it would grow for ever; they are new if they come back. */
  forgetMarkets(): void {
    this.#seriesById.clear()
  }

  // A market that has said nothing since midnight is forgotten here, and the run still speaks of it.
  #seriesNow(id: string): string {
    return this.#seriesById.get(id) ?? this.#seriesOf(id)
  }

  #open(run: FeedRun, id: string, ts: bigint): string {
    let series = this.#seriesById.get(id)
    if (series === undefined) {
      series = this.#seriesOf(id)
      this.#seriesById.set(id, series)
    }
    run.addMarket(series, id, ts)
    return series
  }
}

function overRecord(run: FeedRun, id: string): BookEvent {
  const ts = run.lastTs + 1n
  const place = { recvTs: run.lastRecvTs, seq: BigInt(run.lastSeq), span: run.number }
  return { marketId: id, ts, ...place, event: STRAND_OVER, side: SIDE_BID, price: 0, qty: 0 }
}
