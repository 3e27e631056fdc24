// The chains of an exchange that numbers nothing. A stretch without a beginning goes on from the chain that was heard last
// before it, if exactly one fits.

import { later } from '../../shared/utc-date.ts'
import type { Chain, ChainSink, Connections } from './chain.ts'
import type { GapCause, FoldTally } from './fold-tally.ts'
import { beginningsIn } from './lone-books.ts'
import type { ChainTarget } from './numbered-chains.ts'
import { clockOffset, messageTimes } from './message-times.ts'
import type { RecordedTimes } from './message-times.ts'
import type { Line, Piece } from './piece.ts'
import { isFirstBooks, joinStretches, ownCount, readStretches, statedMarkets } from './stretches.ts'
import type { Stretch } from './stretches.ts'

/** A chain whose lines come less far apart goes on within so long. */
const SILENCE_NS_MAX = 60_000_000_000n
/** A book that is received so long after its last change was not sent because it changed. */
const BOOK_AGE_NS_MAX = 1_000_000_000n

/** What is compared when a stretch is put behind a chain. */
export interface SilentTail {
  readonly lastAt: bigint
  readonly isEnded: boolean
  /** The longest time between two of its lines, at least SILENCE_NS_MAX. */
  readonly silence: bigint
  readonly markets: ReadonlySet<string>
}

export interface SilentHead {
  readonly isBegun: boolean
  readonly firstAt: bigint
  readonly silence: bigint
  readonly markets: ReadonlySet<string>
}

/**
 * The chain that a stretch goes on from, undefined where none fits: of several that of the same markets, then the one heard
 * last. `closes` are receive times at which some connection closed.
 */
export function silentPredecessorOf<T extends SilentTail>(
  head: SilentHead,
  tails: Iterable<T>,
  closes: readonly bigint[],
): T | undefined {
  if (head.isBegun) return undefined
  const fitting = [...tails].filter(({ lastAt, isEnded, silence }) => {
    const gap = head.firstAt - lastAt
    const bound = silence > head.silence ? silence : head.silence
    return !isEnded && gap >= 0n && gap <= bound && !closes.some((ts) => ts >= lastAt && ts <= head.firstAt)
  })
  const isOfMarkets = ({ markets }: T): boolean => [...head.markets].some((id) => markets.has(id))
  return fitting.toSorted(
    (a, b) =>
      Number(isOfMarkets(b)) - Number(isOfMarkets(a)) || (a.lastAt < b.lastAt ? 1 : a.lastAt > b.lastAt ? -1 : 0),
  )[0]
}

interface OpenChain extends SilentTail {
  readonly chain: Chain
  lastAt: bigint
  isEnded: boolean
  silence: bigint
}

export class UnnumberedChains {
  readonly #connections: Connections
  readonly #sink: ChainSink
  readonly #tally: FoldTally
  readonly #newChain: (connection: number, isBegun: boolean, isTurned: boolean | null) => Chain
  readonly #open: OpenChain[] = []

  constructor(
    { connections, sink, tally }: ChainTarget,
    newChain: (connection: number, isBegun: boolean, isTurned: boolean | null) => Chain,
  ) {
    this.#connections = connections
    this.#sink = sink
    this.#tally = tally
    this.#newChain = newChain
  }

  /** Takes the pieces of an hour. Hours come in their order. */
  read(pieces: readonly Piece[]): void {
    const read = pieces.map((piece) => readStretches(piece, this.#tally))
    const closes = read.flatMap((one) => one.closes)
    const heads = joinStretches(read.flatMap(({ stretches }) => stretches), this.#tally)
      .flatMap((stretch) => this.#parts(stretch))
      .toSorted(compareHeads)
    for (const head of heads) this.#place(head, closes)
    for (const ts of closes) this.#close(ts)
  }

  /** The parts of a stretch, each from a beginning on, without lines that were read before. */
  #parts(stretch: Stretch): TimedStretch[] {
    const repeated = this.#open.find(({ chain, isEnded }) => {
      const recent = new Set(chain.recentKeys)
      return !isEnded && stretch.lines.some(({ key }) => recent.has(key))
    })
    const known = new Set(repeated?.chain.recentKeys)
    const lines = stretch.lines.filter(({ key }) => !known.has(key))
    this.#tally.repeats += ownCount(stretch.lines) - ownCount(lines)
    const starts = beginningsIn(lines, repeated?.chain.markets ?? new Set())
    const offset = clockOffset(lines.map(givenTimes)) ?? 0n
    const bounds = starts[0] === 0 ? starts : [0, ...starts]
    return bounds.flatMap((from, index, list) => {
      const part = lines.slice(from, list[index + 1])
      const isLast = index === list.length - 1
      if (part.every(({ isOverlap }) => isOverlap === true)) {
        if (stretch.isEnded && repeated !== undefined && isLast) {
          repeated.isEnded = repeated.chain.isEnded = true
          repeated.chain.endCause ??= stretch.endCause
        }
        return []
      }
      return timedStretch(part, offset, {
        isBegun: starts.includes(from) || (stretch.isBegun && repeated === undefined),
        isEnded: !isLast || stretch.isEnded,
        endCause: isLast ? stretch.endCause : undefined,
        isTurned: stretch.isTurned,
        goesOnFrom: starts.includes(from) ? undefined : repeated,
      })
    })
  }

  #place(head: TimedStretch, closes: readonly bigint[]): void {
    const open = head.goesOnFrom ?? silentPredecessorOf(head, this.#open, closes) ?? this.#begin(head)
    const { chain } = open
    for (const [place, line] of head.lines.entries()) {
      chain.note(0, line.key)
      const at = head.times[place]
      if (at === undefined || line.isOverlap === true) continue
      chain.hear(at, line.recvTs ?? at)
      for (const message of line.messages)
        this.#sink.take(chain, { message, at, recvTs: line.recvTs ?? at })
    }
    open.lastAt = later(head.lastAt, open.lastAt)
    if (head.silence > open.silence) open.silence = chain.silence = head.silence
    this.#tally.correctedTimes += head.correctedTimes
    if (!head.isEnded) return
    open.isEnded = chain.isEnded = true
    chain.endCause ??= head.endCause
  }

  #begin({ isBegun, silence, isTurned }: TimedStretch): OpenChain {
    const chain = this.#newChain(this.#connections.add(), isBegun, isTurned)
    chain.silence = silence
    const open = { chain, lastAt: 0n, isEnded: false, silence, markets: chain.markets }
    this.#open.push(open)
    return open
  }

  #close(ts: bigint): void {
    let last: OpenChain | undefined
    for (const open of this.#open)
      if (open.lastAt <= ts && !open.isEnded && (last === undefined || open.lastAt > last.lastAt)) last = open
    if (last !== undefined) last.isEnded = last.chain.isEnded = true
  }
}

interface TimedStretch extends SilentHead {
  readonly lines: readonly Line[]
  readonly times: readonly (bigint | undefined)[]
  readonly lastAt: bigint
  readonly isEnded: boolean
  readonly endCause: GapCause | undefined
  readonly correctedTimes: number
  readonly isTurned: boolean | null
  /** The chain of which it repeats lines. */
  readonly goesOnFrom: OpenChain | undefined
}

function timedStretch(
  lines: readonly Line[],
  offset: bigint,
  place: Pick<TimedStretch, 'isBegun' | 'isEnded' | 'endCause' | 'isTurned' | 'goesOnFrom'>,
): TimedStretch {
  const stated = lines.map((line) => statedTimes(line, offset))
  const times = messageTimes(stated, offset, undefined)
  const known = times.flatMap((time, place) => (lines[place]!.isOverlap === true ? [] : (time ?? [])))
  const receipts = lines.flatMap(({ recvTs }) => (recvTs === undefined ? [] : [recvTs]))
  const silence = receipts.reduce(
    (longest, ts, index) => (index > 0 && ts - receipts[index - 1]! > longest ? ts - receipts[index - 1]! : longest),
    SILENCE_NS_MAX,
  )
  return {
    ...place,
    lines,
    times,
    silence,
    correctedTimes: stated.filter(({ ts }, place) => ts !== undefined && ts !== times[place] && lines[place]!.isOverlap !== true).length,
    firstAt: known[0] ?? 0n,
    lastAt: known.reduce(later, 0n),
    markets: statedMarkets(lines),
  }
}

/** Both times of a line that shows what the recorder's clock is worth: a book states when it last changed. */
function givenTimes({ messages, recvTs }: Line): RecordedTimes {
  const first = messages[0]
  return { ts: first === undefined || first.body.kind === 'book' ? undefined : first.ts, recvTs }
}

/** A book that was not sent because it changed is known when it was sent. */
function statedTimes(line: Line, offset: bigint): RecordedTimes {
  const { messages, recvTs } = line
  const first = messages[0]
  if (first?.body.kind !== 'book') return { ts: first?.ts, recvTs }
  const { ts } = first
  if (ts === undefined || recvTs === undefined) return { ts, recvTs }
  const isOld = isFirstBooks(line) || recvTs - offset - ts > BOOK_AGE_NS_MAX
  return { ts: isOld ? undefined : ts, recvTs }
}

function compareHeads(a: TimedStretch, b: TimedStretch): number {
  if (a.firstAt !== b.firstAt) return a.firstAt < b.firstAt ? -1 : 1
  return Number(b.isBegun) - Number(a.isBegun) || a.lines[0]!.key - b.lines[0]!.key
}
