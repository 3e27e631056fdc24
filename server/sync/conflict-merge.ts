// What a collector does about order books of object storage that its lake lacks: the object is fetched, and merged into
// the lake's file, which then has all of both and takes the object's place.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { lobFileOfKey } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MergeBusy, withSeries } from '../import/merge-lock.ts'
import { DirectoryStore } from './directory-store.ts'
import type { ObjectHead, ObjectStore } from './object-store.ts'

/** `later`: it was done not long ago, or another writes to the series; it is done again when it may. */
export type ConflictOutcome = 'merged' | 'later' | { readonly refusal: string }

/** To the merging thread. */
export interface MergeThreadData {
  readonly lake: string
  readonly source: LobSource
  readonly series: string
  readonly date: string
  readonly path: string
}

/** Of the time, at most: two collectors of one series have something new for each other again and again. */
const MERGING_SHARE_MAX = 0.2
const KEYS_MAX = 10_000
/** A recorder's publication takes no longer; an import does, and is not waited for. */
const BUSY_WAIT_MS_MAX = 5_000

export interface ConflictMergeOptions {
  /** Of the time, at most, for what is merged again and again; 1 where nothing else is to come. */
  readonly shareMax?: number
  readonly nowMs?: () => number
}

export class ConflictMerge {
  readonly #lake: string
  readonly #shareMax: number
  readonly #nowMs: () => number
  /** By key: not before. */
  readonly #nextMs = new Map<string, number>()

  constructor(
    lake: string,
    { shareMax = MERGING_SHARE_MAX, nowMs = () => performance.now() }: ConflictMergeOptions = {},
  ) {
    this.#lake = lake
    this.#shareMax = shareMax
    this.#nowMs = nowMs
  }

  /** Merges an object of `remote` into the lake's file of the same key; undefined when it holds no order books. */
  async merge(
    remote: ObjectStore,
    object: ObjectHead,
    signal: AbortSignal | undefined,
  ): Promise<ConflictOutcome | undefined> {
    const file = lobFileOfKey(object.key)
    if (file === undefined) return undefined
    const startMs = this.#nowMs()
    if (startMs < (this.#nextMs.get(object.key) ?? startMs)) return 'later'
    const { source, series, date } = file
    const directory = join(this.#lake, '.sync', 'taken')
    const path = join(directory, ...object.key.split('/'))
    try {
      const taken = new DirectoryStore(directory)
      await taken.put(object, (offset) => remote.get(object, offset, signal), { signal })
      const place = { lake: this.#lake, source, series }
      return await withSeries(place, { waitMs: BUSY_WAIT_MS_MAX, signal }, (lost) => {
        const stop = signal === undefined ? lost : AbortSignal.any([signal, lost])
        return mergeApart({ ...place, date, path }, stop)
      })
    } catch (error) {
      if (error instanceof MergeBusy) return 'later'
      throw error
    } finally {
      await rm(path, { force: true })
      this.#waitAfter(object.key, startMs)
    }
  }

  #waitAfter(key: string, startMs: number): void {
    const nowMs = this.#nowMs()
    this.#nextMs.set(key, nowMs + (nowMs - startMs) * (1 / this.#shareMax - 1))
    for (const [other, untilMs] of this.#nextMs) {
      if (untilMs < nowMs || this.#nextMs.size > KEYS_MAX) this.#nextMs.delete(other)
    }
  }
}

/** A whole date is folded: that must not keep the thread from its connections. */
async function mergeApart(workerData: MergeThreadData, signal: AbortSignal): Promise<ConflictOutcome> {
  signal.throwIfAborted()
  const worker = new Worker(new URL('./conflict-merge-thread.js', import.meta.url), { workerData })
  const abort = (): void => void worker.terminate()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await new Promise<ConflictOutcome>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
      worker.once('exit', () => reject(new Error('the merging thread ended without a word')))
    })
  } finally {
    signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}
