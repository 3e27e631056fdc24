// Runs: messages of a piece with consecutive sequence numbers of one subscription. Runs that share a message are joined.

import { groupedBy } from '../../shared/grouped-by.ts'
import { addMarkets } from '../feed/feed-message.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import { groupsOfShared } from './shared-lines.ts'
import { Subscriptions } from './subscriptions.ts'
import type { Connections } from './chain.ts'
import type { FoldTally } from './fold-tally.ts'
import { clockOffset } from './message-times.ts'
import type { RecordedTimes } from './message-times.ts'
import type { Line, Piece } from './piece.ts'

/** Messages at either end of a run from which its times, and the offset of the recorder's clock, are computed. */
export const END_MESSAGES = 16

export class NumberedMessage implements RecordedTimes {
  readonly seq: number
  readonly key: number
  readonly recvTs: bigint | undefined
  readonly message: FeedMessage

  constructor(seq: number, key: number, recvTs: bigint | undefined, message: FeedMessage) {
    this.seq = seq
    this.key = key
    this.recvTs = recvTs
    this.message = message
  }

  get ts(): bigint | undefined {
    return this.message.ts
  }
}

/** A message without a number of its own, and the number after which it came. */
export interface AsideMessage {
  readonly afterSeq: number
  readonly key: number
  readonly recvTs: bigint | undefined
  readonly message: FeedMessage
}

export interface Run {
  readonly sid: number
  readonly isPartial: boolean
  /** In the order of their numbers. A partial run has gaps in them. */
  messages: NumberedMessage[]
  asides: AsideMessage[]
  connection: number
  /** Key of the last line of the piece before, if it follows that line. */
  readonly afterKey: number | undefined
  /** A recorded answer shows that the subscription begins with it. */
  isBegun: boolean
  isTurned: boolean | null
  /** The connection closed after it. */
  isEnded: boolean
  /** If numbers are missing after it in its piece, or its subscription begins anew: when the piece continues. */
  endsBefore: bigint | undefined
  /** If numbers are missing before it in its piece: when the piece stopped. */
  readonly beginsAfter: bigint | undefined
  readonly markets: Set<string>
}

/** The open connection of a piece that is being read. */
interface OpenPiece {
  connection: number
  /** It may continue a connection of the piece before. */
  isFirst: boolean
  runs: Map<number, Run>
}

/** The content of a piece. */
export interface PieceRuns {
  readonly runs: readonly Run[]
  /** The line that it shares with the piece before. */
  readonly afterKey: number | undefined
  /** Messages after that line, if the piece has no numbered message of its connection. */
  readonly lone: readonly Omit<AsideMessage, 'afterSeq'>[]
  /** Receive times of disconnects before which the piece has no numbered message. */
  readonly closes: readonly bigint[]
}

const NO_RUNS: readonly Run[] = []

export function readRuns(piece: Piece, connections: Connections, tally: FoldTally): PieceRuns {
  const reading = new RunReading(piece, connections, tally)
  for (const line of piece.lines) reading.read(line)
  return reading
}

/** Reads the lines of a piece into runs. */
class RunReading implements PieceRuns {
  readonly runs: Run[] = []
  lone: Omit<AsideMessage, 'afterSeq'>[] = []
  readonly closes: bigint[] = []
  afterKey: number | undefined
  readonly #connections: Connections
  readonly #tally: FoldTally
  readonly #isPartial: boolean
  readonly #subscriptions: Subscriptions
  /** The highest number of each subscription. */
  readonly #highest = new Map<number, number>()
  /** The keys of all numbered messages; filled when numbers first go back, because until then no message can repeat. */
  #seen: Set<number> | undefined
  #open: OpenPiece

  constructor({ sequence, useYesPrice }: Piece, connections: Connections, tally: FoldTally) {
    this.#connections = connections
    this.#tally = tally
    this.#isPartial = sequence === 'per-market'
    this.#subscriptions = new Subscriptions(useYesPrice)
    this.#open = { connection: connections.add(), isFirst: true, runs: new Map() }
  }

  read({ key, recvTs, messages, isOverlap, isSkipped }: Line): void {
    // In a partial recording, missing numbers do not show what the skipped line was.
    if (isSkipped === true && this.#isPartial) this.#endConnection()
    if (isOverlap === true) {
      this.afterKey = key
      return
    }
    for (const message of messages)
      this.#take(message, messages.length === 1 ? key : key + (message.seq ?? 0), recvTs)
  }

  #take(message: FeedMessage, key: number, recvTs: bigint | undefined): void {
    const { sid, seq, body } = message
    if (body.kind === 'disconnect') {
      if (this.#open.runs.size === 0 && recvTs !== undefined) this.closes.push(recvTs)
      this.#endConnection()
      this.#subscriptions.clear()
      return
    }
    if (body.kind === 'subscribe') {
      this.#subscriptions.rememberCommand(body.id, body.useYesPrice)
      return
    }
    if (body.kind === 'subscribed' && body.subscription !== undefined) {
      // If the piece has subscriptions that began before it, this one belongs to another connection.
      if (this.#open.runs.has(body.subscription) || this.#hasOlderRuns()) this.#beginConnection()
      this.#subscriptions.begin(body.id, body.subscription)
    }
    for (const run of this.#runsBeside(message))
      run.asides.push({ afterSeq: run.messages.at(-1)!.seq, key, recvTs, message })
    if (sid === undefined || seq === undefined) {
      const { isFirst, runs } = this.#open
      if (isFirst && runs.size === 0 && body.kind === 'other') this.lone.push({ key, recvTs, message })
      return
    }
    if (this.#isRepeated(key, sid, seq)) {
      this.#tally.repeats++
      return
    }
    const numbered = new NumberedMessage(seq, key, recvTs, message)
    const run = this.#runOf(numbered, sid)
    run.messages.push(numbered)
    addMarkets(body, run.markets)
    if (body.kind === 'unsubscribed') this.#open.runs.delete(sid)
  }

  #isRepeated(key: number, sid: number, seq: number): boolean {
    const highest = this.#highest.get(sid)
    if (highest === undefined || seq > highest) {
      this.#highest.set(sid, seq)
      this.#seen?.add(key)
      return false
    }
    this.#seen ??= new Set(this.runs.flatMap(({ messages }) => messages.map((message) => message.key)))
    const { size } = this.#seen
    return this.#seen.add(key).size === size
  }

  #endConnection(): void {
    for (const run of this.#open.runs.values()) run.isEnded = true
    this.#beginConnection()
  }

  #beginConnection(): void {
    this.#open = { connection: this.#connections.add(), isFirst: false, runs: new Map() }
  }

  /** The runs that a message without a number concerns. A message of another subscription shows that the connection is open. */
  #runsBeside({ sid, seq, body }: FeedMessage): readonly Run[] {
    if (sid !== undefined && seq !== undefined && body.kind !== 'finished') return NO_RUNS
    const runs = [...this.#open.runs.values()]
    if (sid === undefined || body.kind === 'finished')
      return runs.filter((run) => seq === undefined || run.sid !== sid)
    const own = runs.filter((run) => run.sid === sid)
    return own.length === 0 && body.kind === 'other' ? runs.slice(0, 1) : own
  }

  /** The run of a message: that of its subscription, or a new one if numbers are missing or another connection begins. */
  #runOf(message: NumberedMessage, sid: number): Run {
    const { seq } = message
    const run = this.#open.runs.get(sid)
    const last = run?.messages.at(-1)
    if (run !== undefined && last !== undefined && seq > last.seq) {
      if (seq === last.seq + 1 || this.#isPartial) return run
      run.endsBefore = message.ts ?? message.recvTs
      return this.#beginRun(sid, last.ts ?? last.recvTs)
    }
    const { body } = message.message
    const isAnother =
      run !== undefined ||
      (seq === 1 && this.#hasOlderRuns()) ||
      (body.kind === 'book' && this.#isStatedBeside(sid, body.marketId))
    if (run !== undefined && last !== undefined && isRestated(message, last, run)) {
      const at = message.recvTs! - (clockOffset(run.messages.slice(-END_MESSAGES)) ?? 0n)
      for (const open of this.#open.runs.values()) open.endsBefore = at
    }
    if (isAnother) this.#beginConnection()
    return this.#beginRun(sid, undefined)
  }

  #beginRun(sid: number, beginsAfter: bigint | undefined): Run {
    const { connection, isFirst, runs } = this.#open
    const { isBegun, isTurned } = this.#subscriptions.take(sid)
    const run: Run = {
      sid,
      isBegun,
      isTurned,
      isPartial: this.#isPartial,
      messages: [],
      asides: [],
      connection,
      afterKey: isFirst ? this.afterKey : undefined,
      isEnded: false,
      endsBefore: undefined,
      beginsAfter,
      markets: new Set(),
    }
    if (isFirst) this.lone = []
    this.runs.push(run)
    runs.set(sid, run)
    return run
  }

  /** In a partial recording, most subscriptions seem to have begun before the piece. */
  #hasOlderRuns(): boolean {
    return !this.#isPartial && [...this.#open.runs.values()].some(({ messages }) => messages[0]!.seq !== 1)
  }

  /** Whether another subscription has the market: no connection has a market in two subscriptions. */
  #isStatedBeside(sid: number, marketId: string): boolean {
    return [...this.#open.runs.values()].some((run) => run.sid !== sid && run.markets.has(marketId))
  }
}

/** Whether a subscription begins anew with a book of its own markets. Lines of two recorders in one file may go back in time. */
function isRestated({ seq, message, recvTs }: NumberedMessage, last: NumberedMessage, run: Run): boolean {
  const { body } = message
  if (seq !== 1 || body.kind !== 'book' || !run.markets.has(body.marketId)) return false
  return recvTs !== undefined && last.recvTs !== undefined && recvTs >= last.recvTs
}

/** Joins the runs that share a message. */
export function joinRuns(runs: readonly Run[], connections: Connections, tally: FoldTally): Run[] {
  const joined: Run[] = []
  const bySid = groupedBy(runs, ({ sid }) => sid)
  for (const list of bySid.values())
    for (const group of groupsOfShared(list, ({ messages }) => messages))
      joined.push(group.length === 1 ? group[0]! : mergeRuns(group, connections))
  for (const { messages } of runs) tally.repeats += messages.length
  for (const { messages } of joined) tally.repeats -= messages.length
  return joined
}

function mergeRuns(parts: readonly Run[], connections: Connections): Run {
  const bySeq = new Map<number, NumberedMessage>()
  for (const { messages } of parts) {
    for (const message of messages) if (!bySeq.has(message.seq)) bySeq.set(message.seq, message)
  }
  const asides = new Map<string, AsideMessage>()
  for (const part of parts) {
    for (const one of part.asides) {
      const key = `${one.afterSeq} ${one.recvTs} ${one.message.body.kind}`
      if (!asides.has(key)) asides.set(key, one)
    }
  }
  const [first] = parts as [Run]
  const messages = [...bySeq.values()].toSorted((a, b) => a.seq - b.seq)
  const begins = parts.filter((part) => part.messages[0]!.seq === messages[0]!.seq)
  const last = parts.filter((part) => part.messages.at(-1)!.seq === messages.at(-1)!.seq)
  return {
    ...first,
    messages,
    endsBefore: last.every(({ endsBefore }) => endsBefore !== undefined) ? last[0]!.endsBefore : undefined,
    beginsAfter: begins.every(({ beginsAfter }) => beginsAfter !== undefined)
      ? begins[0]!.beginsAfter
      : undefined,
    asides: [...asides.values()].toSorted((a, b) => a.afterSeq - b.afterSeq),
    afterKey: parts.find(({ afterKey }) => afterKey !== undefined)?.afterKey,
    connection: parts.map(({ connection }) => connection).reduce((a, b) => connections.join(a, b)),
    isBegun: parts.some(({ isBegun }) => isBegun),
    isTurned: parts.map(({ isTurned }) => isTurned).find((flag) => flag !== null) ?? null,
    isEnded: parts.some(({ isEnded }) => isEnded),
    markets: new Set(parts.flatMap(({ markets }) => [...markets])),
  }
}
