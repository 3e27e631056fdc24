// The threads that answer candles, observations and climate, in two lanes. Small requests have their own threads. Bulk work
// has others: exports, recognized by the number of rows, and any request that turns out to read much when it is planned. Each
// lane limits the rows of its concurrent requests, and thereby its memory; no client has more than its share of them. Small
// requests start in turns, client by client, and a turn ends with the first chunk: an answer that waits for its client holds no
// turn.

import type { Logger } from 'pino'
import { COVERAGE_FIELDS_BY } from '../../shared/coverage.ts'
import { STREAMED_ROWS_MAX } from '../../shared/formats.ts'
import {
  LOB_THREAD_NICENESS,
  RECORD_ROWS_COUNTED_MIN,
  RECORD_ROWS_IN_FLIGHT_MAX,
  RECORD_TASKS_PER_THREAD,
  RECORD_THREAD_HEAP_MB_MAX,
  RECORD_THREADS,
} from '../../shared/limits.ts'
import { groupedBy } from '../../shared/grouped-by.ts'
import { lobFileOfKey } from '../../shared/lake-layout.ts'
import type { DatabaseCheck } from '../health/health-monitor.ts'
import { withinTime } from '../../shared/within-time.ts'
import type { RecordHead, RecordProbeTask, RecordQuery, RecordTask } from '../../shared/record-task.ts'
import type { TaskPort } from '../../shared/stream-task.ts'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import { openFromDate } from '../lake/lake-versions.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { type ClientShares, DEFAULT_SHARES } from '../workers/client-shares.ts'
import { SilentFiles } from '../workers/silent-files.ts'
import { type SlotHold, Slots } from '../workers/slots.ts'
import { WorkerPool } from '../workers/worker-pool.ts'
import type { TaskOptions, WorkerStream } from '../workers/worker-stream.ts'

export const RECORD_WORKER_URL = new URL('../../workers/records/task.js', import.meta.url)

/** While requests keep a database busy, an answer to one of them counts as a health answer for this time. */
const HEALTH_BUSY_MS = 10_000
/** Without a store, a health check may start a thread that loads the database, which takes more than a second on a busy machine. */
const HEALTH_LOAD_FACTOR = 5
const RECORD_THREAD_NICENESS = 5
const RECORD_RETRY_AFTER_S = 1

/** A request for more rows than this, skipped ones included, is bulk, however much it reads. */
const SMALL_ROWS_MAX = 20_000
/** Threads of bulk requests; they use the processor time that small requests and order books leave. */
const BULK_THREADS = 1
/** Enough for all exports of the greatest length that the row limit allows, and a few shorter ones. */
const BULK_TASKS_PER_THREAD = 16
const BULK_ROWS_COUNTED_MIN = Math.ceil(RECORD_ROWS_IN_FLIGHT_MAX / (BULK_THREADS * BULK_TASKS_PER_THREAD))
/** Small requests per thread that may be on the way to their first chunk; others wait for their turn. */
const TURNS_PER_THREAD = 8
/** A turn takes milliseconds. A request that waits longer than this for one is refused. */
const TURN_WAIT_MS_MAX = 30_000
/** Threads that unresponsive files may block; they come back when the files respond. */
const LOST_THREADS_MAX = 4
/** Bulk requests that may wait for rows, if waiting is configured. */
const QUEUED_MAX = 64

/** Whether an answer may be small, judged by the rows that the request asks for. */
export function isSmallByRows(query: RecordQuery): boolean {
  // Ten years have few climate gaps, and a series has few dates, whatever the limit is.
  if (query.kind === 'climate-gaps' || isOfOneThread(query)) return true
  return query.limit + query.offset <= SMALL_ROWS_MAX
}

/** These run in one thread, that of bulk requests, which caches the footers of order-book files. */
function isOfOneThread({ kind }: RecordQuery): boolean {
  return kind === 'coverage' || kind === 'gaps'
}

/** The limit on files to read ahead. Their coverage fits in the thread's memory (workers/lob/file-coverage.ts). */
const AHEAD_FILES_MAX = 10_000
const AHEAD = {
  kind: 'coverage',
  market: null,
  from: null,
  to: null,
  by: 'day',
  catalogue: null,
  format: 'json',
  columns: COVERAGE_FIELDS_BY.day,
  limit: 10_000,
  offset: 0,
  isAhead: true,
} as const
const AHEAD_OPTIONS = { headOnly: false, validation: null, versions: { series: null, manifest: null } }

export interface RecordPoolOptions {
  readonly lake: string
  /** Null: only coverage and gaps are served, and threads start with the first such request or health check. */
  readonly store: StoreAddress | null
  /** The compiled worker file; its default export takes a RecordTask or a WarmTask. */
  readonly workerUrl: URL
  readonly logger: Logger
  readonly shares?: ClientShares | undefined
  /** How long a file may block a thread; tests set another time. */
  readonly fileAnswerMs?: number | undefined
}

export type RecordOpenOptions = Pick<RecordTask, 'headOnly' | 'validation' | 'versions' | 'pin'> & {
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
  /** The client. */
  readonly client?: string
}

/** A thread pool and the rows that its requests may hold. */
interface Lane {
  readonly pool: WorkerPool<RecordHead>
  readonly rows: Slots
}

export class RecordPool {
  readonly #lake: string
  readonly #store: StoreAddress | null
  readonly #small: Lane
  readonly #bulk: Lane
  readonly #turns: Slots
  /** Of both lanes, which read the same files. */
  readonly #silentFiles: SilentFiles
  #probe: Promise<boolean> | undefined

  constructor({ lake, store, workerUrl, logger, shares = DEFAULT_SHARES, ...options }: RecordPoolOptions) {
    this.#lake = lake
    this.#store = store
    this.#silentFiles = new SilentFiles(options.fileAnswerMs)
    const silentFiles = this.#silentFiles
    const areLate = store === null
    const common = { workerUrl, heapMb: RECORD_THREAD_HEAP_MB_MAX, logger, silentFiles, areLate }
    const refusal = `The requests being processed ask for ${RECORD_ROWS_IN_FLIGHT_MAX} rows together, which is the most at once`
    const rows = { max: RECORD_ROWS_IN_FLIGHT_MAX, retryAfterS: RECORD_RETRY_AFTER_S, refusal }
    this.#small = {
      pool: new WorkerPool({
        ...common,
        name: 'record',
        threads: RECORD_THREADS,
        tasksPerThread: RECORD_TASKS_PER_THREAD,
        niceness: RECORD_THREAD_NICENESS,
      }),
      rows: new Slots({ ...rows, clientMax: shares.requests * RECORD_ROWS_COUNTED_MIN }),
    }
    this.#bulk = {
      pool: new WorkerPool({
        ...common,
        name: 'bulk record',
        threads: BULK_THREADS,
        tasksPerThread: BULK_TASKS_PER_THREAD,
        niceness: LOB_THREAD_NICENESS,
      }),
      rows: new Slots({
        ...rows,
        clientMax: shares.rows,
        queue: { waitMs: shares.queueMs, max: QUEUED_MAX },
      }),
    }
    this.#turns = new Slots({
      max: RECORD_THREADS * TURNS_PER_THREAD,
      retryAfterS: RECORD_RETRY_AFTER_S,
      refusal: `No thread was free within ${TURN_WAIT_MS_MAX / 1000} s`,
      queue: { waitMs: TURN_WAIT_MS_MAX, max: RECORD_THREADS * RECORD_TASKS_PER_THREAD },
    })
  }

  /** Rows that the active requests may have; each lane allows RECORD_ROWS_IN_FLIGHT_MAX. */
  get rowsInFlight(): number {
    return this.#small.rows.takenCount + this.#bulk.rows.takenCount
  }

  /** Tasks that wait for a thread. */
  get queuedTasks(): number {
    return this.#small.pool.threads.queuedTasks + this.#bulk.pool.threads.queuedTasks
  }

  /** The slots of the lanes, by name. */
  get lanes(): Readonly<Record<string, Slots>> {
    return { records: this.#small.rows, record_turns: this.#turns, bulk_records: this.#bulk.rows }
  }

  /**
   * Whether the DuckDB of the threads responds. A long query is no failure: while requests are active, an answer to one of them
   * counts as well.
   */
  readonly checkDatabase: DatabaseCheck = async (timeoutMs) => {
    // A check that is still running is not started again.
    this.#probe ??= this.#small.pool
      .run({ probe: true } satisfies RecordProbeTask)
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        this.#probe = undefined
      })
    const waitMs = this.#store === null ? HEALTH_LOAD_FACTOR * timeoutMs : timeoutMs
    const isOk = await withinTime(this.#probe, waitMs)
    return (
      isOk ?? (this.rowsInFlight > 0 && Date.now() - this.#small.pool.threads.answeredAtMs <= HEALTH_BUSY_MS)
    )
  }

  /** Lets every thread load its code. Rejects when the worker file cannot be loaded. */
  async warm(): Promise<void> {
    await Promise.all([this.#small.pool.warm(), this.#bulk.pool.warm()])
  }

  /**
   * Starts a request and resolves when its head and first chunk have arrived. The stream must be closed. Rejects with the
   * worker's ApiError, `too_many_requests`, `client_limit` or `worker_failed`, and when `signal` is aborted first.
   */
  async open(query: RecordQuery, options: RecordOpenOptions): Promise<WorkerStream<RecordHead>> {
    if (query.kind !== 'climate' && query.kind !== 'climate-gaps')
      this.#silentFiles.assertBelow(LOST_THREADS_MAX)
    if (isSmallByRows(query) && !isOfOneThread(query)) {
      const stream = await this.#openSmall(query, options)
      if (stream !== undefined) return stream
    }
    const { client, signal } = options
    const count = Math.min(Math.max(query.limit, BULK_ROWS_COUNTED_MIN), STREAMED_ROWS_MAX)
    const rows = await this.#bulk.rows.take({ count, client, signal })
    return this.#openIn(this.#bulk, query, options, rows)
  }

  /**
   * Reads the footers of these order-book files, series by series and at most half of the time, so that requests for coverage and
   * gaps need not. Without a store it does nothing: the threads start with the first such request.
   */
  async readAhead(keys: readonly string[], signal: AbortSignal): Promise<void> {
    if (this.#store === null) return
    const files = keys.map(lobFileOfKey).filter((file) => file !== undefined)
    let left = AHEAD_FILES_MAX
    for (const [{ source, series }, ...others] of groupedBy(
      files,
      (file) => file.source + file.series,
    ).values()) {
      left -= others.length + 1
      if (left < 0 || signal.aborted) return
      const startedMs = performance.now()
      const query = { ...AHEAD, source, series, openFrom: openFromDate() }
      const opening = this.#openIn(this.#bulk, query, { ...AHEAD_OPTIONS, signal }, { release() {} })
      // An unreadable file fails the requests for its series, not the reading ahead.
      const stream = await opening.catch(() => undefined)
      // The rows are not used. Making them lets V8 compile the code before the first request.
      while (await stream?.next().catch(() => null));
      await stream?.close()
      await SYSTEM_CLOCK.sleep(performance.now() - startedMs, signal).catch(() => {})
    }
  }

  /** Undefined for a request that turns out to be bulk when it is planned. */
  async #openSmall(
    query: RecordQuery,
    options: RecordOpenOptions,
  ): Promise<WorkerStream<RecordHead> | undefined> {
    const { client, signal } = options
    const count = Math.max(Math.min(query.limit, SMALL_ROWS_MAX), RECORD_ROWS_COUNTED_MIN)
    const rows = await this.#small.rows.take({ count, client, signal })
    let turn: SlotHold | undefined
    try {
      turn = await this.#turns.take({ count: 1, client, signal })
    } catch (error) {
      rows.release()
      throw error
    }
    try {
      const stream = await this.#openIn(this.#small, query, options, rows)
      if (!stream.head.isMisplaced) return stream
      await stream.close()
      return undefined
    } finally {
      turn.release()
    }
  }

  async #openIn(
    lane: Lane,
    query: RecordQuery,
    options: RecordOpenOptions,
    rows: Omit<TaskOptions, 'signal'>,
  ): Promise<WorkerStream<RecordHead>> {
    const { headOnly, validation, versions, pin, signal } = options
    const isBulk = lane === this.#bulk
    const [lake, store] = [this.#lake, this.#store]
    const task = { lake, store, query, headOnly, validation, versions, pin, isBulk }
    return lane.pool.open(task satisfies Omit<RecordTask, keyof TaskPort>, { ...rows, signal })
  }

  /** Terminates the threads and resolves to whether they exited. */
  async close(): Promise<boolean> {
    const areEnded = await Promise.all([this.#small.pool.close(), this.#bulk.pool.close()])
    return areEnded.every(Boolean)
  }
}
