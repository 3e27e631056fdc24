// The chains of a date that is being recorded.

import { later } from '../../shared/utc-date.ts'
import { Chain, Connections } from '../fold/chain.ts'
import { DateChains } from '../fold/date-chains.ts'
import type { DateChainsOptions } from '../fold/date-chains.ts'
import { DateEnds, isInverted } from '../fold/date-ends.ts'

/** Plain data. */
export type LiveDateState = ReturnType<LiveDate['state']>

export interface LiveDateOptions extends Omit<DateChainsOptions, 'dayStart'> {
  readonly hasNoLeg: boolean
  readonly series: () => Iterable<string>
  /** The start of the open hour, ns: nothing is added to hours before. */
  readonly openFrom: () => bigint
}

export class LiveDate extends DateChains {
  /** Chains that continue in the next date, with their numbers there. */
  readonly links: Map<number, number>
  readonly #options: LiveDateOptions
  #ends: DateEnds | undefined

  constructor(dayStart: bigint, options: LiveDateOptions, state?: LiveDateState) {
    const chains = (state?.chains ?? []).map((chain) => Chain.of(chain))
    super({ ...options, dayStart }, chains, new Connections(state?.connections))
    this.#options = options
    this.links = new Map(state?.links)
  }

  state() {
    return {
      dayStart: this.dayStart,
      chains: this.chains.map((chain) => chain.state()),
      connections: this.connections.count,
      links: [...this.links],
    }
  }

  override end(chain: Chain, ts: bigint, isLast: (series: string) => boolean): void {
    super.end(chain, later(ts, this.#options.openFrom()), isLast)
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
