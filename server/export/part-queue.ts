// The parts of submitted exports as jobs of pg-boss on PostgreSQL. Each export has its own queue of parts, so that their counts
// come from one table; each job has its line of the plan. The export itself is a job of the queue `exports`. It has the plan's head
// and is done when the manifest is written. Both are stored as text: jsonb would change the order of members, and with it the
// manifest. pg-boss 10 has no heartbeats: a job not renewed for EXPIRE_S goes to the next worker. The retry count, which grows each
// time a worker takes the job, identifies its holder.

import { randomUUID } from 'node:crypto'
import PgBoss from 'pg-boss'

const SCHEMA = 'bookcast_exports'
const EXPORTS = 'exports'
/** Parts that failed too often, with their last error. */
const FAILED_PARTS = 'failed-parts'
const PARTS_PREFIX = 'parts-'

const EXPIRE_S = 8
export const RENEW_MS = 2_000
/** How often a part may be taken. A killed worker counts like an error. */
const TAKEN_MAX = 100
/** A part with this many errors is not retried. */
export const PART_ERRORS_MAX = 5
const JOBS_PER_STATEMENT = 1_000
/** How long pg-boss keeps an export and its parts after the export ended. */
const KEPT_DAYS = 30
const FAILURES_SHOWN_MAX = 20
/** The index of a part in its plan, in SQL. */
const INDEX = "(data->>'index')::int"
const CONNECTIONS_MAX = 4
const CONNECT_MS_MAX = 5_000
const STATEMENT_MS_MAX = 30_000
/** Timeout of user commands: cancelling an export of a million parts takes longer than any statement of a worker. */
const COMMAND_MS_MAX = 300_000

/** A part of an export, or the end of an export, taken by this worker. */
export interface TakenJob {
  readonly queue: string
  readonly id: string
  /** The retry count at which this worker took it. */
  readonly turn: number
  /** Errors so far, not counting killed workers. */
  readonly errors: number
}

interface PartData {
  readonly index: number
  readonly errors: number
  /** JSON. */
  readonly part: string
}

export type ExportStatus = NonNullable<Awaited<ReturnType<PartQueue['status']>>>

/** A plan; the queue reads only its version. */
export interface SubmittedPlan {
  readonly version: string
  readonly parts: Iterable<object> | AsyncIterable<object>
}

/** By the state of a job. */
const PART_STATES: Readonly<Record<string, 'waiting' | 'running' | 'done' | 'failed' | 'cancelled'>> = {
  created: 'waiting',
  retry: 'waiting',
  active: 'running',
  completed: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
}

export class PartQueue {
  readonly #boss: PgBoss

  private constructor(boss: PgBoss) {
    this.#boss = boss
  }

  /** @param onError called if pg-boss's own maintenance fails; it continues at the next interval */
  static async open(
    databaseUrl: string,
    isWorker: boolean,
    onError: (error: Error) => void,
  ): Promise<PartQueue> {
    const pool = {
      max: CONNECTIONS_MAX,
      connectionTimeoutMillis: CONNECT_MS_MAX,
      query_timeout: isWorker ? STATEMENT_MS_MAX : COMMAND_MS_MAX,
    }
    const boss = new PgBoss({
      connectionString: databaseUrl,
      application_name: 'bookcast-export',
      ...pool,
      schema: SCHEMA,
      schedule: false,
      supervise: isWorker,
      maintenanceIntervalSeconds: 1,
      archiveCompletedAfterSeconds: KEPT_DAYS * 86_400,
    })
    boss.on('error', onError)
    await boss.start()
    return new PartQueue(boss)
  }

  async close(): Promise<void> {
    await this.#boss.stop({ graceful: false, wait: true })
  }

  /** Submits a plan. If the process is killed, either the whole export is there or nothing. */
  async submit({ parts, ...head }: SubmittedPlan): Promise<string> {
    await this.#removeOldQueues()
    const id = randomUUID()
    const options = {
      retryLimit: TAKEN_MAX,
      retryDelay: 1,
      expireInSeconds: EXPIRE_S,
      retentionDays: KEPT_DAYS,
    }
    const queue = PARTS_PREFIX + id
    await this.#boss.createQueue(FAILED_PARTS)
    await this.#boss.createQueue(EXPORTS, { name: EXPORTS, ...options })
    await this.#boss.createQueue(queue, { name: queue, deadLetter: FAILED_PARTS, ...options })
    const table = await this.#addIndexes(queue)
    const jobs: { name: string; data: object }[] = []
    let index = 0
    for await (const part of parts) {
      jobs.push({ name: queue, data: { export: id, index: index++, errors: 0, part: JSON.stringify(part) } })
      if (jobs.length === JOBS_PER_STATEMENT) await this.#boss.insert(jobs.splice(0))
    }
    if (jobs.length > 0) await this.#boss.insert(jobs)
    // Without statistics the server would sort anyway.
    await this.#rows(`analyze ${table}`, [])
    await this.#boss.insert([
      { id, name: EXPORTS, data: { version: head.version, plan: JSON.stringify(head), errors: 0 } },
    ])
    return id
  }

  /** The unfinished exports planned by a version, in the order of submission. */
  async unfinished(version: string): Promise<readonly string[]> {
    const rows = await this.#rows<{ id: string }>(
      `select id from ${SCHEMA}.job where name = $1 and state < 'completed' and data->>'version' = $2
        order by created_on, id`,
      [EXPORTS, version],
    )
    return rows.map(({ id }) => id)
  }

  /** The plan of an existing export. Its parts are read while they are iterated. */
  async plan(id: string): Promise<SubmittedPlan> {
    const [job] = await this.#rows<{ plan: string }>(
      `select data->>'plan' as plan from ${SCHEMA}.job where name = $1 and id = $2`,
      [EXPORTS, id],
    )
    if (job === undefined) throw new Error(`there is no export ${id}`)
    return {
      ...(JSON.parse(job.plan) as { version: string }),
      parts: { [Symbol.asyncIterator]: () => this.#parts(id) },
    }
  }

  async *#parts(id: string): AsyncGenerator<object, void, void> {
    for (let from = 0; ; from += JOBS_PER_STATEMENT) {
      const rows = await this.#rows<{ part: string }>(
        `select data->>'part' as part from ${SCHEMA}.job
          where name = $1 and ${INDEX} >= $2 and ${INDEX} < $3 order by ${INDEX}`,
        [PARTS_PREFIX + id, from, from + JOBS_PER_STATEMENT],
      )
      for (const { part } of rows) yield JSON.parse(part) as object
      if (rows.length < JOBS_PER_STATEMENT) return
    }
  }

  async take(id: string) {
    const queue = PARTS_PREFIX + id
    const [job] = await this.#boss.fetch<PartData>(queue, { includeMetadata: true })
    if (job === undefined) return null
    const { index, errors, part } = job.data
    // The part is as submitted.
    return { queue, id: job.id, turn: job.retryCount, errors, index, part: JSON.parse(part) as object }
  }

  /**
   * Takes the end of an export, whose worker writes the manifest, once every part is done. Fails the export if a part has failed.
   * Null while parts are open or the end is not available.
   */
  async takeEnd(id: string): Promise<TakenJob | null> {
    const [counts] = await this.#rows<{ open: number; failed: number }>(
      `select (count(*) filter (where state < 'completed'))::int as open,
              (count(*) filter (where state = 'failed'))::int as failed
         from ${SCHEMA}.job where name = $1`,
      [PARTS_PREFIX + id],
    )
    if (counts === undefined || counts.open > 0) return null
    const [taken] = await this.#rows<{ turn: number; errors: number }>(
      `update ${SCHEMA}.job set state = 'active', started_on = now(), retry_count = retry_count + 1
        where name = $1 and id = $2 and state < 'active' and start_after <= now()
        returning retry_count as turn, (data->>'errors')::int as errors`,
      [EXPORTS, id],
    )
    if (taken === undefined) return null
    const job = { queue: EXPORTS, id, ...taken }
    if (counts.failed === 0) return job
    await this.fail({ ...job, errors: PART_ERRORS_MAX }, `${counts.failed} parts failed`)
    return null
  }

  /** Keeps a job for another EXPIRE_S and names the worker for `status`. False if the job was taken over or cancelled. */
  async renew(job: TakenJob, worker: string): Promise<boolean> {
    return this.#change(job, `started_on = now(), output = jsonb_build_object('worker', $4::text)`, worker)
  }

  /** A job already completed by another worker stays so: the bytes are the same. */
  async complete(job: TakenJob, result: object): Promise<void> {
    await this.#boss.complete(job.queue, job.id, result)
  }

  /** Records one more error. A job with PART_ERRORS_MAX errors is not retried. */
  async fail(job: TakenJob, message: string): Promise<void> {
    const isNoted = await this.#change(
      job,
      `data = data || jsonb_build_object('errors', $4::int),
       retry_limit = case when $4::int >= ${PART_ERRORS_MAX} then retry_count else retry_limit end`,
      job.errors + 1,
    )
    if (isNoted) await this.#boss.fail(job.queue, job.id, { message })
  }

  /**
   * Returns a job, so that the next worker can take it at once. It counts neither as taken nor as an error, but `status` shows the
   * message.
   */
  async giveBack(job: TakenJob, message: string | null = null): Promise<void> {
    const output = `jsonb_strip_nulls(jsonb_build_object('message', $4::text))`
    await this.#change(job, `state = 'retry', retry_limit = retry_limit + 1, output = ${output}`, message)
  }

  /** Sets columns of a job; `$4` is the first value. False if this worker no longer holds the job. */
  async #change(job: TakenJob, assignments: string, ...values: unknown[]): Promise<boolean> {
    const changed = await this.#rows(
      `update ${SCHEMA}.job set ${assignments}
        where name = $1 and id = $2 and state = 'active' and retry_count = $3 returning id`,
      [job.queue, job.id, job.turn, ...values],
    )
    return changed.length > 0
  }

  /** Null if there is no export with that id. */
  async status(id: string) {
    const found = await this.#boss.getJobById<{ version: string }>(EXPORTS, id, { includeArchive: true })
    if (found === null) return null
    const queue = PARTS_PREFIX + id
    const counts = await this.#rows<{
      state: string
      parts: number
      rows: string
      bytes: string
      recent: number
      workers: string[]
    }>(
      `select state, count(*)::int as parts, coalesce(sum((output->>'rows')::bigint), 0)::text as rows,
              coalesce(sum((output->>'bytes')::bigint), 0)::text as bytes,
              (count(*) filter (where completed_on > now() - interval '1 minute'))::int as recent,
              coalesce(array_agg(distinct output->>'worker') filter (where output ? 'worker'), '{}') as workers
         from ${SCHEMA}.job where name = $1 group by state`,
      [queue],
    )
    /** Parts with a reason of failure, permanently failed ones first. */
    const failures = await this.#rows<{ index: number; errors: number; message: string }>(
      `select ${INDEX} as index, (data->>'errors')::int as errors,
              coalesce(output->>'message', output->'value'->>'message', 'no reason noted') as message
         from ${SCHEMA}.job where name = $1 and state <> 'completed' and ((data->>'errors')::int > 0 or output ? 'message')
        order by state = 'failed' desc, 1 limit ${FAILURES_SHOWN_MAX}`,
      [queue],
    )
    const parts = { waiting: 0, running: 0, done: 0, failed: 0, cancelled: 0 }
    for (const { state, parts: count } of counts) parts[PART_STATES[state] ?? 'waiting'] += count
    const [done, running] = ['completed', 'active'].map((name) => counts.find(({ state }) => state === name))
    const { message = null } = (found.output ?? {}) as { message?: string }
    return {
      id,
      /** The version that planned it: other versions ignore it. */
      version: found.data.version,
      /** `active` means that a worker writes the manifest. */
      state: found.state,
      parts,
      rows: BigInt(done?.rows ?? 0),
      bytes: BigInt(done?.bytes ?? 0),
      partsPerMinute: done?.recent ?? 0,
      workers: running?.workers ?? [],
      failures,
      /** Why the export as a whole failed, or why its manifest has to be written again. */
      message: found.state === 'failed' || found.state === 'retry' ? message : null,
    }
  }

  /** Ends an export: workers take no more of its parts and drop those they hold. False if it was already finished. */
  async cancel(id: string): Promise<boolean> {
    const cancelled = await this.#rows(
      `update ${SCHEMA}.job set state = 'cancelled', completed_on = now()
        where (name = $1 and id = $2 or name = $3) and state < 'completed' returning name`,
      [EXPORTS, id, PARTS_PREFIX + id],
    )
    return cancelled.length > 0
  }

  /**
   * Without indexes, pg-boss sorts all waiting jobs each time one is taken, and scans all jobs each second for expired ones: half a
   * second a part with 100,000 parts. The second index is for reading parts in order. Resolves to the queue's table.
   */
  async #addIndexes(queue: string): Promise<string> {
    const [found] = await this.#rows<{ table: string }>(
      `select partition_name as table from ${SCHEMA}.queue where name = $1`,
      [queue],
    )
    if (found === undefined) throw new Error(`pg-boss has no queue ${queue}`)
    const table = `${SCHEMA}.${found.table}`
    await this.#rows(`create index on ${table} (priority desc, created_on, id) where state < 'active'`, [])
    await this.#rows(`create index on ${table} ((${INDEX}))`, [])
    await this.#rows(`create index on ${table} (started_on) where state = 'active'`, [])
    return table
  }

  async #removeOldQueues(): Promise<void> {
    const before = Date.now() - KEPT_DAYS * 86_400_000
    for (const { name, createdOn } of await this.#boss.getQueues()) {
      if (name.startsWith(PARTS_PREFIX) && createdOn.getTime() < before) await this.#boss.deleteQueue(name)
    }
  }

  async #rows<Row>(text: string, values: unknown[]): Promise<Row[]> {
    // The pool is null-safe only while it is open: after that pg-boss returns undefined.
    return ((await this.#boss.getDb().executeSql(text, values)) as { rows: Row[] } | undefined)?.rows ?? []
  }
}
