// The chains of a UTC date. Their messages become book events of lob.v1, which are added to the recordings of their series.

import { EVENT_ADD, EVENT_CLEAR, EVENT_SET, SIDE_BID } from '../../shared/lob-v1.ts'
import { NS_PER_DAY, NS_PER_MS, utcDateOf } from '../../shared/utc-date.ts'
import { marketsOf } from '../feed/feed-message.ts'
import type { FeedBody, LevelChange } from '../feed/feed-message.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import { CHAIN_LEFT, CHAIN_OVER, RECORDING_OVER } from '../lake/market-fold.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import { Chain, Connections } from './chain.ts'
import type { FollowedMarket, TimedMessage } from './chain.ts'
import type { FoldTally } from './fold-tally.ts'
import { OUTLIER_NS_MIN } from './message-times.ts'

export interface DateChainsOptions {
  /** Start of the UTC date, ns. Events outside the date are placed at its nearest instant. */
  readonly dayStart: bigint
  readonly tally: FoldTally
  readonly seriesOf: (marketId: string) => string
  readonly recordingOf: (series: string) => SeriesRecording
  /** Called with the number of bytes by which the events in memory have grown. */
  readonly onGrown: (bytes: number) => void
}

type Place = Pick<TimedMessage, 'at' | 'recvTs'> & { readonly seq: number }

export abstract class DateChains {
  readonly date: string
  /** ns. */
  readonly dayStart: bigint
  /** By their numbers. */
  readonly chains: Chain[]
  readonly connections: Connections
  readonly #options: DateChainsOptions
  readonly #dayEnd: bigint

  constructor(options: DateChainsOptions, chains: Chain[] = [], connections = new Connections()) {
    this.#options = options
    this.dayStart = options.dayStart
    this.date = utcDateOf(Number(this.dayStart / NS_PER_MS))
    this.#dayEnd = this.dayStart + NS_PER_DAY - 1n
    this.chains = chains
    this.connections = connections
  }

  /** The series that have messages. */
  abstract series(): Iterable<string>

  addChain(sid: number | null, connection: number, isBegun: boolean, isTurned: boolean | null): Chain {
    const chain = new Chain(this.chains.length, sid, connection, isBegun, isTurned)
    this.chains.push(chain)
    return chain
  }

  /** Takes the messages of each chain in their order. */
  take(chain: Chain, { message, at, recvTs }: TimedMessage): void {
    const { seq = 0, body } = message
    const { tally } = this.#options
    const place = { at, recvTs, seq }
    tally.messages++
    // An imported line of a later date between lines of this date: from here on, its markets are unknown on this date.
    if (chain.name === undefined && at > this.#dayEnd + OUTLIER_NS_MIN) {
      const markets = marketsOf(body)
      this.#leave(chain, place, (id) => markets.includes(id))
      return
    }
    const isLeft = leftMarkets(body)
    if (isLeft !== undefined) this.#leave(chain, place, isLeft)
    else if (body.kind === 'book') this.#book(chain, body.marketId, place, body.levels)
    else if (body.kind === 'other') tally.countSkipped(body.name)
    else if (body.kind === 'changes')
      for (const change of body.changes) this.#change(chain, place, body.event, change)
  }

  /**
   * The chain has no more messages from `ts` on. `isLast`: nothing more is recorded of a series after it, so this end is not a
   * gap.
   */
  end(chain: Chain, ts: bigint, isLast: (series: string) => boolean): void {
    const place = { at: ts, recvTs: chain.lastRecvTs, seq: chain.lastSeq }
    for (const [id, market] of chain.followed) {
      const event = isLast(market.series) ? RECORDING_OVER : CHAIN_OVER
      this.#append(chain, id, market, place, event, NOTHING)
    }
  }

  /** The chain has no more messages of a market from `ts` on, because another chain of its connection has them. */
  leave(chain: Chain, id: string, ts: bigint): void {
    const market = chain.followed.get(id)
    if (market === undefined) return
    this.#append(chain, id, market, { at: ts, recvTs: ts, seq: chain.lastSeq }, CHAIN_LEFT, NOTHING)
    chain.followed.delete(id)
  }

  #book(chain: Chain, id: string, place: Place, levels: readonly BookLevel[]): void {
    const market = this.#follow(chain, id, place.at)
    this.#options.tally.snapshots++
    this.#append(chain, id, market, place, EVENT_CLEAR, NOTHING)
    for (const level of levels) if (level.qty !== 0) this.#append(chain, id, market, place, EVENT_SET, level)
  }

  #change(chain: Chain, place: Place, event: number, change: LevelChange): void {
    if (event === EVENT_ADD && change.qty === 0) return
    this.#append(chain, change.marketId, this.#follow(chain, change.marketId, place.at), place, event, change)
  }

  #leave(chain: Chain, place: Place, isMeant: (id: string) => boolean): void {
    for (const [id, market] of chain.followed) {
      if (!isMeant(id)) continue
      this.#append(chain, id, market, place, CHAIN_LEFT, NOTHING)
      chain.followed.delete(id)
      this.#options.tally.countGap('no longer followed')
    }
  }

  #follow(chain: Chain, id: string, at: bigint): FollowedMarket {
    return chain.followed.get(id) ?? chain.follow(id, this.#options.seriesOf(id), at)
  }

  #append(
    chain: Chain,
    marketId: string,
    market: FollowedMarket,
    { at, recvTs, seq }: Place,
    event: number,
    { side, price, qty }: BookLevel,
  ): void {
    const { recordingOf, onGrown, tally } = this.#options
    let ts = at > market.lastAt ? at : market.lastAt
    if (ts < this.dayStart) ts = this.dayStart
    else if (ts > this.#dayEnd) ts = this.#dayEnd
    market.lastAt = ts
    const recording = recordingOf(market.series)
    const bytes = recording.append({
      marketId,
      ts,
      recvTs: recvTs ?? ts,
      seq: BigInt(seq),
      event,
      side,
      price,
      qty,
      chain: chain.id,
    })
    if (bytes > 0) onGrown(bytes)
    if (event <= EVENT_ADD) tally.events++
  }
}

/** Which markets a chain no longer follows after a message; undefined if the message does not change that. */
export function leftMarkets(body: FeedBody): ((marketId: string) => boolean) | undefined {
  switch (body.kind) {
    case 'following':
      return (id) => !body.marketIds.has(id)
    case 'left':
      return (id) => body.tokens.has(id.slice(id.lastIndexOf(':') + 1))
    case 'unsubscribed':
      return () => true
    case 'finished':
      return (id) => id === body.marketId
    default:
      return undefined
  }
}

const NOTHING: BookLevel = { side: SIDE_BID, price: 0, qty: 0 }
