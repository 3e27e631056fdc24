// Reads the current versions of the store's datasets. Each caller gets versions that were read after its call. Calls during a
// read share the next read, so that only one is running, however many calls there are.

import { withinTime } from '../../shared/within-time.ts'
import type { DataVersions } from './catalogue-feed.ts'

/** Callers do not wait longer than this for the store, because they can do without its answer. */
const WAIT_MS_MAX = 1_000

export interface FreshVersionsOptions {
  readonly read: () => Promise<DataVersions>
  /** Whether the store is known to be unreachable: then it is not asked. */
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

  /** Resolves to undefined while the store is unreachable or slow. Never rejects. */
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
