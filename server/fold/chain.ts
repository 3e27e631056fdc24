// A chain: messages of one subscription in their order, between which none is missing. Where messages have no sequence numbers,
// it holds messages of one connection. A book is known from its snapshot in a chain to the last message of the chain's connection.

import { later } from '../../shared/utc-date.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import type { GapCause } from './fold-tally.ts'

/** Keys kept of a chain's latest lines, to recognise lines that another piece repeats. */
const RECENT_MAX = 1_024

/** A message with its times, ns. */
export interface TimedMessage {
  readonly message: FeedMessage
  readonly at: bigint
  readonly recvTs: bigint | undefined
}

/** A chain of a recorder's own connection, as plain data. */
export type ChainState = ReturnType<Chain['state']>

/** The first and the last exchange time, and receive time, of lines without sequence numbers. */
export class TimeEnds {
  firstTs: bigint | undefined
  firstRecvTs: bigint | undefined
  lastTs: bigint | undefined
  lastRecvTs: bigint | undefined

  add(ts: bigint | undefined, recvTs: bigint | undefined): void {
    this.firstTs ??= ts
    this.firstRecvTs ??= recvTs
    this.lastTs = ts ?? this.lastTs
    this.lastRecvTs = recvTs ?? this.lastRecvTs
  }

  /** Adds later lines. */
  extend({ firstTs, firstRecvTs, lastTs, lastRecvTs }: TimeEnds): void {
    this.add(firstTs, firstRecvTs)
    this.add(lastTs, lastRecvTs)
  }
}

/** A market that a chain follows. */
export interface FollowedMarket {
  readonly series: string
  /** Time of its latest event: within a chain a market's time never goes back. */
  lastAt: bigint
}

/** From `at` on, chains that continue from the date before no longer follow the markets that `isMeant`. */
export interface Leaving {
  readonly at: bigint
  readonly isMeant: (sid: number | null, marketId: string) => boolean
}

/** How many of `markets` a chain with the markets `own` lacks: 0 for none, 1 for some, 2 for all. */
export function lackOf(markets: ReadonlySet<string>, own: ReadonlySet<string>): 0 | 1 | 2 {
  const shared = [...markets].filter((id) => own.has(id)).length
  if (shared === markets.size) return 0
  return shared > 0 ? 1 : 2
}

export class Chain {
  /** Counts the chains of a date, in the order in which they begin. */
  readonly id: number
  readonly sid: number | null
  /** Counts connections; chains of one connection share it (`Connections`). */
  readonly connection: number
  /** Its first message is the first one of the subscription or connection. */
  isBegun: boolean
  /** The connection ended after its last message. */
  isEnded = false
  /** Why no message follows the last one, if the pieces show another reason than their end. */
  endCause: GapCause | undefined
  /** Whether `no` prices are given on the yes leg; null if unknown. */
  isTurned: boolean | null
  /** It holds only some markets of its subscription: missing numbers belong to the others. */
  isPartial = false
  /** If numbers are missing at its end or beginning: when the piece continues after them, and when it stopped before them. */
  endsBefore: bigint | undefined
  beginsAfter: bigint | undefined
  /** The name that a recorder gave its connection. */
  name: string | undefined
  /** The longest time between two lines without sequence numbers, ns. */
  silence = 0n
  readonly ends = new TimeEnds()
  firstSeq = 0
  firstKey = 0
  firstAt: bigint | undefined
  lastSeq = 0
  lastAt = 0n
  lastRecvTs = 0n
  /** Time of the connection's last message that has no number in this chain. */
  heardUntil = 0n
  lastAsideKey: number | undefined
  /** Without sequence numbers: subscriptions that were confirmed in it. */
  readonly confirmed = new Set<number>()
  readonly followed = new Map<string, FollowedMarket>()
  /** Only in the chain that stands for a recorder's connection. */
  readonly leavings: Leaving[] = []
  /** Markets that its messages concern. */
  readonly markets = new Set<string>()
  /** Ring buffers of the latest lines: number (0 without sequence numbers), and key. */
  readonly #recentSeqs: number[] = []
  readonly #recentKeys: number[] = []
  #lines = 0

  constructor(
    id: number,
    sid: number | null,
    connection: number,
    isBegun: boolean,
    isTurned: boolean | null,
  ) {
    this.id = id
    this.sid = sid
    this.connection = connection
    this.isBegun = isBegun
    this.isTurned = isTurned
  }

  /** By series: time of its first message. */
  readonly #seriesFrom = new Map<string, bigint>()

  static of(state: ChainState): Chain {
    const { id, sid, connection, isBegun, isTurned, followed, markets, seriesFrom, ...rest } = state
    const chain = new Chain(id, sid, connection, isBegun, isTurned)
    Object.assign(chain, rest)
    for (const [market, known] of followed) chain.followed.set(market, { ...known })
    for (const market of markets) chain.markets.add(market)
    for (const [series, at] of seriesFrom) chain.#seriesFrom.set(series, at)
    return chain
  }

  /** Without the keys of its lines. */
  state() {
    const { id, sid, connection, isBegun, isEnded, isTurned, name } = this
    const { firstSeq, firstAt, lastSeq, lastAt, lastRecvTs } = this
    const place = { firstSeq, firstAt, lastSeq, lastAt, lastRecvTs }
    return {
      id,
      sid,
      connection,
      isBegun,
      isEnded,
      isTurned,
      name,
      ...place,
      followed: [...this.followed].map(([market, known]) => [market, { ...known }] as const),
      markets: [...this.markets],
      seriesFrom: [...this.#seriesFrom],
    }
  }

  firstOf(series: string): bigint | undefined {
    return this.#seriesFrom.get(series)
  }

  /** It follows a market of `series` from `at` on. */
  follow(id: string, series: string, at: bigint): FollowedMarket {
    let market = this.followed.get(id)
    if (market === undefined) this.followed.set(id, (market = { series, lastAt: 0n }))
    this.markets.add(id)
    const from = this.#seriesFrom.get(series)
    if (from === undefined || at < from) this.#seriesFrom.set(series, at)
    return market
  }

  /** Adds the next line of the chain. */
  note(seq: number, key: number): void {
    if (this.#lines === 0) [this.firstSeq, this.firstKey] = [seq, key]
    const place = this.#lines++ % RECENT_MAX
    this.#recentSeqs[place] = seq
    this.#recentKeys[place] = key
    if (seq > this.lastSeq) this.lastSeq = seq
  }

  /** Adds the times of a message of the chain. */
  hear(at: bigint, recvTs: bigint): void {
    this.firstAt ??= at
    this.lastAt = later(at, this.lastAt)
    this.lastRecvTs = later(recvTs, this.lastRecvTs)
  }

  /** The key of the line with the number `seq`, if it is one of the latest. */
  keyOf(seq: number): number | undefined {
    return this.#recentKeys[this.#recentSeqs.indexOf(seq)]
  }

  /** The keys of its latest lines, in no order. */
  get recentKeys(): readonly number[] {
    const keys = this.#recentKeys
    return this.lastAsideKey === undefined ? keys : [...keys, this.lastAsideKey]
  }

  /** The keys of its latest `count` lines. */
  latestKeys(count: number): number[] {
    const from = Math.max(0, this.#lines - Math.min(count, RECENT_MAX))
    return Array.from(
      { length: this.#lines - from },
      (_, index) => this.#recentKeys[(from + index) % RECENT_MAX]!,
    )
  }
}

/** Joins connections that turn out to be one: pieces show which chains belong to the same connection. */
export class Connections {
  readonly #parents: number[] = []

  constructor(count = 0) {
    while (this.#parents.length < count) this.add()
  }

  get count(): number {
    return this.#parents.length
  }

  add(): number {
    return this.#parents.push(this.#parents.length) - 1
  }

  of(connection: number): number {
    let root = connection
    while (this.#parents[root] !== root) root = this.#parents[root]!
    this.#parents[connection] = root
    return root
  }

  join(a: number, b: number): number {
    const [first, second] = [this.of(a), this.of(b)]
    const [root, other] = first < second ? [first, second] : [second, first]
    this.#parents[other] = root
    return root
  }
}
