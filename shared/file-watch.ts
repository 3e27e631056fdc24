// A thread marks each file access in shared memory, and clears the mark afterwards. If a network share is gone, the thread blocks
// in the kernel and cannot be interrupted, so another thread must detect it by the mark.

const NAME_BYTES_MAX = 1_024
const LENGTH_OFFSET = 8
const BEGUN_OFFSET = 12
const NAME_OFFSET = 16

/** How long a file access may block a request. A disk that spins up takes a few seconds. */
export const FILE_ANSWER_MS_MAX = 10_000

export function fileWatchMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(NAME_OFFSET + NAME_BYTES_MAX)
}

/** The mark of one request, used by both threads. */
export class FileWatch {
  readonly #sinceMs: Float64Array
  readonly #length: Int32Array
  readonly #begun: Int32Array
  readonly #name: Buffer

  constructor(memory: SharedArrayBuffer) {
    this.#sinceMs = new Float64Array(memory, 0, 1)
    this.#length = new Int32Array(memory, LENGTH_OFFSET, 1)
    this.#begun = new Int32Array(memory, BEGUN_OFFSET, 1)
    this.#name = Buffer.from(memory, NAME_OFFSET, NAME_BYTES_MAX)
  }

  /** Whether a thread has begun the request. */
  get hasBegun(): boolean {
    return Atomics.load(this.#begun, 0) === 1
  }

  markBegun(): void {
    Atomics.store(this.#begun, 0, 1)
  }

  begin(name: string): void {
    Atomics.store(this.#length, 0, this.#name.write(name))
    this.#sinceMs[0] = Date.now()
  }

  end(): void {
    this.#sinceMs[0] = 0
  }

  /** The file that has not answered for `boundMs`. */
  silentFile(boundMs: number): string | undefined {
    const sinceMs = this.#sinceMs[0] ?? 0
    if (sinceMs === 0 || Date.now() - sinceMs < boundMs) return undefined
    return this.#name.toString('utf8', 0, Atomics.load(this.#length, 0))
  }
}
