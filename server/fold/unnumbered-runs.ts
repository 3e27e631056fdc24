// Runs: lines of a piece between which no connection begins or ends. Without sequence numbers, a line follows another if some
// piece has it directly after that line. Runs that share a line are joined, in this order.

import { addMarkets } from '../feed/feed-message.ts'
import type { FoldTally, GapCause } from './fold-tally.ts'
import { HEARTBEAT_NAME } from './piece.ts'
import type { Line, Piece } from './piece.ts'
import { groupsOfShared } from './shared-lines.ts'

export interface LineRun {
  readonly lines: readonly Line[]
  /** A connection begins with the first line, which has the books of all its markets. */
  readonly isBegun: boolean
  /** The connection ended after the last line, or the next line could not be read. */
  readonly isEnded: boolean
  /** The reason, if the connection itself did not end. */
  readonly endCause: GapCause | undefined
  /** Whether `no` prices are given on the yes leg; null if unknown. */
  readonly isTurned: boolean | null
}

export interface PieceRuns {
  readonly runs: readonly LineRun[]
  /** Receive times of disconnects before which the piece has no line of the connection. */
  readonly closes: readonly bigint[]
}

/** Swapped lines are at most this many lines apart. */
const CROSSED_MAX = 64

/**
 * Puts swapped lines in order: those whose receive time and exchange time are both before those of the line before. If only the
 * receive time goes back, the recorder's clock was put back.
 */
function uncrossed(lines: Iterable<Line>): readonly Line[] {
  const result: Line[] = []
  for (const line of lines) {
    let place = result.length
    while (place > 0 && result.length - place < CROSSED_MAX && isBefore(line, result[place - 1]!)) place--
    if (place === result.length) result.push(line)
    else result.splice(place, 0, line)
  }
  return result
}

function isBefore(a: Line, b: Line): boolean {
  if (a.recvTs === undefined || b.recvTs === undefined || a.recvTs >= b.recvTs) return false
  const [left, right] = [a.messages[0]?.ts, b.messages[0]?.ts]
  return left !== undefined && right !== undefined && left < right
}

export function readLineRuns(piece: Piece, tally: FoldTally): PieceRuns {
  const lines = uncrossed(piece.lines)
  const runs: LineRun[] = []
  const closes: bigint[] = []
  let open: Line[] = []
  let isBegun = false
  let isTurned = piece.useYesPrice ? true : null
  /** The latest receipt of the run. */
  let latest: bigint | undefined
  /** The keys of the run; filled when receive times do not ascend, because until then no line can repeat. */
  let seen: Set<number> | undefined
  const finish = (isEnded: boolean, endCause?: GapCause): void => {
    if (open.length > 0) runs.push({ lines: open, isBegun, isEnded, endCause, isTurned })
    open = []
    latest = undefined
    seen = undefined
    isBegun = false
  }
  for (const line of lines) {
    if (isMute(line)) {
      tally.messages++
      tally.countSkipped(HEARTBEAT_NAME)
      continue
    }
    const isClose = line.messages.some(({ body }) => body.kind === 'disconnect')
    if (isClose) {
      if (open.length === 0 && line.recvTs !== undefined) closes.push(line.recvTs)
      finish(true)
      continue
    }
    if (line.isSkipped === true) {
      finish(true, 'skipped line')
      // The next line continues nothing.
      isBegun = true
      continue
    }
    const isLater = line.recvTs !== undefined && (latest === undefined || line.recvTs > latest)
    if (isLater) latest = line.recvTs
    else seen ??= new Set(open.map(({ key }) => key))
    if (!isLater && seen?.has(line.key) === true) {
      tally.repeats += line.messages.length
      continue
    }
    if (line.isOverlap !== true && isFirstBooks(line)) {
      const books = statedMarkets([line])
      // If the time goes back, another recorder's recording follows in the piece.
      finish(latest === line.recvTs && [...statedMarkets(open)].every((id) => books.has(id)))
      isBegun = true
      latest = line.recvTs
    }
    for (const { body } of line.messages)
      if (body.kind === 'subscribe' && body.useYesPrice !== undefined) isTurned = body.useYesPrice
    seen?.add(line.key)
    open.push(line)
  }
  finish(false)
  return { runs, closes }
}

/** Whether a line is a heartbeat without a time: every piece may have the same line, at any time. */
function isMute({ recvTs, messages: [message] }: Line): boolean {
  return recvTs === undefined && message?.body.kind === 'other' && message.body.name === HEARTBEAT_NAME
}

/** Whether a line is a list of books: a connection begins with one, of all its tokens. */
export function isFirstBooks({ isList, messages }: Line): boolean {
  return isList && messages.some(({ body }) => body.kind === 'book')
}

export function statedMarkets(lines: readonly Line[]): Set<string> {
  const markets = new Set<string>()
  for (const { messages } of lines) for (const { body } of messages) addMarkets(body, markets)
  return markets
}

/** The number of messages, without those of overlap lines. */
export function ownCount(lines: readonly Line[]): number {
  return lines.reduce((sum, { messages, isOverlap }) => (isOverlap === true ? sum : sum + messages.length), 0)
}

/** Joins runs that share a line. */
export function joinLineRuns(runs: readonly LineRun[], tally: FoldTally): LineRun[] {
  return groupsOfShared(runs, ({ lines }) => lines).map((list) => {
    if (list.length === 1) return list[0]!
    const merged = mergeRuns(list)
    for (const { lines } of list) tally.repeats += ownCount(lines)
    tally.repeats -= ownCount(merged.lines)
    return merged
  })
}

function mergeRuns(parts: readonly LineRun[]): LineRun {
  return {
    lines: linesInOrder(parts.map(({ lines }) => lines)),
    isBegun: parts.some(({ isBegun }) => isBegun),
    isEnded: parts.some(({ isEnded }) => isEnded),
    endCause: parts.find(({ endCause }) => endCause !== undefined)?.endCause,
    isTurned: parts.map(({ isTurned }) => isTurned).find((flag) => flag !== null) ?? null,
  }
}

/**
 * Each line once, after every line that it follows in one of `lists`. A repeated line behind one that was received later does not
 * count there. If several orders remain, or the order is circular, the line that was received earlier comes first.
 */
function linesInOrder(lists: readonly (readonly Line[])[]): Line[] {
  const lineOf = new Map<number, Line>()
  const inTime = new Set<number>()
  for (const list of lists)
    for (const [place, line] of list.entries()) {
      if (!lineOf.has(line.key)) lineOf.set(line.key, line)
      if (place === 0 || compareTimes(list[place - 1]!.recvTs, line.recvTs) <= 0) inTime.add(line.key)
    }
  const next = new Map<number, number[]>()
  const missing = new Map<number, number>()
  const pairs = new Set<string>()
  for (const list of lists) {
    let before: Line | undefined
    for (const line of list) {
      const { key } = line
      const isRepeat = inTime.has(key) && compareTimes(before?.recvTs, line.recvTs) > 0
      if (before !== undefined && !isRepeat && !pairs.has(`${before.key} ${key}`)) {
        pairs.add(`${before.key} ${key}`)
        const following = next.get(before.key)
        if (following === undefined) next.set(before.key, [key])
        else following.push(key)
        missing.set(key, (missing.get(key) ?? 0) + 1)
      }
      before = line
    }
  }
  const ordered = [...lineOf.values()].toSorted(compareReceipts)
  const place = new Map(ordered.map(({ key }, index) => [key, index]))
  /** Places of lines that follow only lines of the result. */
  const ready = [...ordered.keys()].filter((at) => !missing.has(ordered[at]!.key)).toReversed()
  const done = new Set<number>()
  const result: Line[] = []
  let first = 0
  while (result.length < ordered.length) {
    let at = ready.pop()
    if (at === undefined) {
      while (done.has(ordered[first]!.key)) first++
      at = first
    }
    const line = ordered[at]!
    if (done.has(line.key)) continue
    done.add(line.key)
    result.push(line)
    for (const key of next.get(line.key) ?? []) {
      const left = missing.get(key)! - 1
      missing.set(key, left)
      if (left === 0 && !done.has(key)) insertPlace(ready, place.get(key)!)
    }
  }
  return result
}

/** By receive time, then exchange time; a book comes before the changes of its time. */
function compareReceipts(a: Line, b: Line): number {
  const [left, right] = [a.messages[0], b.messages[0]]
  return (
    compareTimes(a.recvTs, b.recvTs) ||
    compareTimes(left?.ts, right?.ts) ||
    Number(right?.body.kind === 'book') - Number(left?.body.kind === 'book') ||
    a.key - b.key
  )
}

function compareTimes(a = 0n, b = 0n): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Adds a place to descending ones. Of lines that are in several orders, only the next ones wait, so there are few. */
function insertPlace(places: number[], place: number): void {
  let at = places.length
  while (at > 0 && places[at - 1]! < place) at--
  places.splice(at, 0, place)
}
