// The disk on which answers are kept, asked by few at a time. Each question holds one of the threads that the whole
// process has for files and compression until the disk answers: one that has fallen silent must not get them all.

import type { Logger } from 'pino'
import { withinTime } from '../../shared/within-time.ts'

/** Of the four threads that Node has. The questions that wait are those of the bodies that are read and written. */
const QUESTIONS_MAX = 2

/** Time in which the last questions of a server that ends are answered, or never will be. */
const REST_MS_MAX = 2_000

/** The disk has not answered in time; it may yet. */
export class DiskSilent extends Error {}

export class KeptDisk {
  readonly #directory: string
  readonly #logger: Logger
  readonly #waiting: (() => void)[] = []
  #onRest: () => void = () => {}
  #asked = 0
  #unanswered = 0

  constructor(directory: string, logger: Logger) {
    this.#directory = directory
    this.#logger = logger
  }

  /** Whether something was not answered in time, and is not answered yet: then nothing new is to be asked. */
  get isSilent(): boolean {
    return this.#unanswered > 0
  }

  /** Asks when it is the question's turn. A question holds one thread at a time. */
  async ask<T>(question: () => Promise<T>): Promise<T> {
    if (this.#asked < QUESTIONS_MAX) this.#asked++
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await question()
    } finally {
      const next = this.#waiting.shift()
      if (next !== undefined) next()
      else if (--this.#asked === 0) this.#onRest()
    }
  }

  /** Resolves to whether nothing is asked any more, which no process ends without by itself. */
  async rests(): Promise<boolean> {
    if (this.#asked === 0) return true
    const rest = new Promise<void>((resolve) => (this.#onRest = resolve))
    return this.answers(rest, REST_MS_MAX)
  }

  /** Resolves to whether what was asked is settled in time. */
  async answers(asked: Promise<unknown>, timeoutMs: number): Promise<boolean> {
    const settled = asked.then(
      () => true,
      () => true,
    )
    if ((await withinTime(settled, timeoutMs)) === true) return true
    this.#unanswered++
    this.#logger.warn({ directory: this.#directory }, 'the disk of kept answers does not answer')
    void settled.then(() => (this.#unanswered -= 1))
    return false
  }
}
