// What a thread says before it asks the system for a file, and takes back when it has its answer: a share that is gone
// keeps the thread waiting in the kernel, where nobody can reach it, so somebody else has to look.

const NAME_BYTES_MAX = 1_024
const LENGTH_OFFSET = 8
const BEGUN_OFFSET = 12
const NAME_OFFSET = 16

/** How long a file may keep a request waiting. A disk that has to spin up takes a few seconds. */
export const FILE_ANSWER_MS_MAX = 10_000

export function fileWatchMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(NAME_OFFSET + NAME_BYTES_MAX)
}

/** One request's word, seen from both threads. */
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

  /** Whether a thread has taken the request up. */
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
