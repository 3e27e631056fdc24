// Looks at what threads wait for, and gives up on files that do not answer: a share that is gone. The request that waits
// is told, its thread is left to the kernel and replaced, and until it comes back no other thread asks for that file.

import { FILE_ANSWER_MS_MAX, FileWatch } from '../../shared/file-watch.ts'

/** So many looks are taken while a file may still answer. */
const LOOKS = 20

export class SilentFiles {
  readonly #boundMs: number
  readonly #followed = new Map<FileWatch, (name: string) => void>()
  /** Threads that wait, by the file. */
  readonly #waiting = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(boundMs = FILE_ANSWER_MS_MAX) {
    this.#boundMs = boundMs
  }

  /** Files that somebody waits for who was given up. */
  get names(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  get waitingCount(): number {
    let count = 0
    for (const each of this.#waiting.values()) count += each
    return count
  }

  /** Calls `onSilent` once when the request of this word waits too long for a file. Stops with what is returned. */
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

  /** Somebody who was given up waits for the file, until what is returned is called. */
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
