// Folds dates of a lake for a synchronization, in a thread and for a bounded share of the time: two collectors of one source have
// new segments for each other again and again.

import { Worker } from 'node:worker_threads'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MergeBusy, withSource } from '../fold/series-lock.ts'
import { BUSY_WAIT_MS_MAX } from './directory-store.ts'

/** What the thread folds. */
export interface FoldThreadData {
  readonly lake: string
  readonly source: LobSource
  readonly date: string
  /** Segments that count besides those that the lake's manifest lists. */
  readonly added: readonly string[]
}

/** Folds a date from the lake's raw segments and publishes its files and manifest. */
export type FoldDates = (fold: FoldThreadData & { readonly signal: AbortSignal }) => Promise<void>

export interface RawFolderOptions {
  /** Of the time, at most, for one date; 1 where no later synchronization follows. */
  readonly shareMax?: number
  readonly foldDates?: FoldDates
}

const FOLDING_SHARE_MAX = 0.2
const DATES_MAX = 10_000

export class RawFolder {
  readonly #lake: string
  readonly #shareMax: number
  readonly #foldDates: FoldDates
  /** By date: not before. */
  readonly #nextMs = new Map<string, number>()

  constructor(
    lake: string,
    { shareMax = FOLDING_SHARE_MAX, foldDates = foldInThread }: RawFolderOptions = {},
  ) {
    this.#lake = lake
    this.#shareMax = shareMax
    this.#foldDates = foldDates
  }

  /** `later`: the share of the time is used up, or another process folds. The next synchronization folds the date. */
  async fold(
    source: LobSource,
    date: string,
    added: readonly string[],
    signal: AbortSignal = new AbortController().signal,
  ): Promise<'folded' | 'later'> {
    const id = `${source} ${date}`
    const startMs = performance.now()
    if (startMs < (this.#nextMs.get(id) ?? startMs)) return 'later'
    const lake = this.#lake
    try {
      // The fold itself would wait for an hour.
      await withSource({ lake, source }, { waitMs: BUSY_WAIT_MS_MAX, signal }, async () => {})
      await this.#foldDates({ lake, source, date, added, signal })
      return 'folded'
    } catch (error) {
      if (error instanceof MergeBusy) return 'later'
      throw error
    } finally {
      this.#waitAfter(id, startMs)
    }
  }

  #waitAfter(id: string, startMs: number): void {
    const nowMs = performance.now()
    this.#nextMs.set(id, nowMs + (nowMs - startMs) * (1 / this.#shareMax - 1))
    for (const [other, untilMs] of this.#nextMs) {
      if (untilMs < nowMs || this.#nextMs.size > DATES_MAX) this.#nextMs.delete(other)
    }
  }
}

/** A fold of a whole date would block the thread that serves connections. */
async function foldInThread({ signal, ...workerData }: Parameters<FoldDates>[0]): Promise<void> {
  signal.throwIfAborted()
  const worker = new Worker(new URL('./raw-folder-thread.js', import.meta.url), { workerData })
  const abort = (): void => void worker.terminate()
  signal.addEventListener('abort', abort, { once: true })
  try {
    await new Promise<void>((resolve, reject) => {
      worker.once('message', () => resolve())
      worker.once('error', reject)
      worker.once('exit', () => reject(new Error('the thread that folds ended without a result')))
    })
  } finally {
    signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}
