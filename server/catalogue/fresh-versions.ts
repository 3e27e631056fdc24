// The versions of the store's datasets as they are now. Whoever asks gets what was read after it asked; all who ask while
// one reading is under way share the next one, so that the store is asked for one thing at a time however many ask.

import { withinTime } from '../../shared/within-time.ts'
import type { DataVersions } from './catalogue-feed.ts'

/** A store that takes longer is one that those who can do without it do not wait for. */
const WAIT_MS_MAX = 1_000

export interface FreshVersionsOptions {
  readonly read: () => Promise<DataVersions>
  /** Whether the store is known to be away: then it is not asked. */
  readonly isAway: () => boolean
}

interface Reading {
  readonly versions: Promise<DataVersions | undefined>
  readonly startMs: number
}

export class FreshVersions {
  readonly #options: FreshVersionsOptions
  #running: Reading | undefined
  #next: Promise<DataVersions | undefined> | undefined

  constructor(options: FreshVersionsOptions) {
    this.#options = options
  }

  /** Resolves to nothing while the store is away or slow. Never rejects. */
  async now(): Promise<DataVersions | undefined> {
    if (this.#options.isAway()) return undefined
    const running = this.#running
    if (running === undefined) return withinTime(this.#begin(), WAIT_MS_MAX)
    if (performance.now() - running.startMs > WAIT_MS_MAX) return undefined
    this.#next ??= running.versions.then(async () => {
      this.#next = undefined
      return this.#begin()
    })
    return withinTime(this.#next, WAIT_MS_MAX)
  }

  #begin(): Promise<DataVersions | undefined> {
    const versions = this.#read().finally(() => (this.#running = undefined))
    this.#running = { versions, startMs: performance.now() }
    return versions
  }

  async #read(): Promise<DataVersions | undefined> {
    try {
      return await this.#options.read()
    } catch {
      return undefined
    }
  }
}
