// The permits of what is expensive: order-book slots, rows of exports in flight, turns of computing. Who finds none free
// is refused at once, so that a load balancer can try the next replica, or waits for a bounded time where that is set.
//
// Permits are for those who use them. No client holds more than its share. One that takes its answer below a fair rate
// is cut off when somebody else would be refused for it. And a permit that comes free is kept for who was refused, from
// those who hold more or have just had one (owed-permits.ts).

import { ApiError } from '../../shared/errors.ts'
import type { StreamReader } from '../http/byte-stream.ts'
import { ExpectedWait, type RunningHold } from './expected-wait.ts'
import { OwedPermits } from './owed-permits.ts'

/** A cut-off stream's worker obeys within milliseconds; who waits for its permit is refused after so long. */
const DISPLACEMENT_MS_MAX = 2_000
/** How often those who wait look for holders that have become slow. */
const LOOK_MS = 250

export interface SlotsOptions {
  readonly max: number
  /** Permits one client may hold; all of them when left out. */
  readonly clientMax?: number
  /** Seconds a refused client is told to wait at least; more where the permits are expected to be taken for longer. */
  readonly retryAfterS: number
  /** Why a request is refused, without a full stop. */
  readonly refusal: string
  /** How long a request may wait for its permits, and how many requests at once; none when left out. */
  readonly queue?: { readonly waitMs: number; readonly max: number }
}

export interface SlotClaim {
  readonly count: number
  /** Who asks. Nobody in particular when left out: such requests share one client's share. */
  readonly client?: string | undefined
  /** Aborted when the client is gone. */
  readonly signal?: AbortSignal
}

export interface SlotHold {
  /** Gives the permits back; a second call does nothing. */
  release(): void
  /** Tells who takes the answer for which the permits are held. */
  attach(reader: StreamReader): void
  /** Tells how to find out which share of the work is done, from 0 to 1; null when that is not known. */
  follow(progress: () => number | null): void
}

/** What has happened to claims so far. */
export interface SlotFigures {
  granted: number
  /** Refused because all permits were taken, or because the client had its share. */
  refusedBusy: number
  refusedClient: number
  /** Streams cut off because their clients were slow while somebody else waited. */
  displaced: number
  /** Time that granted claims have waited, all together. */
  waitedMs: number
}

interface Holder {
  readonly client: string
  readonly count: number
  readonly startMs: number
  reader: StreamReader | undefined
  progress: () => number | null
  isDisplaced: boolean
}

interface Waiter {
  readonly client: string
  readonly count: number
  readonly startMs: number
  grant(hold: SlotHold): void
}

export class Slots {
  readonly #options: SlotsOptions
  readonly #holders = new Set<Holder>()
  readonly #waiters = new Set<Waiter>()
  readonly #owed = new OwedPermits()
  readonly #expectedWait = new ExpectedWait()
  #takenCount = 0
  #lookTimer: NodeJS.Timeout | undefined
  /** Told how long each claim that was granted has waited, in seconds. */
  onGranted: (waitedS: number) => void = () => {}
  readonly figures: SlotFigures = { granted: 0, refusedBusy: 0, refusedClient: 0, displaced: 0, waitedMs: 0 }

  constructor(options: SlotsOptions) {
    this.#options = options
  }

  get takenCount(): number {
    return this.#takenCount
  }

  get waitingCount(): number {
    return this.#waiters.size
  }

  /**
   * Takes permits, at once where they are free. A request that needs more than there are gets in when nobody else is
   * there.
   * @throws {ApiError} `client_limit` (429) when the client has its share, `too_many_requests` (429) when they are not
   * free in time
   */
  async take({ count, client = '', signal }: SlotClaim): Promise<SlotHold> {
    const { max, clientMax = max, queue } = this.#options
    const heldCount = clientMax < max ? this.#heldBy(client) : 0
    if (heldCount > 0 && heldCount + count > clientMax)
      throw this.#clientRefusal(client, heldCount + count, clientMax)
    if (this.#waiters.size === 0 && this.#hasRoom(count) && !this.#isOwed(client, count))
      return this.#grantAfter(0, { client, count })
    let wantedCount = count
    for (const waiter of this.#waiters) wantedCount += waiter.count
    const isFreed = this.#free(wantedCount)
    const waitMs = Math.max(isFreed ? DISPLACEMENT_MS_MAX : 0, queue?.waitMs ?? 0)
    if (waitMs === 0 || (!isFreed && this.#waiters.size >= (queue?.max ?? 0)))
      throw this.#refusal(client, count)
    return this.#wait({ client, count, signal, waitMs })
  }

  #heldBy(client: string): number {
    let count = 0
    for (const holder of this.#holders) if (holder.client === client) count += holder.count
    return count
  }

  #hasRoom(count: number): boolean {
    return this.#takenCount === 0 || this.#takenCount + count <= this.#options.max
  }

  /** Whether a client would take what is kept for others. */
  #isOwed(client: string, count: number): boolean {
    const owedCount = this.#owed.countBefore(client, (one) => this.#heldBy(one))
    return owedCount > 0 && this.#takenCount + count + owedCount > this.#options.max
  }

  #grantAfter(waitedMs: number, claim: { client: string; count: number }): SlotHold {
    this.figures.waitedMs += waitedMs
    this.onGranted(waitedMs / 1000)
    return this.#grant(claim)
  }

  #grant({ client, count }: { client: string; count: number }): SlotHold {
    const holder: Holder = {
      client,
      count,
      startMs: performance.now(),
      reader: undefined,
      progress: () => null,
      isDisplaced: false,
    }
    this.#holders.add(holder)
    this.#takenCount += count
    this.#owed.granted(client)
    this.figures.granted += 1
    return {
      release: () => {
        if (!this.#holders.delete(holder)) return
        this.#takenCount -= count
        this.#owed.gaveBack(client)
        this.#expectedWait.learn(performance.now() - holder.startMs)
        this.#serveWaiters()
      },
      attach: (reader) => (holder.reader = reader),
      follow: (progress) => (holder.progress = progress),
    }
  }

  /** Cuts off slow readers until there will be room; false when there are not enough of them. Nobody is cut in vain. */
  #free(wantedCount: number): boolean {
    let takenCount = this.#takenCount
    for (const holder of this.#holders) if (holder.isDisplaced) takenCount -= holder.count
    const chosen: Holder[] = []
    for (const holder of this.#holders) {
      if (takenCount + wantedCount <= this.#options.max) break
      if (holder.isDisplaced || holder.reader?.isSlow !== true) continue
      chosen.push(holder)
      takenCount -= holder.count
    }
    if (takenCount + wantedCount > this.#options.max || takenCount === this.#takenCount) return false
    for (const holder of chosen) {
      holder.isDisplaced = true
      this.figures.displaced += 1
      holder.reader?.displace()
    }
    return true
  }

  async #wait(claim: {
    client: string
    count: number
    signal: AbortSignal | undefined
    waitMs: number
  }): Promise<SlotHold> {
    const { client, count, signal, waitMs } = claim
    this.#lookTimer ??= setInterval(() => this.#look(), LOOK_MS)
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        this.#waiters.delete(waiter)
        if (this.#waiters.size > 0) return
        clearInterval(this.#lookTimer)
        this.#lookTimer = undefined
      }
      const waiter: Waiter = {
        client,
        count,
        startMs: performance.now(),
        grant: (hold) => {
          leave()
          resolve(hold)
        },
      }
      const timer = setTimeout(() => {
        leave()
        reject(this.#refusal(client, count))
      }, waitMs)
      const onAbort = (): void => {
        leave()
        reject(new Error('the client is gone'))
      }
      signal?.addEventListener('abort', onAbort)
      this.#waiters.add(waiter)
    })
  }

  /** Those who wait may not have found a slow reader when they came. */
  #look(): void {
    this.#serveWaiters()
    const [first] = this.#waiters
    if (first !== undefined) this.#free(first.count)
  }

  /** Gives what is free to whose client holds least, of several to who came first. */
  #serveWaiters(): void {
    for (;;) {
      let next: Waiter | undefined
      let leastCount = Infinity
      for (const waiter of this.#waiters) {
        const heldCount = this.#heldBy(waiter.client)
        if (heldCount >= leastCount) continue
        next = waiter
        leastCount = heldCount
      }
      if (next === undefined || !this.#hasRoom(next.count)) return
      next.grant(this.#grantAfter(performance.now() - next.startMs, next))
    }
  }

  /** What is held, by everybody or by one client. */
  *#holdsOf(client?: string): Generator<RunningHold> {
    for (const { client: holding, count, startMs, progress } of this.#holders) {
      if (client === undefined || client === holding)
        yield { count, heldMs: performance.now() - startMs, progress: progress() }
    }
  }

  #clientRefusal(client: string, wantedCount: number, clientMax: number): ApiError {
    this.figures.refusedClient += 1
    const surplusCount = wantedCount - clientMax
    const { retryAfterS: minS } = this.#options
    const retryAfterS = this.#expectedWait.retryAfterS(this.#holdsOf(client), surplusCount, minS)
    return new ApiError(
      'client_limit',
      `Requests of this client already hold its share, ${clientMax} at once; retry in ${retryAfterS} s.`,
      { headers: { 'Retry-After': String(retryAfterS) } },
    )
  }

  #refusal(client: string, count: number): ApiError {
    this.figures.refusedBusy += 1
    const { max, retryAfterS: minS, refusal } = this.#options
    let wantedCount = this.#takenCount + count - max
    for (const waiter of this.#waiters) wantedCount += waiter.count
    const retryAfterS = this.#expectedWait.retryAfterS(this.#holdsOf(), wantedCount, minS)
    this.#owed.refused(client, { count, retryAfterS })
    return new ApiError('too_many_requests', `${refusal}; retry in ${retryAfterS} s.`, {
      headers: { 'Retry-After': String(retryAfterS) },
    })
  }
}
