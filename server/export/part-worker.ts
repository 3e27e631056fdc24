// `bookcast work`: takes parts of submitted exports, oldest export first, until it is stopped. While a part runs its job
// is renewed; a part that another worker has taken, or whose export is cancelled, is given up.

import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { type BackOff, backOffMs } from '../tasks/back-off.ts'
import { retried } from '../tasks/retry.ts'
import { type PartQueue, RENEW_MS, type SubmittedPlan, type TakenJob } from './part-queue.ts'

/** How long an idle worker waits before it looks again, and one that cannot reach the queue. */
const IDLE_MS = 1_000
/**
 * The pause after an error, longer after each further one until a job succeeds: a machine whose disk is full or whose credentials
 * are wrong must not use up the attempts of every part before the others come to it, nor an outage of the target.
 */
const ERROR_PAUSE: BackOff = { firstMs: 1_000, maxMs: 60_000 }
/** Notes a result while the queue cannot be reached; later the part is taken over, and found done. */
const NOTING = { attemptsMax: 10, backOff: { firstMs: IDLE_MS, maxMs: IDLE_MS, isExact: true } }

/** What a worker does with a part. Both are pure and idempotent: a repetition gives the same bytes. */
export interface PartWork<Plan extends SubmittedPlan, Part> {
  /** Exports that another version has planned are left to its workers. */
  readonly version: string
  /** Brings the lake up to date: before the first part of an export and before a part that has failed is tried again. */
  prepare(signal: AbortSignal): Promise<void>
  runPart(
    plan: Plan,
    part: Part,
    signal: AbortSignal,
  ): Promise<{ readonly rows: number; readonly bytes: number }>
  /** Writes the manifest when every part is there. */
  finish(plan: Plan, signal: AbortSignal): Promise<void>
}

/** `ended` too for a part that was given up. */
type Outcome = 'ended' | 'failed'

export class PartWorker<Plan extends SubmittedPlan, Part> {
  readonly #queue: PartQueue
  readonly #work: PartWork<Plan, Part>
  readonly #name: string
  readonly #tell: (line: string) => void
  readonly #plans = new Map<string, Plan>()
  #unfinished: readonly string[] = []
  #listedMs = -Infinity

  /**
   * @param name names this process in `status`
   * @param tell takes one line per part that ended, and per error
   */
  constructor(queue: PartQueue, work: PartWork<Plan, Part>, name: string, tell: (line: string) => void) {
    this.#queue = queue
    this.#work = work
    this.#name = name
    this.#tell = tell
  }

  /** Works on `concurrency` parts at once until the signal aborts, then gives back what it has. */
  async run(concurrency: number, stop: AbortSignal): Promise<void> {
    // A part and a pause of each.
    setMaxListeners(2 * concurrency + 10, stop)
    await Promise.all(Array.from({ length: concurrency }, () => this.#loop(stop)))
  }

  async #loop(stop: AbortSignal): Promise<void> {
    let errors = 0
    while (!stop.aborted) {
      let pauseMs = IDLE_MS
      try {
        const outcome = await this.#workOnce(stop)
        if (outcome === 'failed') pauseMs = backOffMs(ERROR_PAUSE, (errors += 1))
        if (outcome === 'ended') {
          errors = 0
          continue
        }
      } catch (error) {
        this.#tell(`The queue cannot be used: ${textOf(error)}`)
      }
      await delay(pauseMs, undefined, { signal: stop }).catch(() => undefined)
    }
  }

  /** Takes and ends one job. */
  async #workOnce(stop: AbortSignal): Promise<'none' | Outcome> {
    await this.#listExports()
    for (const id of this.#unfinished) {
      const part = await this.#queue.take(id)
      if (part !== null) {
        return await this.#hold(part, `part ${part.index} of export ${id}`, stop, async (signal) => {
          const plan = await this.#plan(id, part.errors > 0, signal)
          const { rows, bytes } = await this.#work.runPart(plan, part.part as Part, signal)
          return { rows, bytes }
        })
      }
      const end = await this.#queue.takeEnd(id)
      if (end !== null) {
        return await this.#hold(end, `manifest of export ${id}`, stop, async (signal) => {
          await this.#work.finish(await this.#plan(id, false, signal), signal)
          return {}
        })
      }
    }
    return 'none'
  }

  /** Lists the unfinished exports again where the list is old. */
  async #listExports(): Promise<void> {
    if (performance.now() - this.#listedMs < IDLE_MS) return
    this.#unfinished = await this.#queue.unfinished(this.#work.version)
    this.#listedMs = performance.now()
    for (const id of this.#plans.keys()) if (!this.#unfinished.includes(id)) this.#plans.delete(id)
  }

  /** Runs what a job asks for, renewing the job meanwhile, and notes how it ended. */
  async #hold(
    job: TakenJob,
    name: string,
    stop: AbortSignal,
    act: (signal: AbortSignal) => Promise<object>,
  ): Promise<Outcome> {
    const given = new AbortController()
    const signal = AbortSignal.any([stop, given.signal])
    const renew = (): void => {
      this.#queue.renew(job, this.#name).then(
        (isOurs) => isOurs || given.abort(),
        // The queue is away: whoever is there first when it is back goes on with the part.
        () => undefined,
      )
    }
    const timer = setInterval(renew, RENEW_MS)
    try {
      const ended = await act(signal).then(
        (result) => ({ result }),
        (error: unknown) => ({ error }),
      )
      // That the queue is away is no error of the part.
      if ('result' in ended) {
        await retried(() => this.#queue.complete(job, ended.result), NOTING)
        this.#tell(`${name} done`)
      } else if (given.signal.aborted) this.#tell(`${name} is another worker's now, or cancelled`)
      else if (stop.aborted) await retried(() => this.#queue.giveBack(job), NOTING)
      else {
        this.#tell(`${name} failed: ${textOf(ended.error)}`)
        await retried(() => this.#queue.fail(job, textOf(ended.error)), NOTING)
        return 'failed'
      }
    } finally {
      clearInterval(timer)
    }
    return 'ended'
  }

  async #plan(id: string, isRetry: boolean, signal: AbortSignal): Promise<Plan> {
    const known = this.#plans.get(id)
    if (known === undefined || isRetry) await this.#work.prepare(signal)
    if (known !== undefined) return known
    const plan = (await this.#queue.plan(id)) as Plan
    this.#plans.set(id, plan)
    return plan
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
