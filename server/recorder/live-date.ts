// The chains of a date that is being recorded.

import { NS_PER_MS, later, utcDateOf } from '../../shared/utc-date.ts'
import { Chain, Connections } from '../fold/chain.ts'
import type { ChainState, TimedMessage } from '../fold/chain.ts'
import { ChainEvents } from '../fold/chain-events.ts'
import type { ChainEventsOptions } from '../fold/chain-events.ts'
import { DateEnds, isInverted } from '../fold/date-ends.ts'
import type { EndingDate } from '../fold/date-ends.ts'
import type { OwnDate } from '../fold/own-connections.ts'

export interface LiveDateState {
  readonly dayStart: bigint
  readonly chains: readonly ChainState[]
  readonly connections: number
  readonly links: readonly (readonly [number, number])[]
}

export interface LiveDateOptions extends Omit<ChainEventsOptions, 'dayStart'> {
  readonly hasNoLeg: boolean
  readonly series: () => Iterable<string>
  /** The start of the open hour, ns: nothing is added to hours before. */
  readonly openFrom: () => bigint
}

export class LiveDate implements OwnDate, EndingDate {
  readonly date: string
  readonly dayStart: bigint
  readonly chains: Chain[]
  readonly connections: Connections
  /** Chains that continue in the next date, with their numbers there. */
  readonly links: Map<number, number>
  readonly #options: LiveDateOptions
  readonly #events: ChainEvents
  #ends: DateEnds | undefined

  constructor(dayStart: bigint, options: LiveDateOptions, state?: LiveDateState) {
    this.dayStart = dayStart
    this.date = utcDateOf(Number(dayStart / NS_PER_MS))
    this.#options = options
    this.#events = new ChainEvents({ ...options, dayStart })
    this.chains = (state?.chains ?? []).map((chain) => Chain.of(chain))
    this.connections = new Connections(state?.connections)
    this.links = new Map(state?.links)
  }

  state(): LiveDateState {
    return {
      dayStart: this.dayStart,
      chains: this.chains.map((chain) => chain.state()),
      connections: this.connections.count,
      links: [...this.links],
    }
  }

  addChain(sid: number | null, connection: number, isBegun: boolean, isTurned: boolean | null): Chain {
    const chain = new Chain(this.chains.length, sid, connection, isBegun, isTurned)
    this.chains.push(chain)
    return chain
  }

  chainOf(id: number): Chain {
    return this.chains[id]!
  }

  take(chain: Chain, message: TimedMessage): void {
    this.#events.take(chain, message)
  }

  leave(chain: Chain, id: string, ts: bigint): void {
    this.#events.leave(chain, id, ts)
  }

  end(chain: Chain, ts: bigint, isLast: (series: string) => boolean): void {
    this.#events.end(chain, later(ts, this.#options.openFrom()), isLast)
  }

  series(): Iterable<string> {
    return this.#options.series()
  }

  get isFinished(): boolean {
    return this.#ends !== undefined
  }

  /** The date is over. Ends the chains that do not continue in the next date. */
  finish(): void {
    this.#ends = new DateEnds(this, new Set(this.links.keys()))
    this.#ends.endChains()
  }

  /** The covered time of a series so far, ns, both ends inclusive. */
  coverageOf(series: string): { readonly from: bigint; readonly to: bigint } | undefined {
    return (this.#ends ?? new DateEnds(this, new Set())).coverageOf(series)
  }

  /** Whether a chain's ask prices are still those of the `no` leg. */
  isInverted(chain: number): boolean {
    return this.#options.hasNoLeg && isInverted(this.chains[chain]!)
  }
}
