// Threads that make the parts of exports. They run the same workers as the endpoints and read only the lake.

import { pino } from 'pino'
import { LOB_THREAD_HEAP_MB_MAX, RECORD_THREAD_HEAP_MB_MAX } from '../../shared/limits.ts'
import type { LobHead, LobTask } from '../../shared/lob-task.ts'
import type { RecordHead, RecordTask } from '../../shared/record-task.ts'
import type { TaskPort } from '../../shared/stream-task.ts'
import { readVersion } from '../http/version.ts'
import { LOB_WORKER_URL } from '../lob/lob-pool.ts'
import { RECORD_WORKER_URL } from '../records/record-pool.ts'
import { WorkerPool } from '../workers/worker-pool.ts'
import type { WorkerStream } from '../workers/worker-stream.ts'
import { isLobQuery, type PartQuery } from './export-query.ts'

export interface PartOpenOptions {
  /** By market id, ms since the epoch; empty for records. */
  readonly closesAtMs: Readonly<Record<string, number>>
  /** Plan and check the part, and send no chunk. */
  readonly headOnly: boolean
  readonly signal: AbortSignal
}

export class PartThreads {
  readonly lake: string
  readonly threads: number
  #lob: WorkerPool<LobHead> | undefined
  #records: WorkerPool<RecordHead> | undefined

  /** `threads`: the number of parts that can be open at once. */
  constructor({ lake, threads }: { readonly lake: string; readonly threads: number }) {
    this.lake = lake
    this.threads = threads
  }

  /** Starts a part. The caller must close the stream. Rejects with the ApiError of the worker. */
  async open(query: PartQuery, options: PartOpenOptions): Promise<WorkerStream<LobHead | RecordHead>> {
    const { lake } = this
    const { headOnly, signal, closesAtMs } = options
    const running = { release: () => {}, signal }
    if (isLobQuery(query)) {
      const pool = (this.#lob ??= this.#pool<LobHead>(LOB_WORKER_URL, LOB_THREAD_HEAP_MB_MAX))
      const catalogue = { series: null, markets: null, closesAtMs }
      const validation = { seed: readVersion(), held: [] }
      const task = { lake, query, headOnly, catalogue, validation, isUnlimited: true, assistance: null }
      return await pool.open(task satisfies Omit<LobTask, keyof TaskPort>, running)
    }
    const pool = (this.#records ??= this.#pool<RecordHead>(RECORD_WORKER_URL, RECORD_THREAD_HEAP_MB_MAX))
    const versions = { series: null, manifest: null }
    const task = { lake, store: null, query, headOnly, validation: null, versions, isBulk: true }
    return await pool.open(task satisfies Omit<RecordTask, keyof TaskPort>, running)
  }

  async close(): Promise<void> {
    await Promise.all([this.#lob?.close(), this.#records?.close()])
  }

  #pool<Head extends LobHead | RecordHead>(workerUrl: URL, heapMb: number): WorkerPool<Head> {
    return new WorkerPool<Head>({
      name: 'export',
      workerUrl,
      threads: this.threads,
      tasksPerThread: 1,
      heapMb,
      niceness: 0,
      logger: pino({ level: 'silent' }),
    })
  }
}
