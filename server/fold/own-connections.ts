// The connections of recorders, read line by line. A recorder names the connection of each line and numbers the lines, so nothing
// has to be inferred. Every result depends on the lines alone: a recorder that reads its log and a fold that reads its segments get
// the same books.

import { NS_PER_HOUR, later } from '../../shared/utc-date.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import type { Chain, Leaving } from './chain.ts'
import { leftMarkets } from './date-chains.ts'
import type { DateChains } from './date-chains.ts'
import type { FoldTally, GapCause } from './fold-tally.ts'
import { bookTime, dayOf, exchangeTime, floorOf, offsetOf, openFrom } from './own-times.ts'
import { partsOf } from './own-process.ts'
import type { OwnLine } from './piece.ts'
import { Subscriptions } from './subscriptions.ts'

/** A recorder without a line for this long stood still. Its connections may have missed messages. */
export const PAUSE_NS_MAX = 60_000_000_000n
/** Lines without an exchange time wait this long for the first message with one. */
const WAIT_NS_MAX = 2_000_000_000n
/** The subscription of the chain that stands for the connection itself. */
export const CONNECTION_SID = -1

export interface OwnConnectionsOptions {
  readonly isNumbered: boolean
  /** The date of a UTC day that begins at `dayStart` (ns). */
  readonly dateOf: (dayStart: bigint) => DateChains
  /** All lines belong to one date, whatever their times. */
  readonly isOneDate?: boolean
  readonly tally?: FoldTally | undefined
  /** Books of `count` markets are unknown from now on. */
  readonly onGap?: ((cause: GapCause, count: number) => void) | undefined
  /** A chain continues in the next date as `to`. */
  readonly onLink?: ((from: Chain, to: Chain, date: DateChains) => void) | undefined
}

interface Recorder {
  start: number
  /** The latest receive time of this process. */
  now: bigint
  /** The latest time that a line shows: a receive time or, if the recorder's clock is behind, an exchange time. */
  shown: bigint
  /** The latest UTC hour (since the epoch) of a line. */
  hour: number
}

interface Connection {
  readonly name: string
  readonly recorder: string
  nextN: number
  /** UTC hour since the epoch of its latest line. */
  hour: number
  date: DateChains
  /** Its number in the date. */
  number: number
  /** The chain of the connection itself: every line is a message of it, numbered by `n`. */
  spine: Chain
  readonly chains: Map<number | null, Chain>
  subscriptions: Subscriptions
  /** It began before the date. */
  isOlder: boolean
  /** The smallest receive time minus exchange time, ns. */
  lag: bigint | undefined
  waiting: OwnLine[]
}

type CurrentState = ReturnType<OwnConnections['state']>

/** Plain data. Checkpoints of earlier versions state less of a recorder. */
export interface OwnConnectionsState extends Omit<CurrentState, 'recorders'> {
  readonly recorders: readonly (readonly [string, Pick<Recorder, 'start' | 'now'> & Partial<Recorder>])[]
}

export class OwnConnections {
  readonly #options: OwnConnectionsOptions
  readonly #recorders: Map<string, Recorder>
  readonly #connections = new Map<string, Connection>()
  /** Lines whose events are placed at the start of the open hour. */
  movedLines = 0

  constructor(options: OwnConnectionsOptions, state?: OwnConnectionsState) {
    this.#options = options
    this.#recorders = new Map(
      state?.recorders.map(([name, { start, now, shown = now, hour = 0 }]) => [
        name,
        { start, now, shown, hour },
      ]),
    )
    for (const saved of state?.connections ?? []) {
      const date = options.dateOf(saved.dayStart)
      const chains = new Map(saved.chains.map(([sid, id]) => [sid, date.chains[id]!] as const))
      const subscriptions = new Subscriptions(true, saved.subscriptions)
      const spine = date.chains[saved.spine]!
      this.#connections.set(saved.name, {
        ...saved,
        waiting: [...saved.waiting],
        date,
        chains,
        subscriptions,
        spine,
      })
    }
  }

  state() {
    return {
      recorders: [...this.#recorders].map(([name, recorder]) => [name, { ...recorder }] as const),
      connections: [...this.#connections.values()].map(({ date, spine, chains, subscriptions, ...rest }) => ({
        ...rest,
        waiting: [...rest.waiting],
        dayStart: date.dayStart,
        spine: spine.id,
        chains: [...chains].map(([sid, chain]) => [sid, chain.id] as const),
        subscriptions: subscriptions.state(),
      })),
    }
  }

  /**
   * Reads the next line of a connection. Returns the UTC hour (since the epoch) that it belongs to; undefined if the line was
   * read before.
   */
  take(line: OwnLine): number | undefined {
    const { recorder: name, start } = partsOf(line.connection)
    const recorder = this.#recorders.get(name) ?? { start, now: line.recvTs, shown: line.recvTs, hour: 0 }
    this.#recorders.set(name, recorder)
    const known = this.#connections.get(line.connection)
    if (start < recorder.start || (known !== undefined && line.n < known.nextN)) return undefined
    const isNew = start > recorder.start
    // A line of a new process belongs to no earlier hour than the lines of the process before.
    let shown = isNew ? later(recorder.shown, openFrom(recorder.hour)) : recorder.shown
    // A connection is closed up to 35 s after its last message, which may be in the hour that is still open.
    const isClose = line.event === 'close'
    const ts = exchangeTime(line, this.#options.isNumbered)
    if (!isClose) shown = later(later(line.recvTs, ts), shown)
    const hour = this.#hourOf(known, ts ?? line.recvTs - offsetOf(known?.lag), shown)
    const date = this.#options.dateOf(dayOf(hour))
    const isPause = line.recvTs > recorder.now + PAUSE_NS_MAX
    // The hour of the last line is still open.
    if (isNew || isPause) this.#interrupt(name, date.dayStart, isNew)
    if (!isClose) recorder.now = isNew ? line.recvTs : later(line.recvTs, recorder.now)
    recorder.start = start
    recorder.shown = shown
    recorder.hour = Math.max(hour, recorder.hour, Number(date.dayStart / NS_PER_HOUR))
    const connection = this.#enter(this.#connections.get(line.connection), line, date, hour, name)
    if (line.n > connection.nextN) this.#lose(connection, 'loss in the recording')
    connection.nextN = line.n + 1
    const { spine } = connection
    spine.lastSeq = line.n + 1
    spine.ends.add(undefined, later(line.recvTs, spine.ends.lastRecvTs))
    this.#receive(connection, line)
    return hour
  }

  /** The latest time that the lines of a recorder show, ns. */
  shownBy(name: string): bigint {
    return this.#recorders.get(name)?.shown ?? 0n
  }

  /** The latest UTC hour (since the epoch) of a line of a recorder; 0 before the first. */
  hourOf(name: string): number {
    return this.#recorders.get(name)?.hour ?? 0
  }

  hasOpen(name: string): boolean {
    return [...this.#connections.values()].some(({ recorder }) => recorder === name)
  }

  /** The smallest receive time minus exchange time of the connections of a recorder, ns; undefined before any states a time. */
  lagOf(name: string): bigint | undefined {
    let least: bigint | undefined
    for (const { recorder, lag } of this.#connections.values())
      if (recorder === name && lag !== undefined && (least === undefined || lag < least)) least = lag
    return least
  }

  /** A date is over: connections without a line of the next date continue in it. */
  enterDate(next: DateChains): void {
    for (const connection of this.#connections.values()) {
      if (connection.date.dayStart >= next.dayStart) continue
      connection.hour = Number(next.dayStart / NS_PER_HOUR)
      this.#cross(connection, next, connection.nextN)
    }
  }

  /** Call it after the last line. Waiting lines get their receive times. */
  finish(): void {
    for (const connection of this.#connections.values()) this.#release(connection)
  }

  // The hour of a line.

  #hourOf(connection: Connection | undefined, at: bigint, shown: bigint): number {
    const hour = Number(later(at, floorOf(shown)) / NS_PER_HOUR)
    return connection === undefined || hour > connection.hour ? hour : connection.hour
  }

  #enter(
    known: Connection | undefined,
    { connection: name, n }: OwnLine,
    date: DateChains,
    hour: number,
    recorder: string,
  ): Connection {
    if (known !== undefined) {
      known.hour = hour
      if (known.date.dayStart === date.dayStart) return known
      if (n === known.nextN) {
        this.#cross(known, date, n)
        return known
      }
      // The date before ends it at its last message.
      this.#drop(known)
    }
    const connection: Connection = {
      name,
      recorder,
      nextN: n,
      hour,
      chains: new Map(),
      ...this.#begin(name, date, n),
    }
    this.#connections.set(name, connection)
    return connection
  }

  /** The state of a connection at its first line in a date. */
  #begin(name: string, date: DateChains, n: number) {
    const number = date.connections.add()
    const spine = date.addChain(CONNECTION_SID, number, n === 0, true)
    spine.name = name
    spine.firstSeq = n + 1
    return {
      date,
      number,
      spine,
      subscriptions: new Subscriptions(true),
      isOlder: n > 0,
      lag: undefined,
      waiting: [],
    }
  }

  /** The connection continues in another date. */
  #cross(connection: Connection, date: DateChains, n: number): void {
    this.#release(connection)
    const { chains, spine, name } = connection
    Object.assign(connection, this.#begin(name, date, n), { isOlder: true })
    connection.spine.hear(date.dayStart, date.dayStart)
    connection.spine.lastSeq = n
    this.#options.onLink?.(spine, connection.spine, date)
    for (const [sid, chain] of chains) {
      const next = date.addChain(sid, connection.number, false, chain.isTurned)
      next.name = name
      next.lastSeq = chain.lastSeq
      next.hear(date.dayStart, date.dayStart)
      for (const [id, { series }] of chain.followed) next.follow(id, series, date.dayStart)
      chains.set(sid, next)
      this.#options.onLink?.(chain, next, date)
    }
  }

  // Ends of connections and chains.

  /** The recorder stood still or was restarted: its connections may have missed messages. */
  #interrupt(recorder: string, dayStart: bigint, isOver: boolean): void {
    for (const connection of this.#connections.values()) {
      if (connection.recorder !== recorder) continue
      if (connection.date.dayStart < dayStart) this.#drop(connection)
      else if (isOver) this.#close(connection)
      else this.#lose(connection, 'loss in the recording')
    }
  }

  /** Removes a connection. Its date ends its chains. */
  #drop(connection: Connection): void {
    this.#release(connection)
    this.#connections.delete(connection.name)
  }

  #close(connection: Connection): void {
    this.#lose(connection, 'disconnect')
    connection.spine.isEnded = true
    this.#connections.delete(connection.name)
  }

  /** Messages are lost: ends all chains, so that their books are unknown until the next snapshot. */
  #lose(connection: Connection, cause: GapCause): void {
    this.#release(connection)
    const { spine, date } = connection
    if (connection.isOlder) {
      const at = this.#placeEnd(connection, later(spine.lastAt, date.dayStart) + 1n)
      this.#addLeaving(connection, at, () => true)
    }
    for (const chain of connection.chains.values()) {
      chain.isEnded = true
      this.#end(connection, chain, later(chain.lastAt, connection.spine.lastAt) + 1n, cause)
    }
    connection.chains.clear()
    connection.subscriptions.clear()
    connection.isOlder = false
  }

  #end(connection: Connection, chain: Chain, ts: bigint, cause: GapCause): void {
    chain.endCause = cause
    connection.date.end(chain, this.#placeEnd(connection, ts), () => false)
    this.#options.onGap?.(cause, chain.followed.size)
    chain.followed.clear()
  }

  #placeEnd({ date, spine, recorder }: Connection, ts: bigint): bigint {
    const floor = later(floorOf(this.#recorders.get(recorder)!.shown), date.dayStart)
    // An event at the start of the open hour means that the chain is covered until then.
    if (floor > ts) spine.hear(floor, floor)
    return later(ts, floor)
  }

  /** Stores an end of markets that the connection followed at midnight: a fold of one date learns only later which these are. */
  #addLeaving({ spine, isOlder }: Connection, at: bigint, isMeant: Leaving['isMeant']): void {
    if (isOlder && this.#options.isOneDate === true) spine.leavings.push({ at, isMeant })
  }

  #addLeavings(connection: Connection, { sid, body }: FeedMessage, at: bigint): void {
    if (body.kind === 'book' && sid !== undefined)
      this.#addLeaving(connection, at + 1n, (other, id) => other !== sid && id === body.marketId)
    const isLeft = leftMarkets(body)
    if (isLeft !== undefined)
      this.#addLeaving(connection, at, (other, id) => (sid === undefined || other === sid) && isLeft(id))
  }

  // Times.

  #receive(connection: Connection, line: OwnLine): void {
    const ts = exchangeTime(line, this.#options.isNumbered)
    if (ts !== undefined && (connection.lag === undefined || line.recvTs - ts < connection.lag))
      connection.lag = line.recvTs - ts
    const { waiting } = connection
    const isEnd = line.event === 'close' || line.event === 'lost'
    const [first] = waiting
    if (
      connection.lag !== undefined ||
      isEnd ||
      (first !== undefined && line.recvTs >= first.recvTs + WAIT_NS_MAX)
    )
      this.#release(connection)
    if (connection.lag === undefined && !isEnd) connection.waiting.push(line)
    else this.#read(connection, line)
  }

  #release(connection: Connection): void {
    const { waiting } = connection
    connection.waiting = []
    for (const line of waiting) this.#read(connection, line)
  }

  #timeOf({ lag, date, recorder }: Connection, line: OwnLine): bigint {
    const received = line.recvTs - offsetOf(lag)
    let at = exchangeTime(line, this.#options.isNumbered) ?? received
    if (!this.#options.isNumbered) at = bookTime(line, received) ?? at
    const floor = floorOf(this.#recorders.get(recorder)!.shown)
    if (at < floor) this.movedLines++
    return later(later(at, floor), date.dayStart)
  }

  // Messages.

  #read(connection: Connection, line: OwnLine): void {
    const { spine, date, isOlder } = connection
    const isLoss = line.event === 'lost' || (line.isSkipped === true && !this.#options.isNumbered)
    // This line has no message, but it shows that the connection continues in the date.
    if (isOlder && spine.firstAt === undefined && (isLoss || line.event === 'close'))
      spine.hear(date.dayStart, date.dayStart)
    if (line.event === 'close') {
      this.#close(connection)
      return
    }
    if (isLoss) {
      this.#lose(connection, 'loss in the recording')
      return
    }
    if (line.event !== undefined) {
      spine.hear(later(line.recvTs - offsetOf(connection.lag), date.dayStart), line.recvTs)
      return
    }
    if (line.rowRecvTs !== undefined) {
      this.#readRow(connection, line, line.rowRecvTs)
      return
    }
    const at = this.#timeOf(connection, line)
    if (line.messages.some(({ body }) => body.kind === 'disconnect')) {
      this.#lose(connection, 'disconnect')
      return
    }
    spine.hear(at, line.recvTs)
    for (const message of line.messages) {
      this.#addLeavings(connection, message, at)
      if (this.#options.isNumbered) this.#readNumbered(connection, message, at, line.recvTs)
      else this.#deliver(connection, this.#chain(connection, null), message, at, line.recvTs)
    }
  }

  /** Rows have no sequence numbers; they keep their own times. */
  #readRow(connection: Connection, line: OwnLine, recvTs: bigint): void {
    const chain = this.#chain(connection, null)
    chain.isTurned = true
    connection.spine.hear(line.recvTs, line.recvTs)
    for (const message of line.messages) this.#deliver(connection, chain, message, line.recvTs, recvTs)
  }

  #readNumbered(connection: Connection, message: FeedMessage, at: bigint, recvTs: bigint): void {
    const { chains, subscriptions } = connection
    const { sid, seq, body } = message
    if (body.kind === 'subscribe') {
      subscriptions.rememberCommand(body.id, body.useYesPrice)
      return
    }
    if (body.kind === 'subscribed' && body.subscription !== undefined) {
      this.#endChain(connection, body.subscription)
      subscriptions.begin(body.id, body.subscription)
    }
    if (sid === undefined || seq === undefined) {
      for (const chain of chains.values())
        if (sid === undefined || chain.sid === sid) this.#deliver(connection, chain, message, at, recvTs)
      return
    }
    const known = chains.get(sid)
    const { tally } = this.#options
    // A repeated message.
    if (known !== undefined && seq <= known.lastSeq) {
      if (tally !== undefined) tally.repeats++
      return
    }
    if (known !== undefined && seq !== known.lastSeq + 1) {
      this.#endChain(connection, sid)
      if (tally !== undefined) {
        tally.missing.holes++
        tally.missing.numbers += seq - known.lastSeq - 1
      }
    }
    const chain = this.#chain(connection, sid)
    if (chain.firstSeq === 0) chain.firstSeq = seq
    chain.lastSeq = seq
    this.#deliver(connection, chain, message, at, recvTs)
    // A market belongs to one subscription of a connection: the one with its latest snapshot.
    if (body.kind === 'book')
      for (const other of chains.values())
        if (other !== chain) connection.date.leave(other, body.marketId, at + 1n)
    if (body.kind === 'unsubscribed') chains.delete(sid)
  }

  /** Ends a subscription's chain: numbers are missing, or the subscription begins again. */
  #endChain(connection: Connection, sid: number): void {
    const chain = connection.chains.get(sid)
    if (chain === undefined) return
    connection.chains.delete(sid)
    chain.isEnded = true
    this.#addLeaving(connection, this.#placeEnd(connection, chain.lastAt + 1n), (other) => other === sid)
    this.#end(connection, chain, chain.lastAt + 1n, 'sequence gap')
  }

  #chain(connection: Connection, sid: number | null): Chain {
    const { chains, date, number, subscriptions, isOlder } = connection
    const known = chains.get(sid)
    if (known !== undefined) return known
    const { isBegun, isTurned } =
      sid === null ? { isBegun: !isOlder, isTurned: null } : subscriptions.take(sid)
    // A subscription from before the date gets `isTurned` from the date before.
    const chain = date.addChain(sid, number, isBegun, isOlder && !isBegun && sid !== null ? null : isTurned)
    chain.name = connection.name
    chains.set(sid, chain)
    return chain
  }

  #deliver({ date }: Connection, chain: Chain, message: FeedMessage, at: bigint, recvTs: bigint): void {
    chain.hear(at, recvTs)
    date.take(chain, { message, at, recvTs })
  }
}

/** When a chain of the connection of `spine` leaves a market that it follows from the date before. */
export function leavingOf(spine: Chain, sid: number | null, marketId: string): bigint | undefined {
  return spine.leavings.find(({ isMeant }) => isMeant(sid, marketId))?.at
}
