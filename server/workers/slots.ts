// Permits for expensive work: order-book slots, rows of concurrent exports, turns of computing. A request that finds none free
// is refused at once, so that a load balancer can try the next replica, or waits for a bounded time if that is configured.
//
// No client holds more than its share. One rule orders all claims (claim-line.ts). If a client takes its stream below the fair
// rate, the stream is cut off when that allows another claim to be granted, of the same client or of one that holds fewer
// permits.

import { ApiError } from '../../shared/errors.ts'
import type { StreamReader } from '../http/byte-stream.ts'
import { ExpectedWait, type RunningHold } from './expected-wait.ts'
import { ClaimLine, type WaitingClaim } from './claim-line.ts'

/** A cut-off stream's worker stops within milliseconds. A claim that waits longer than this for its permit is refused. */
const DISPLACEMENT_MS_MAX = 2_000
/** How often waiting claims look for holders that have become slow. */
const LOOK_MS = 250

export interface SlotsOptions {
  readonly max: number
  /** Permits that one client may hold; by default all of them. */
  readonly clientMax?: number
  /** The smallest Retry-After of a refused client, s. It is larger if the permits will probably be held longer. */
  readonly retryAfterS: number
  /** Why a request is refused, without a full stop. */
  readonly refusal: string
  /** How long a request may wait for its permits, and how many requests may wait; none by default. */
  readonly queue?: { readonly waitMs: number; readonly max: number }
}

export interface SlotClaim {
  readonly count: number
  /** The client. Requests without one share one client's share. */
  readonly client?: string | undefined
  /** Aborted when the client is gone. */
  readonly signal?: AbortSignal
}

export interface SlotHold {
  /** Gives the permits back; a second call does nothing. */
  release(): void
  /** Sets the client that takes the answer for which the permits are held. */
  attach(reader: StreamReader): void
  /** Sets a function for the share of the work that is done, from 0 to 1; null if unknown. */
  follow(progress: () => number | null): void
}

/** Counts of what has happened to claims so far. */
export interface SlotFigures {
  granted: number
  /** Refused because all permits were taken, or because the client had used its share. */
  refusedBusy: number
  refusedClient: number
  /** Streams cut off because their clients were slow while another request waited. */
  displaced: number
  /** The total time that granted claims have waited. */
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

interface Waiter extends WaitingClaim {
  readonly startMs: number
  grant(hold: SlotHold): void
  refuse(): void
}

export class Slots {
  readonly #options: SlotsOptions
  readonly #holders = new Set<Holder>()
  readonly #line = new ClaimLine<Waiter>()
  readonly #expectedWait = new ExpectedWait()
  #takenCount = 0
  #lookTimer: NodeJS.Timeout | undefined
  /** Called with the time that each granted claim has waited, in seconds. */
  onGranted: (waitedS: number) => void = () => {}
  readonly figures: SlotFigures = { granted: 0, refusedBusy: 0, refusedClient: 0, displaced: 0, waitedMs: 0 }

  constructor(options: SlotsOptions) {
    this.#options = options
  }

  get takenCount(): number {
    return this.#takenCount
  }

  get waitingCount(): number {
    return this.#line.waitingCount
  }

  /**
   * Takes permits, at once if they are free. A request for more permits than exist is granted when no other is active.
   * @throws {ApiError} `client_limit` (429) when the client has used its share, `too_many_requests` (429) when the permits do
   * not become free in time
   */
  async take({ count, client = '', signal }: SlotClaim): Promise<SlotHold> {
    const { max, clientMax = max, queue } = this.#options
    const heldCount = this.#line.heldBy(client)
    if (clientMax < max && heldCount > 0 && heldCount + count > clientMax)
      throw this.#clientRefusal(client, heldCount + count, clientMax)
    if (this.#hasRoom(count, this.#line.countBefore(client))) return this.#grantAfter(0, { client, count })
    const isFreed = this.#free(client, count)
    const waitMs = Math.max(isFreed ? DISPLACEMENT_MS_MAX : 0, queue?.waitMs ?? 0)
    if (waitMs === 0) throw this.#refusal(client, count)
    const hold = this.#wait({ client, count }, signal, waitMs)
    // A full queue refuses its last claim, which need not be this one.
    if (!isFreed && this.#line.waitingCount > (queue?.max ?? 0)) this.#line.last?.refuse()
    return hold
  }

  /** A claim for more permits than exist is granted when nothing is taken. */
  #hasRoom(count: number, countBefore: number): boolean {
    return this.#takenCount + countBefore === 0 || this.#takenCount + countBefore + count <= this.#options.max
  }

  #grantAfter(waitedMs: number, { client, count }: WaitingClaim): SlotHold {
    this.figures.waitedMs += waitedMs
    this.onGranted(waitedMs / 1000)
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
    this.#line.granted(client, count)
    this.figures.granted += 1
    return {
      release: () => {
        if (!this.#holders.delete(holder)) return
        this.#takenCount -= count
        this.#line.gaveBack(client, count)
        this.#expectedWait.learn(performance.now() - holder.startMs)
        this.#serveWaiters()
      },
      attach: (reader) => (holder.reader = reader),
      follow: (progress) => (holder.progress = progress),
    }
  }

  /**
   * Cuts off slow readers until there is room for a claim of a client and for the claims before it. Returns false, and cuts
   * none, if there are not enough of them.
   */
  #free(client: string, count: number, countBefore = this.#line.countBefore(client, 'ever')): boolean {
    let leftCount = this.#takenCount + countBefore + count - this.#options.max
    for (const holder of this.#holders) if (holder.isDisplaced) leftCount -= holder.count
    const chosen: Holder[] = []
    for (const holder of this.#holders) {
      if (leftCount <= 0) break
      if (holder.isDisplaced || this.#displaceableInMs(holder, client) >= 0) continue
      chosen.push(holder)
      leftCount -= holder.count
    }
    if (leftCount > 0) return false
    for (const holder of chosen) {
      holder.isDisplaced = true
      this.figures.displaced += 1
      holder.reader?.displace()
    }
    return true
  }

  /** In how many ms a stream may be cut off for a claim of the client; below 0: now. */
  #displaceableInMs({ client: holding, reader }: Holder, client: string): number {
    const isFair = holding === client || this.#line.heldBy(holding) > this.#line.heldBy(client)
    return isFair ? (reader?.slowInMs ?? Infinity) : Infinity
  }

  async #wait(
    { client, count }: WaitingClaim,
    signal: AbortSignal | undefined,
    waitMs: number,
  ): Promise<SlotHold> {
    this.#lookTimer ??= setInterval(() => this.#look(), LOOK_MS)
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        this.#line.leave(waiter)
        if (this.#line.waitingCount > 0) return
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
        refuse: () => {
          leave()
          reject(this.#refusal(client, count))
        },
      }
      const timer = setTimeout(() => waiter.refuse(), waitMs)
      const onAbort = (): void => {
        leave()
        reject(new Error('the client is gone'))
      }
      signal?.addEventListener('abort', onAbort)
      this.#line.enter(waiter)
    })
  }

  /** Serves waiting claims again, since readers may have become slow after they came. */
  #look(): void {
    this.#serveWaiters()
    const next = this.#line.next
    if (next === undefined) return
    const owedCount = this.#line.owed.countBefore(next.client, 'ever')
    this.#free(next.client, next.count, owedCount)
  }

  /** Gives free permits to waiting claims, in their order. */
  #serveWaiters(): void {
    for (;;) {
      const next = this.#line.next
      if (next === undefined) return
      if (!this.#hasRoom(next.count, this.#line.owed.countBefore(next.client))) return
      next.grant(this.#grantAfter(performance.now() - next.startMs, next))
    }
  }

  /** The holds of all clients as the client sees them, or its own holds alone. */
  *#holdsOf(client: string, isOwn: boolean): Generator<RunningHold> {
    for (const holder of this.#holders) {
      const { client: holding, count, startMs, progress } = holder
      if (isOwn && client !== holding) continue
      const displaceableInMs = isOwn ? Infinity : this.#displaceableInMs(holder, client)
      yield { count, heldMs: performance.now() - startMs, progress: progress(), displaceableInMs }
    }
  }

  #clientRefusal(client: string, wantedCount: number, clientMax: number): ApiError {
    this.figures.refusedClient += 1
    const surplusCount = wantedCount - clientMax
    const { retryAfterS: minS } = this.#options
    const retryAfterS = this.#expectedWait.retryAfterS(this.#holdsOf(client, true), surplusCount, minS)
    return new ApiError(
      'client_limit',
      `Requests of this client already hold its share, ${clientMax} at once; retry in ${retryAfterS} s.`,
      { headers: { 'Retry-After': String(retryAfterS) } },
    )
  }

  #refusal(client: string, count: number): ApiError {
    this.figures.refusedBusy += 1
    const { max, retryAfterS: minS, refusal } = this.#options
    const wantedCount = this.#takenCount + this.#line.countBefore(client) + count - max
    const retryAfterS = this.#expectedWait.retryAfterS(this.#holdsOf(client, false), wantedCount, minS)
    this.#line.owed.refused(client, { count, retryAfterS })
    return new ApiError('too_many_requests', `${refusal}; retry in ${retryAfterS} s.`, {
      headers: { 'Retry-After': String(retryAfterS) },
    })
  }
}
