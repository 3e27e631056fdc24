// `bookcast work`: takes parts of submitted exports, oldest export first, until it is stopped. It renews a job while its part runs.
// It drops a part that another worker has taken, or whose export is cancelled.

import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { type BackOff, backOffMs } from '../tasks/back-off.ts'
import { retried } from '../tasks/retry.ts'
import { PlaceError } from './place-error.ts'
import { type PartQueue, RENEW_MS, type SubmittedPlan, type TakenJob } from './part-queue.ts'
import { messageOf } from '../../shared/error-message.ts'

/** How long a worker waits when it has no job or cannot reach the queue. */
const IDLE_MS = 1_000
/** The back-off after an error, until a job succeeds. A bad machine must not use up the attempts before other machines take the parts. */
const ERROR_PAUSE: BackOff = { firstMs: 1_000, maxMs: 60_000 }
/** Retries recording a result while the queue is unreachable. After that, the part is taken over and found done. */
const NOTING = { attemptsMax: 10, backOff: { firstMs: IDLE_MS, maxMs: IDLE_MS, isExact: true } }

/**
 * How a worker processes a part. The functions are pure and idempotent: a repetition gives the same bytes. A PlaceError, such as that
 * of a full disk, wrong credentials or an outage of the target, uses up no attempt.
 */
export interface PartWork<Plan extends SubmittedPlan, Part> {
  /** Exports planned by another version are left to workers of that version. */
  readonly version: string
  /** Updates the lake: before the first part of an export and before a failed part is retried. */
  prepare(signal: AbortSignal): Promise<void>
  runPart(
    plan: Plan,
    part: Part,
    signal: AbortSignal,
  ): Promise<{ readonly rows: number; readonly bytes: number }>
  /** Writes the manifest when every part exists. */
  finish(plan: Plan, signal: AbortSignal): Promise<void>
}

/** A dropped part is `ended` too. */
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
   * @param tell receives one line per finished part and per error
   */
  constructor(queue: PartQueue, work: PartWork<Plan, Part>, name: string, tell: (line: string) => void) {
    this.#queue = queue
    this.#work = work
    this.#name = name
    this.#tell = tell
  }

  /** Works on `concurrency` parts at once until the signal aborts, then returns the parts it holds. */
  async run(concurrency: number, stop: AbortSignal): Promise<void> {
    // Each loop may have a listener for its part and one for its pause.
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
        this.#tell(`The queue cannot be used: ${messageOf(error)}`)
      }
      await delay(pauseMs, undefined, { signal: stop }).catch(() => undefined)
    }
  }

  /** Takes one job and finishes it. */
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

  /** Lists the unfinished exports again if the list is old. */
  async #listExports(): Promise<void> {
    if (performance.now() - this.#listedMs < IDLE_MS) return
    this.#unfinished = await this.#queue.unfinished(this.#work.version)
    this.#listedMs = performance.now()
    for (const id of this.#plans.keys()) if (!this.#unfinished.includes(id)) this.#plans.delete(id)
  }

  /** Runs a job's work while renewing the job, and records how it ended. */
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
        // The queue is unreachable: the first worker to reach it again continues with the part.
        () => undefined,
      )
    }
    const timer = setInterval(renew, RENEW_MS)
    try {
      const ended = await act(signal).then(
        (result) => ({ result }),
        (error: unknown) => ({ error }),
      )
      // An unreachable queue is not an error of the part.
      if ('result' in ended) {
        await retried(() => this.#queue.complete(job, ended.result), NOTING)
        this.#tell(`${name} done`)
      } else if (given.signal.aborted) this.#tell(`${name} is another worker's now, or cancelled`)
      else if (stop.aborted) await retried(() => this.#queue.giveBack(job), NOTING)
      else {
        const text = messageOf(ended.error)
        this.#tell(`${name} failed: ${text}`)
        const isOfPart = !(ended.error instanceof PlaceError)
        await retried(
          () => (isOfPart ? this.#queue.fail(job, text) : this.#queue.giveBack(job, text)),
          NOTING,
        )
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
