// Watches what threads wait for, and gives up files that do not respond, for example on a lost network share. The waiting request
// fails; its blocked thread is abandoned and replaced. Until the thread comes back, no other thread opens that file.

import { ApiError } from '../../shared/errors.ts'
import { FILE_ANSWER_MS_MAX, FileWatch } from '../../shared/file-watch.ts'

/** Checks within the time that a file has to respond. */
const LOOKS = 20

export class SilentFiles {
  readonly #boundMs: number
  readonly #followed = new Map<FileWatch, (name: string) => void>()
  /** Number of abandoned threads that wait, by file. */
  readonly #waiting = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(boundMs = FILE_ANSWER_MS_MAX) {
    this.#boundMs = boundMs
  }

  /** Files that abandoned threads wait for. */
  get names(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  get waitingCount(): number {
    return [...this.#waiting.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Refuses a request that could block one more thread on an unresponsive lake. @throws {ApiError} `lake_unavailable` */
  assertBelow(lostThreadsMax: number): void {
    if (this.waitingCount < lostThreadsMax) return
    const [name] = this.names
    throw new ApiError('lake_unavailable', `The lake cannot be read: ${name} and others do not answer.`)
  }

  /** Calls `onSilent` once when the request of this memory waits too long for a file. The returned function stops it. */
  follow(memory: SharedArrayBuffer, onSilent: (name: string) => void): () => void {
    const watch = new FileWatch(memory)
    this.#followed.set(watch, onSilent)
    this.#timer ??= setInterval(() => this.#look(), Math.ceil(this.#boundMs / LOOKS)).unref()
    return () => {
      this.#followed.delete(watch)
      if (this.#followed.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  /** Notes an abandoned thread that waits for the file, until the returned function is called. */
  note(name: string): () => void {
    this.#waiting.set(name, (this.#waiting.get(name) ?? 0) + 1)
    return () => {
      const count = (this.#waiting.get(name) ?? 0) - 1
      if (count > 0) this.#waiting.set(name, count)
      else this.#waiting.delete(name)
    }
  }

  #look(): void {
    for (const [watch, onSilent] of this.#followed) {
      const name = watch.silentFile(this.#boundMs)
      if (name === undefined) continue
      this.#followed.delete(watch)
      onSilent(name)
    }
  }
}
