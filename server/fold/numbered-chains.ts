// The chains of an exchange whose messages have sequence numbers. A run continues the chain whose last number is the one before its
// first. If several chains fit, it continues one that has all of its markets, else one that has some; then one whose last message is
// another event than its first, then the one that is nearest in time.

import { groupedBy } from '../../shared/grouped-by.ts'
import { NS_PER_DAY, later } from '../../shared/utc-date.ts'
import { areOfOneEvent } from '../feed/feed-message.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import { lackOf } from './chain.ts'
import type { Chain, Connections } from './chain.ts'
import type { DateChains } from './date-chains.ts'
import type { FoldTally } from './fold-tally.ts'
import { clockOffset, messageTimes } from './message-times.ts'
import type { RecordedTimes } from './message-times.ts'
import { END_MESSAGES, joinRuns, readRuns } from './numbered-runs.ts'
import type { AsideMessage, NumberedMessage, PieceRuns, Run } from './numbered-runs.ts'
import type { Piece } from './piece.ts'

/** A run may begin this long before the end of its chain, because clocks differ. */
const OVERLAP_NS_MAX = 60_000_000_000n
/** The maximum number of messages of a connection that wait for the first one with both times. */
const WAITING_MAX = 10_000

/** The end of a chain, as it is compared with the beginning of a run. */
export interface Tail {
  readonly sid: number | null
  readonly lastSeq: number
  readonly lastAt: bigint
  readonly lastRecvTs: bigint | undefined
  readonly isEnded: boolean
  /** See Run. */
  readonly endsBefore: bigint | undefined
  readonly markets: ReadonlySet<string>
  /** The keys of its latest lines. */
  readonly recentKeys?: readonly number[]
  /** Its last message. */
  readonly last?: readonly FeedMessage[]
}

export interface Head {
  readonly sid: number | null
  readonly isPartial: boolean
  /** See Run. */
  readonly beginsAfter: bigint | undefined
  readonly firstSeq: number
  readonly firstAt: bigint
  readonly firstRecvTs: bigint | undefined
  readonly lastAt: bigint
  readonly markets: ReadonlySet<string>
  /** The line that its piece shares with the piece before. */
  readonly afterKey?: number | undefined
  /** Its first message. */
  readonly first?: readonly FeedMessage[]
}

/** The chain that a run continues; undefined if none fits. */
export function predecessorOf<T extends Tail>(head: Head, tails: Iterable<T>): T | undefined {
  if (head.firstSeq <= 1) return undefined
  let best: T | undefined
  let [bestRank, bestAway] = [0, 0n]
  for (const tail of tails) {
    const isNext = head.isPartial ? tail.lastSeq < head.firstSeq : tail.lastSeq === head.firstSeq - 1
    if (tail.sid !== head.sid || tail.isEnded || !isNext) continue
    // Another file may have the missing messages, but not later than the piece continues.
    if (tail.endsBefore !== undefined && head.firstAt > tail.endsBefore + OVERLAP_NS_MAX) continue
    if (head.beginsAfter !== undefined && tail.lastAt + OVERLAP_NS_MAX < head.beginsAfter) continue
    if (!isNear(head, tail)) continue
    if (isBehind(head, tail)) return tail
    // A recording of some markets may have fewer of them in the next file.
    if (head.isPartial && ![...tail.markets].every((id) => head.markets.has(id))) continue
    const away = head.firstAt - tail.lastAt
    const rank =
      2 * lackOf(head.markets, tail.markets) + Number(areOfOneEvent(tail.last ?? [], head.first ?? []))
    const distance = away < 0n ? -away : away
    if (best !== undefined && (rank === bestRank ? distance >= bestAway : rank > bestRank)) continue
    best = tail
    bestRank = rank
    bestAway = distance
  }
  return best
}

/** The head's piece begins with a line of the tail. */
function isBehind({ afterKey }: Pick<Head, 'afterKey'>, { recentKeys }: Pick<Tail, 'recentKeys'>): boolean {
  return afterKey !== undefined && recentKeys?.includes(afterKey) === true
}

function isWithin(away: bigint): boolean {
  return away <= NS_PER_DAY && away >= -OVERLAP_NS_MAX
}

/** Compares exchange times and receive times: a recorder's clock may be off, and snapshots have only receive times. */
function isNear(
  head: Pick<Head, 'firstAt' | 'firstRecvTs'>,
  tail: Pick<Tail, 'lastAt' | 'lastRecvTs'>,
): boolean {
  if (isWithin(head.firstAt - tail.lastAt)) return true
  const [first, last] = [head.firstRecvTs, tail.lastRecvTs]
  return first !== undefined && last !== undefined && isWithin(first - last)
}

class OpenChain implements Tail {
  readonly chain: Chain
  readonly sid: number
  readonly markets: Set<string>
  lastSeq = 0
  last: readonly FeedMessage[] = []
  lastAt = 0n
  lastRecvTs: bigint | undefined
  isEnded = false
  endsBefore: bigint | undefined
  /** Messages that wait until the offset of the recorder's clock is known. */
  waiting: TimelessMessage[] = []

  constructor(chain: Chain, sid: number) {
    this.chain = chain
    this.sid = sid
    this.markets = chain.markets
  }

  get recentKeys(): readonly number[] {
    return this.chain.recentKeys
  }
}

/** A message of a chain, before it has a time. */
interface TimelessMessage extends RecordedTimes {
  readonly seq: number
  readonly key: number | undefined
  readonly message: NumberedMessage['message']
}

/** Where chains and their messages go. */
export type ChainTarget = Pick<DateChains, 'connections' | 'addChain' | 'take'>

export class NumberedChains {
  readonly #target: ChainTarget
  readonly #connections: Connections
  readonly #tally: FoldTally
  readonly #open: OpenChain[] = []
  readonly #tails = new Tails()
  /** Runs of the hour before that continue no chain so far. */
  #late: Run[] = []
  /** By connection: the latest offset of its recorder's clock. */
  readonly #offsets = new Map<number, bigint>()

  constructor(target: ChainTarget, tally: FoldTally) {
    this.#target = target
    this.#connections = target.connections
    this.#tally = tally
  }

  /** Takes the pieces of an hour. Call it in the order of the hours. */
  read(pieces: readonly Piece[]): void {
    const read = pieces.map((piece) => readRuns(piece, this.#connections, this.#tally))
    const late = new Set(this.#late)
    const isLate = (run: Run): boolean => run.messages.some(({ key }) => lateKeys.has(key))
    const lateKeys = new Set([...late].flatMap((run) => run.messages.map(({ key }) => key)))
    this.#late = []
    this.#add(
      joinRuns([...late, ...read.flatMap((one) => one.runs)], this.#connections, this.#tally),
      (run) => late.has(run) || (late.size > 0 && isLate(run)),
    )
    for (const piece of read) {
      this.#addLone(piece)
      for (const recvTs of piece.closes) this.#close(recvTs, piece.afterKey)
    }
  }

  /** Call it after the last hour. Waiting runs begin chains, and waiting messages get their receive times. */
  finish(): void {
    const late = this.#late
    this.#late = []
    this.#add(late, () => true)
    this.#deliver(true)
  }

  /** A run that continues no chain waits an hour, unless `mayBegin`: the line before it may have been filed under the next hour. */
  #add(runs: readonly Run[], mayBegin: (run: Run) => boolean): void {
    for (const head of inChainOrder(runs.map((run) => withTimes(run)))) {
      const { run } = head
      const repeated = this.#tails.repeatedBy(run)
      const open = repeated ?? predecessorOf(head, this.#tails.before(head))
      if (open === undefined && head.firstSeq > 1 && !mayBegin(run)) this.#late.push(run)
      else this.#place(head, open ?? this.#begin(head), repeated !== undefined)
    }
    this.#deliver(false)
  }

  #place(head: TimedRun, open: OpenChain, isRepeat: boolean): void {
    const { run } = head
    const { chain } = open
    this.#connections.join(chain.connection, run.connection)
    chain.isTurned ??= run.isTurned
    if (run.isEnded) open.isEnded = chain.isEnded = true
    const lastSeq = open.lastSeq
    if (head.lastSeq >= lastSeq) open.endsBefore = chain.endsBefore = run.endsBefore
    if (head.lastSeq > lastSeq) chain.endCause = undefined
    for (const message of inOrder(run, isRepeat ? lastSeq : 0)) open.waiting.push(message)
    for (const { seq, key } of run.messages)
      if (!isRepeat || seq > lastSeq) chain.note(seq, key)
      else this.#tally.repeats++
    chain.lastAsideKey = run.asides.at(-1)?.key ?? chain.lastAsideKey
    if (head.lastSeq > lastSeq) open.last = [run.messages.at(-1)!.message]
    this.#tails.move(open, Math.max(lastSeq, head.lastSeq))
    open.lastAt = later(head.lastAt, open.lastAt)
    if (head.lastRecvTs !== undefined) open.lastRecvTs = later(head.lastRecvTs, open.lastRecvTs)
    for (const id of run.markets) open.markets.add(id)
  }

  /** Counts the numbers missing between `head` and the chain before it: one of its connection, else the last one of its markets. */
  #countMissing(head: TimedRun): void {
    const { run, firstSeq, isPartial } = head
    if (firstSeq <= 1 || isPartial) return
    const connection = this.#connections.of(run.connection)
    const tails = this.#tails.ofSid(run.sid)
    const isEarlier = ({ lastSeq }: Tail): boolean => lastSeq < firstSeq - 1
    const isOwn = (tail: OpenChain): boolean =>
      this.#connections.of(tail.chain.connection) === connection || isBehind(head, tail)
    const isAlike = (tail: Tail): boolean =>
      !tail.isEnded && isNear(head, tail) && [...run.markets].some((id) => tail.markets.has(id))
    const before =
      tails.findLast((tail) => isEarlier(tail) && isOwn(tail)) ??
      tails
        .filter((tail) => isEarlier(tail) && isAlike(tail))
        .toSorted((a, b) => (a.lastAt < b.lastAt ? 1 : -1))[0]
    if (before === undefined) return
    before.chain.endCause = 'sequence gap'
    this.#tally.missing.holes++
    this.#tally.missing.numbers += firstSeq - before.lastSeq - 1
  }

  #begin(head: TimedRun): OpenChain {
    const { run } = head
    this.#countMissing(head)
    const chain = this.#target.addChain(run.sid, run.connection, run.isBegun, run.isTurned)
    chain.isPartial = run.isPartial
    chain.beginsAfter = run.beginsAfter
    const open = new OpenChain(chain, run.sid)
    this.#open.push(open)
    this.#tails.add(open)
    return open
  }

  /** A piece without numbered messages of the connection may still show that the connection was open. */
  #addLone({ afterKey, lone }: PieceRuns): void {
    const open =
      lone.length === 0 ? undefined : this.#open.find(({ chain }) => chain.recentKeys.includes(afterKey!))
    if (open === undefined) {
      for (const { message } of lone)
        if (message.body.kind === 'other') this.#tally.countSkipped(message.body.name)
      return
    }
    for (const { message, recvTs } of lone)
      open.waiting.push({ seq: open.lastSeq, key: undefined, ts: message.ts, recvTs, message })
    open.chain.lastAsideKey = lone.at(-1)!.key
  }

  /** A disconnect at the beginning of a piece ends the connection with the latest message before it. */
  #close(recvTs: bigint, afterKey: number | undefined): void {
    let last: OpenChain | undefined
    for (const open of this.#open) {
      if (open.isEnded) continue
      if (afterKey !== undefined) {
        if (open.chain.recentKeys.includes(afterKey)) last = open
      } else if (open.lastAt <= recvTs && (last === undefined || open.lastAt > last.lastAt)) last = open
    }
    if (last !== undefined) last.isEnded = last.chain.isEnded = true
  }

  /** `isLast`: nothing follows that could show the offset of a recorder's clock. */
  #deliver(isLast: boolean): void {
    const withMessages = this.#open.filter(({ waiting }) => waiting.length > 0)
    const byConnection = groupedBy(withMessages, ({ chain }) => this.#connections.of(chain.connection))
    for (const [connection, chains] of byConnection) {
      const [first, ...others] = chains.map(({ waiting }) => waiting) as [
        TimelessMessage[],
        ...TimelessMessage[][],
      ]
      const shown = clockOffset(first.concat(...others))
      if (shown !== undefined) this.#offsets.set(connection, shown)
      const offset = shown ?? this.#offsets.get(connection)
      const count = chains.reduce((sum, { waiting }) => sum + waiting.length, 0)
      if (offset === undefined && !isLast && count <= WAITING_MAX) continue
      for (const open of chains) this.#deliverChain(open, offset ?? 0n)
    }
  }

  #deliverChain(open: OpenChain, offset: bigint): void {
    const { chain, waiting } = open
    open.waiting = []
    const before = chain.firstAt === undefined ? undefined : chain.lastAt
    const times = messageTimes(waiting, offset, before)
    for (let place = 0; place < waiting.length; place++) {
      const { key, message, ts, recvTs } = waiting[place]!
      const at = times[place]
      if (at === undefined) continue
      if (ts !== undefined && ts !== at) this.#tally.correctedTimes++
      if (key === undefined) chain.heardUntil = later(at, chain.heardUntil)
      else chain.hear(at, recvTs ?? at)
      this.#target.take(chain, { message, at, recvTs })
    }
  }
}

/** The open chains by subscription and last number. */
class Tails {
  readonly #bySid = new Map<number, OpenChain[]>()
  readonly #byLast = new Map<string, Set<OpenChain>>()
  /** By subscription: the highest number. Most runs are above it, and repeat no chain. */
  readonly #highest = new Map<number, number>()

  add(open: OpenChain): void {
    const list = this.#bySid.get(open.sid)
    if (list === undefined) this.#bySid.set(open.sid, [open])
    else list.push(open)
  }

  ofSid(sid: number): readonly OpenChain[] {
    return this.#bySid.get(sid) ?? []
  }

  /** The chain whose last lines a run repeats. */
  repeatedBy({ sid, messages }: Run): OpenChain | undefined {
    const { seq, key } = messages[0]!
    if (seq > (this.#highest.get(sid) ?? 0)) return undefined
    return this.ofSid(sid).find(({ chain }) => seq <= chain.lastSeq && chain.keyOf(seq) === key)
  }

  /** Chains whose numbers a run continues. If its piece follows a line of a chain, none that ended long before that line. */
  before(head: Head): readonly OpenChain[] {
    const { sid, firstSeq, isPartial, afterKey } = head
    const tails = isPartial ? this.ofSid(sid!) : [...(this.#byLast.get(`${sid} ${firstSeq - 1}`) ?? [])]
    if (afterKey === undefined || tails.length === 0) return tails
    const own = this.ofSid(sid!).findLast((tail) => isBehind(head, tail))
    return own === undefined ? tails : tails.filter(({ lastAt }) => lastAt + OVERLAP_NS_MAX >= own.lastAt)
  }

  move(open: OpenChain, lastSeq: number): void {
    this.#byLast.get(`${open.sid} ${open.lastSeq}`)?.delete(open)
    open.lastSeq = lastSeq
    this.#highest.set(open.sid, Math.max(lastSeq, this.#highest.get(open.sid) ?? 0))
    const key = `${open.sid} ${lastSeq}`
    const set = this.#byLast.get(key)
    if (set === undefined) this.#byLast.set(key, new Set([open]))
    else set.add(open)
  }
}

interface TimedRun extends Head {
  readonly run: Run
  readonly lastSeq: number
  readonly lastRecvTs: bigint | undefined
}

/** Sorts runs by time, but each after a run whose numbers it continues: a snapshot's receive time may be after later changes. */
function inChainOrder(runs: readonly TimedRun[]): TimedRun[] {
  const byLast = groupedBy(runs, ({ sid, lastSeq }) => `${sid} ${lastSeq}`)
  const placed = new Set<TimedRun>()
  const result: TimedRun[] = []
  for (const run of runs.toSorted(compareHeads)) {
    const waiting = [run]
    for (let next = waiting.at(-1); next !== undefined; next = waiting.at(-1)) {
      const head = next
      const before = (byLast.get(`${head.sid} ${head.firstSeq - 1}`) ?? []).find(
        (other) => !placed.has(other) && !waiting.includes(other) && isNear(head, other),
      )
      if (before !== undefined) {
        waiting.push(before)
        continue
      }
      waiting.pop()
      if (!placed.has(head)) result.push(head)
      placed.add(head)
    }
  }
  return result
}

function endsOf(messages: readonly NumberedMessage[]): readonly (readonly NumberedMessage[])[] {
  return [messages.slice(0, END_MESSAGES), messages.slice(-END_MESSAGES)]
}

/** Both times of the first messages of a run that have an exchange time. */
function firstTimed(messages: readonly NumberedMessage[]): RecordedTimes[] {
  const found: RecordedTimes[] = []
  for (const message of messages) {
    if (message.ts === undefined) continue
    found.push(message)
    if (found.length === END_MESSAGES) break
  }
  return found
}

function withTimes(run: Run): TimedRun {
  const { messages } = run
  const offset = clockOffset(firstTimed(messages)) ?? 0n
  const timesOf = (some: readonly NumberedMessage[]): bigint[] =>
    messageTimes(some, offset, undefined).flatMap((time) => time ?? [])
  const ends = messages.length <= 2 * END_MESSAGES ? [messages, messages] : endsOf(messages)
  const [head, tail] = [timesOf(ends[0]!), timesOf(ends[1]!)]
  return {
    run,
    sid: run.sid,
    lastSeq: run.messages.at(-1)!.seq,
    isPartial: run.isPartial,
    beginsAfter: run.beginsAfter,
    firstSeq: run.isBegun ? 1 : run.messages[0]!.seq,
    firstAt: head[0] ?? 0n,
    firstRecvTs: messages[0]!.recvTs,
    lastRecvTs: messages.at(-1)!.recvTs,
    lastAt: tail.at(-1) ?? 0n,
    markets: run.markets,
    afterKey: run.afterKey,
    first: [messages[0]!.message],
  }
}

function compareHeads(a: TimedRun, b: TimedRun): number {
  if (a.firstAt !== b.firstAt) return a.firstAt < b.firstAt ? -1 : 1
  const [left, right] = [a.run.messages[0]!, b.run.messages[0]!]
  return a.run.sid - b.run.sid || left.seq - right.seq || left.key - right.key
}

/** The messages after `fromSeq`. A message without a number follows the one after which it came. */
function inOrder({ messages, asides }: Run, fromSeq: number): readonly TimelessMessage[] {
  if (asides.length === 0 && messages[0]!.seq > fromSeq) return messages
  const result: TimelessMessage[] = []
  let next = 0
  const takeAsides = (until: number): void => {
    for (; next < asides.length && asides[next]!.afterSeq < until; next++) {
      const { afterSeq, recvTs, message } = asides[next] as AsideMessage
      if (afterSeq >= fromSeq) result.push({ seq: afterSeq, key: undefined, ts: message.ts, recvTs, message })
    }
  }
  for (const message of messages) {
    takeAsides(message.seq)
    if (message.seq > fromSeq) result.push(message)
  }
  takeAsides(Infinity)
  return result
}
