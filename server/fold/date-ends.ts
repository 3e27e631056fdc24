// How the chains of a date end: the last time at which each is known, and what they cover of a series.

import { NS_PER_DAY, earlier, later } from '../../shared/utc-date.ts'
import type { Chain } from './chain.ts'
import type { DateChains } from './date-chains.ts'
import type { GapCause } from './fold-tally.ts'
import { CONNECTION_SID } from './own-connections.ts'

/** Whether the ask prices of a chain are still those of the `no` leg. A recorder subscribes to prices of the yes leg. */
export function isInverted({ isTurned, name }: Chain): boolean {
  return !(isTurned ?? name !== undefined)
}

/** The last known time of each of a date's chains, and what they cover. */
export class DateEnds {
  readonly #reading: DateChains
  readonly #continued: ReadonlySet<number>
  readonly #dayEnd: bigint
  readonly #heard: readonly bigint[]
  /** Numbers of chains after which their connection has a later chain of the same subscription. */
  readonly #replaced = new Set<number>()

  /** The chains of `reading` have all been read. */
  constructor(reading: DateChains, continued: ReadonlySet<number>) {
    this.#reading = reading
    this.#continued = continued
    this.#dayEnd = reading.dayStart + NS_PER_DAY - 1n
    this.#heard = this.#heardTimes()
  }

  /** Any subscription of its connection keeps a chain known, unless numbers are missing after it. */
  #heardTimes(): bigint[] {
    const { chains, connections } = this.#reading
    const lastOf = new Map<number, bigint>()
    const lastOfSid = new Map<string, bigint>()
    for (const chain of chains) {
      const connection = connections.of(chain.connection)
      const key = `${connection} ${chain.sid}`
      lastOf.set(connection, later(later(chain.lastAt, chain.heardUntil), lastOf.get(connection)))
      lastOfSid.set(key, later(chain.lastAt, lastOfSid.get(key)))
    }
    return chains.map((chain) => {
      const connection = connections.of(chain.connection)
      const isReplaced = lastOfSid.get(`${connection} ${chain.sid}`)! > chain.lastAt
      if (isReplaced) this.#replaced.add(chain.id)
      if (this.#continued.has(chain.id)) return later(chain.lastAt, this.#dayEnd)
      return isReplaced || chain.endCause === 'sequence gap' ? chain.lastAt : lastOf.get(connection)!
    })
  }

  causeOf(id: number): GapCause {
    const chain = this.#reading.chains[id]!
    if (chain.endCause !== undefined) return chain.endCause
    if (this.#replaced.has(id)) return 'sequence gap'
    return chain.isEnded ? 'disconnect' : 'end of a piece'
  }

  coverageOf(series: string): { readonly from: bigint; readonly to: bigint } | undefined {
    let covered: { from: bigint; to: bigint } | undefined
    for (const chain of this.#reading.chains) {
      const own = chain.firstOf(series)
      if (own === undefined) continue
      const [from, to] = [later(own, this.#reading.dayStart), earlier(this.#heard[chain.id]!, this.#dayEnd)]
      covered =
        covered === undefined
          ? { from, to }
          : { from: earlier(from, covered.from), to: later(to, covered.to) }
    }
    return covered === undefined || covered.to < covered.from ? undefined : covered
  }

  endChains(): void {
    const covered = new Map<string, bigint>()
    for (const series of this.#reading.series()) covered.set(series, this.coverageOf(series)?.to ?? 0n)
    const { chains, connections } = this.#reading
    const closed = new Set(
      chains
        .filter(({ sid, isEnded }) => sid === CONNECTION_SID && isEnded)
        .map(({ connection }) => connections.of(connection)),
    )
    for (const chain of chains) {
      const heard = this.#heard[chain.id]!
      if (this.#continued.has(chain.id) || heard >= this.#dayEnd) continue
      const isEnded = chain.isEnded || closed.has(connections.of(chain.connection))
      this.#reading.end(chain, heard + 1n, (series) => !isEnded && heard >= covered.get(series)!)
    }
  }
}
