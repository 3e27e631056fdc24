// The chains of an exchange without sequence numbers. A run that does not begin a connection continues a chain that ended
// shortly before it. If several fit, it continues one that has all of its markets, else one that has some; then one whose last line
// is another event than its first, then the one with the latest message.

import { later } from '../../shared/utc-date.ts'
import { areOfOneEvent } from '../feed/feed-message.ts'
import { lackOf, TimeEnds } from './chain.ts'
import type { Chain, Connections } from './chain.ts'
import type { GapCause, FoldTally } from './fold-tally.ts'
import { lineTimes, provenAt } from './line-times.ts'
import type { LineTimes } from './line-times.ts'
import { confirmedIn, beginningsIn } from './lone-books.ts'
import { OUTLIER_NS_MIN } from './message-times.ts'
import type { ChainTarget } from './numbered-chains.ts'
import type { Line, Piece } from './piece.ts'
import { joinLineRuns, ownCount, readLineRuns, statedMarkets } from './unnumbered-runs.ts'
import type { LineRun } from './unnumbered-runs.ts'

/** A chain continues within this time, or within the longest time between two of its lines if that is longer. */
const SILENCE_NS_MAX = 60_000_000_000n

/** The end of a chain, as it is compared with the beginning of a run. */
export interface SilentTail {
  readonly lastAt: bigint
  readonly ends: TimeEnds
  readonly isEnded: boolean
  /** The longest time between two of its lines, at least SILENCE_NS_MAX. */
  readonly silence: bigint
  readonly markets: ReadonlySet<string>
  /** Its last line, if it is in memory. */
  readonly last?: Line | undefined
}

export interface SilentHead {
  readonly isBegun: boolean
  readonly firstAt: bigint
  readonly ends: TimeEnds
  readonly silence: bigint
  readonly markets: ReadonlySet<string>
  /** In memory, if it is not of another date. */
  readonly lines?: readonly Line[]
}

/**
 * The chain that a run continues; undefined if none fits. Of several, one with the same markets, then one whose last line is another
 * event than the first of the run, then the one with the latest message. `closes` are receive times at which a connection closed.
 * `lacks`: another connection received a change before the run that is missing in the chain.
 */
export function silentPredecessorOf<T extends SilentTail>(
  head: SilentHead,
  tails: Iterable<T>,
  closes: readonly bigint[],
  lacks: (tail: T) => boolean = () => false,
): T | undefined {
  // A run that still has an overlap line follows a chain of the date before.
  if (head.isBegun || head.lines?.[0]?.isOverlap === true) return undefined
  const fitting = [...tails].filter((tail) => {
    const { lastAt, isEnded, silence } = tail
    const gap = gapOf(tail, head)
    const bound = silence > head.silence ? silence : head.silence
    if (isEnded || gap === undefined || gap > bound) return false
    return !closes.some((ts) => ts >= lastAt && ts <= head.firstAt) && !lacks(tail)
  })
  const isOfOneEvent = ({ last }: T): boolean =>
    last !== undefined && areOfOneEvent(last.messages, head.lines?.[0]?.messages ?? [])
  return fitting.toSorted(
    (a, b) =>
      lackOf(head.markets, a.markets) - lackOf(head.markets, b.markets) ||
      Number(isOfOneEvent(a)) - Number(isOfOneEvent(b)) ||
      (a.lastAt < b.lastAt ? 1 : a.lastAt > b.lastAt ? -1 : 0),
  )[0]
}

/**
 * The time between a chain and a run; undefined if the run does not come after the chain. Exchange times are compared with exchange
 * times, and receive times with receive times: a heartbeat is received after the exchange's time of the next message.
 */
function gapOf(tail: SilentTail, head: SilentHead): bigint | undefined {
  const sent = difference(tail.ends.lastTs, head.ends.firstTs)
  const received = difference(tail.ends.lastRecvTs, head.ends.firstRecvTs)
  const gap = received ?? sent ?? head.firstAt - tail.lastAt
  return gap < 0n || (sent !== undefined && sent < 0n) ? undefined : gap
}

function difference(from: bigint | undefined, to: bigint | undefined): bigint | undefined {
  return from === undefined || to === undefined ? undefined : to - from
}

interface OpenChain extends SilentTail {
  readonly chain: Chain
  lastAt: bigint
  last: Line | undefined
  isEnded: boolean
  silence: bigint
}

export class UnnumberedChains {
  readonly #target: ChainTarget
  readonly #connections: Connections
  readonly #tally: FoldTally
  readonly #open: OpenChain[] = []

  constructor(target: ChainTarget, tally: FoldTally) {
    this.#target = target
    this.#connections = target.connections
    this.#tally = tally
  }

  /** Takes the pieces of an hour. Call it in the order of the hours. */
  read(pieces: readonly Piece[]): void {
    const read = pieces.map((piece) => readLineRuns(piece, this.#tally))
    const closes = read.flatMap((one) => one.closes)
    const owners = this.#owners()
    const heads = joinLineRuns(
      read.flatMap(({ runs }) => runs),
      this.#tally,
    )
      .flatMap((run) => this.#parts(run, owners))
      .toSorted(compareHeads)
    const added = new Map<OpenChain, TimedRun[]>()
    for (const head of heads) this.#place(head, closes, added)
    for (const [{ chain }, own] of added) this.#deliver(chain, own)
    for (const ts of closes) this.#close(ts)
  }

  /** The first open chain that has each of the latest lines. */
  #owners(): ReadonlyMap<number, OpenChain> {
    const owners = new Map<number, OpenChain>()
    for (const open of this.#open)
      if (!open.isEnded) for (const key of open.chain.recentKeys) if (!owners.has(key)) owners.set(key, open)
    return owners
  }

  /** Splits a run where connections begin, without lines that were read before. */
  #parts(run: LineRun, owners: ReadonlyMap<number, OpenChain>): TimedRun[] {
    let repeated: OpenChain | undefined
    for (const { key } of run.lines) {
      const owner = owners.get(key)
      if (owner === undefined || owner.isEnded) continue
      if (repeated === undefined || owner.chain.id < repeated.chain.id) repeated = owner
    }
    const lines = repeated === undefined ? run.lines : this.#withoutRepeats(run, repeated)
    const starts = beginningsIn(
      lines,
      repeated?.chain.markets ?? new Set(),
      repeated?.chain.confirmed ?? new Set(),
    )
    const bounds = starts[0] === 0 ? starts : [0, ...starts]
    return bounds.flatMap((from, index, list) => {
      const part = lines.slice(from, list[index + 1])
      const isLast = index === list.length - 1
      if (part.every(({ isOverlap }) => isOverlap === true)) {
        if (run.isEnded && repeated !== undefined && isLast) {
          repeated.isEnded = repeated.chain.isEnded = true
          repeated.chain.endCause ??= run.endCause
        }
        return []
      }
      return timedRun(part, {
        isBegun: starts.includes(from) || (run.isBegun && repeated === undefined),
        isEnded: !isLast || run.isEnded,
        endCause: isLast ? run.endCause : undefined,
        isTurned: run.isTurned,
        repeatedChain: starts.includes(from) ? undefined : repeated,
      })
    })
  }

  #withoutRepeats({ lines }: LineRun, { chain }: OpenChain): readonly Line[] {
    const known = new Set(chain.recentKeys)
    const others = lines.filter(({ key }) => !known.has(key))
    this.#tally.repeats += ownCount(lines) - ownCount(others)
    return others
  }

  #place(head: TimedRun, closes: readonly bigint[], added: Map<OpenChain, TimedRun[]>): void {
    const open =
      head.repeatedChain ??
      silentPredecessorOf(head, this.#open, closes, (tail) => lacksChange(tail, head, added)) ??
      this.#begin(head)
    const { chain } = open
    const own = added.get(open)
    if (own === undefined) added.set(open, [head])
    else own.push(head)
    for (const line of head.lines) {
      chain.note(0, line.key)
      for (const sid of confirmedIn(line)) chain.confirmed.add(sid)
    }
    for (const id of head.markets) chain.markets.add(id)
    if (head.lastAt >= open.lastAt) {
      open.last = head.lines.at(-1)
      open.ends.extend(head.ends)
    }
    open.lastAt = later(head.lastAt, open.lastAt)
    if (head.silence > open.silence) open.silence = chain.silence = head.silence
    if (!head.isEnded) return
    open.isEnded = chain.isEnded = true
    chain.endCause ??= head.endCause
  }

  #begin({ isBegun, silence, isTurned }: TimedRun): OpenChain {
    const chain = this.#target.addChain(null, this.#connections.add(), isBegun, isTurned)
    chain.silence = silence
    const { ends, markets } = chain
    const open = { chain, ends, lastAt: 0n, last: undefined, isEnded: false, silence, markets }
    this.#open.push(open)
    return open
  }

  /** Runs that continue each other get the times of their joined lines, as if they had not been cut. */
  #deliver(chain: Chain, runs: readonly TimedRun[]): void {
    const [first, ...others] = runs as readonly [TimedRun, ...TimedRun[]]
    const lines = first.lines.concat(...others.map((run) => run.lines))
    const { times, correctedTimes } = others.length === 0 ? first : lineTimes(lines)
    this.#tally.correctedTimes += correctedTimes
    for (let place = 0; place < lines.length; place++) {
      const line = lines[place]!
      const at = times[place]
      if (at === undefined || line.isOverlap === true) continue
      const { recvTs } = line
      chain.hear(at, recvTs ?? at)
      for (const message of line.messages)
        this.#target.take(chain, { message: provenAt(message, at), at, recvTs })
    }
  }

  #close(ts: bigint): void {
    let last: OpenChain | undefined
    for (const open of this.#open)
      if (open.lastAt <= ts && !open.isEnded && (last === undefined || open.lastAt > last.lastAt)) last = open
    if (last !== undefined) last.isEnded = last.chain.isEnded = true
  }
}

interface TimedRun extends SilentHead, LineTimes {
  readonly lines: readonly Line[]
  /** The latest time so far of each line. */
  readonly reached: readonly bigint[]
  readonly lastAt: bigint
  readonly isEnded: boolean
  readonly endCause: GapCause | undefined
  readonly isTurned: boolean | null
  /** The chain of which it repeats lines. */
  readonly repeatedChain: OpenChain | undefined
}

function timedRun(
  lines: readonly Line[],
  place: Pick<TimedRun, 'isBegun' | 'isEnded' | 'endCause' | 'isTurned' | 'repeatedChain'>,
): TimedRun {
  const { times, correctedTimes } = lineTimes(lines)
  let silence = SILENCE_NS_MAX
  let [firstAt, lastAt, before]: [bigint | undefined, bigint, bigint | undefined] = [undefined, 0n, undefined]
  const ends = new TimeEnds()
  const reached: bigint[] = []
  for (let index = 0; index < lines.length; index++) {
    const { recvTs, isOverlap, messages } = lines[index]!
    const time = times[index]
    if (time !== undefined && isOverlap !== true) {
      firstAt ??= time
      if (time > lastAt) lastAt = time
      const [first] = messages
      const isSent = time === first?.ts && first.body.kind !== 'book'
      ends.add(isSent ? time : undefined, recvTs)
    }
    reached.push(lastAt)
    if (recvTs === undefined) continue
    if (before !== undefined && recvTs - before > silence) silence = recvTs - before
    before = recvTs
  }
  return {
    ...place,
    lines,
    times,
    reached,
    ends,
    silence,
    correctedTimes,
    firstAt: firstAt ?? 0n,
    lastAt,
    markets: statedMarkets(lines),
  }
}

/** By exchange time, because a run may begin with a heartbeat that was received after the next run's first message was sent. */
function compareHeads(a: TimedRun, b: TimedRun): number {
  const [left, right] = [a.ends.firstTs ?? a.firstAt, b.ends.firstTs ?? b.firstAt]
  if (left !== right) return left < right ? -1 : 1
  return Number(b.isBegun) - Number(a.isBegun) || a.lines[0]!.key - b.lines[0]!.key
}

/** Whether one of the other chains got a change of the tail's markets that was sent between the tail and the run. */
function lacksChange(
  tail: OpenChain,
  head: TimedRun,
  added: ReadonlyMap<OpenChain, readonly TimedRun[]>,
): boolean {
  const from = tail.ends.lastTs ?? tail.lastAt
  const to = head.ends.firstTs ?? head.firstAt
  const isMissing = (at: bigint | undefined, { messages }: Line): boolean => {
    if (at === undefined || at <= from || at >= to) return false
    return messages.some(
      ({ ts, body }) =>
        ts === at &&
        body.kind === 'changes' &&
        body.changes.some((change) => tail.markets.has(change.marketId)),
    )
  }
  const isMissingOf = ({ lines, times, reached, lastAt }: TimedRun): boolean => {
    if (lastAt <= from) return false
    for (let place = firstAfter(reached, from); place < lines.length; place++) {
      if (reached[place]! > to + OUTLIER_NS_MIN) return false
      if (isMissing(times[place], lines[place]!)) return true
    }
    return false
  }
  return [...added].some(([open, runs]) => open !== tail && runs.some(isMissingOf))
}

/** The place of the first of ascending times that is after `ts`. */
function firstAfter(times: readonly bigint[], ts: bigint): number {
  let [low, high] = [0, times.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (times[middle]! <= ts) low = middle + 1
    else high = middle
  }
  return low
}
