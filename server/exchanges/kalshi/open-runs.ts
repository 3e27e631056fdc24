// The runs that may go on: one a subscription, and one of the messages without numbers. A number that does not follow
// begins another run; whether that is a loss, another connection, or another recorder's file is told when all runs are
// put together.

import { isDeepStrictEqual } from 'node:util'
import type { FeedDecoderOptions, RunRecords } from '../../feed/feed-decoder.ts'
import type { FeedReading, SequenceTrust } from '../../feed/feed-reading.ts'
import { SILENCE_NS_MAX } from '../../feed/feed-run.ts'
import type { FeedRun, FeedRunState } from '../../feed/feed-run.ts'
import type { FeedSpans } from '../../feed/feed-spans.ts'
import type { Frame } from '../../feed/frame.ts'
import type { ImportTally } from '../../feed/import-tally.ts'
import { LineOrder } from '../../feed/line-order.ts'
import type { RunEnd } from '../../feed/read-span.ts'
import type { NumberedMessage } from '../../lake/feed-strand.ts'
import { later } from '../../../shared/utc-date.ts'
import type { KalshiMessage } from './frame.ts'
import { Subscriptions } from './subscriptions.ts'
import type { SubscriptionsState } from './subscriptions.ts'

/** Latest messages of a subscription that a message with an old sequence number is compared with. */
const IMPORT_DUPLICATE_WINDOW = 1_024

export interface OpenRunsState extends SubscriptionsState {
  readonly name: string
  readonly runs: readonly (readonly [number, FeedRunState, readonly RecentMessage[]])[]
  readonly plain: FeedRunState | undefined
  readonly connection: number
}

interface RecentMessage {
  readonly seq: number
  readonly recvTs: bigint
  readonly receivedTs?: bigint | undefined
  readonly frame: Frame
}

/** A subscription's run. */
interface OpenRun {
  readonly run: FeedRun
  /** The latest messages, by number. */
  readonly recent: RecentMessage[]
}

export class OpenRuns {
  readonly #spans: FeedSpans
  readonly #tally: ImportTally
  readonly #records: RunRecords
  readonly #sequence: SequenceTrust
  readonly #subscriptions: Subscriptions
  /** The file's. */
  #name: string
  #runs = new Map<number, OpenRun>()
  /** The run of messages without numbers. */
  #plain: FeedRun | undefined
  /** Counts the connections that the file shows. */
  #connection: number
  readonly #lineOrder: LineOrder
  /** By subscription that a word says to have begun: until when its connection was heard of before. */
  readonly #heardBefore = new Map<number, bigint>()

  constructor(
    { spans, tally, sequence, useYesPrice, isLive }: FeedDecoderOptions & FeedReading,
    records: RunRecords,
    state: OpenRunsState | undefined,
  ) {
    this.#spans = spans
    this.#tally = tally
    this.#records = records
    this.#sequence = sequence ?? 'strict'
    this.#lineOrder = new LineOrder(isLive ?? false)
    this.#subscriptions = new Subscriptions(useYesPrice, state)
    this.#name = state?.name ?? ''
    this.#connection = state?.connection ?? 0
    for (const [sid, run, recent] of state?.runs ?? []) {
      this.#runs.set(sid, { run: spans.resume(run), recent: [...recent] })
    }
    if (state?.plain !== undefined) this.#plain = spans.resume(state.plain)
  }

  state(): OpenRunsState {
    return {
      name: this.#name,
      runs: [...this.#runs].map(([sid, { run, recent }]) => [sid, run.state(), [...recent]]),
      plain: this.#plain?.state(),
      ...this.#subscriptions.state(),
      connection: this.#connection,
    }
  }

  startFile(name: string): void {
    this.#name = name
    this.close('end of file')
    this.#lineOrder.startFile(name)
    this.#subscriptions.clear()
  }

  /** Throws where the file's lines are out of order. */
  finishFile(): void {
    this.#lineOrder.refuseDisorder()
    this.close('end of file')
  }

  // What came earlier stands as if in a file of its own: it does not show that a connection ended.
  goBack(): void {
    this.#lineOrder.goBack()
    this.close(this.#lineOrder.goesBack ? 'end of file' : 'new connection')
  }

  /** A subscription's run, or that of messages without numbers. */
  of(sid: number | undefined): FeedRun | undefined {
    return sid === undefined ? this.#plain : this.#runs.get(sid)?.run
  }

  *[Symbol.iterator](): Iterator<FeedRun> {
    for (const { run } of this.#runs.values()) yield run
    if (this.#plain !== undefined) yield this.#plain
  }

  get isEmpty(): boolean {
    return this.#runs.size === 0 && this.#plain === undefined
  }

  /** Whether the latest messages of the subscription hold this one. */
  holds(sid: number, seq: number, frame: Frame): boolean {
    const open = this.#runs.get(sid)
    return open !== undefined && isRepeat(open, seq, frame, undefined)
  }

  /** Whether the same message came already, received at the same time. */
  hasReceived(sid: number, seq: number, frame: Frame, receivedTs: bigint): boolean {
    const earlier = this.#runs.get(sid)?.recent[seq % IMPORT_DUPLICATE_WINDOW]
    return (
      earlier?.seq === seq && earlier.receivedTs === receivedTs && isDeepStrictEqual(earlier.frame, frame)
    )
  }

  /** The run that the message goes on with, or begins; undefined for one that is no part of any. */
  next(message: KalshiMessage, ts: bigint, recvTs: bigint): FeedRun | 'repeat' | undefined {
    this.#lineOrder.countMessage()
    const { sid, seq, body, frame } = message
    if (sid === undefined || seq === undefined) {
      if (body.kind === 'subscribed') this.startSubscription(body.id, body.subscription)
      return body.kind === 'snapshot' || body.kind === 'delta' ? this.#plainRun(ts) : undefined
    }
    if (body.kind === 'snapshot' && this.#isToldAnew(sid, body.ticker)) this.#leaveBehind(sid)
    const open = this.#runs.get(sid)
    if (open === undefined) {
      // A subscription that begins beside others that went on from before the file: another connection, as a rule.
      if (seq === 1 && this.#hasOlderRuns()) this.close('new connection')
      return this.#openRun(sid)
    }
    const { run } = open
    if (seq > run.lastSeq && this.#isNext(run, seq, ts)) return run
    if (seq <= run.lastSeq && isRepeat(open, seq, frame, recvTs)) return 'repeat'
    this.#lineOrder.leave(sid, run.lastSeq, seq)
    if (seq > run.lastSeq) {
      this.#records.end(
        run,
        ts - run.lastTs > SILENCE_NS_MAX ? 'silence of more than a day' : 'sequence break',
      )
      this.#tally.numbers.holes++
      this.#tally.numbers.missing += seq - run.lastSeq - 1
      // Whether it is still the same connection, a number does not tell.
      this.#connection++
      // Where the file goes back, what stands beside the hole may be another connection's.
      if (this.#lineOrder.goesBack) return this.#openRun(sid)
      run.missUntil({ seq, recvTs })
      return this.#openRun(sid, { seq: run.lastSeq, recvTs: run.lastRecvTs })
    }
    this.#tally.numbers.restarts++
    if (recvTs < run.lastRecvTs) this.goBack()
    else this.close('new connection')
    return this.#openRun(sid)
  }

  /** Keeps a message to know it again. */
  remember({ sid, seq = 0, receivedTs, frame }: KalshiMessage, recvTs: bigint): void {
    const recent = sid === undefined ? undefined : this.#runs.get(sid)?.recent
    if (recent !== undefined) recent[seq % IMPORT_DUPLICATE_WINDOW] = { seq, recvTs, receivedTs, frame }
  }

  /** Others of the connection of `speaker` are heard of by its message. */
  hear(speaker: FeedRun | undefined, ts: bigint, recvTs: bigint): void {
    const connection = speaker?.connection ?? this.#connection
    for (const { run } of this.#runs.values())
      if (run !== speaker && run.connection === connection) run.hear(ts, recvTs)
    const plain = this.#plain
    if (plain !== undefined && plain !== speaker && plain.connection === connection) plain.hear(ts, recvTs)
  }

  rememberCommand(id: number, useYesPrice: boolean | undefined): void {
    this.#subscriptions.rememberCommand(id, useYesPrice)
  }

  startSubscription(command: number, sid: number | undefined): void {
    if (sid === undefined) return
    // Where messages have no number that counts, only being announced twice shows that a subscription begins anew.
    const isAnnouncedAnew = this.#plain !== undefined && this.#heardBefore.has(sid)
    // Beside others that went on from before the file it is another connection's, as a rule.
    if (this.#runs.has(sid) || isAnnouncedAnew || this.#hasOlderRuns()) this.close('new connection')
    this.#subscriptions.begin(command, sid)
    this.#heardBefore.set(sid, [...this].map(({ lastTs }) => lastTs).reduce(later, 0n))
  }

  /** The exchange has ended the subscription. */
  drop(sid: number): void {
    this.#runs.delete(sid)
  }

  // A numbered message that is missing shows in the numbers. Books without numbers have only this sign, and those of a part
  // of a connection, where missing numbers are other markets'.
  lose(): void {
    if (this.#sequence === 'per-market') this.close('bad line')
    if (this.#plain === undefined) return
    this.#records.end(this.#plain, 'bad line')
    this.#plain = undefined
  }

  close(reason: RunEnd): void {
    for (const run of this) this.#records.end(run, reason)
    this.#connection++
    this.#runs = new Map()
    this.#plain = undefined
    this.#heardBefore.clear()
  }

  /** Whether one subscription tells a market's book that another follows: no connection has a market twice. */
  #isToldAnew(sid: number, ticker: string): boolean {
    const own = this.#runs.get(sid)?.run
    if (own !== undefined && this.#records.follows(own, ticker)) return false
    return [...this.#runs.values()].some(({ run }) => run !== own && this.#records.follows(run, ticker))
  }

  /** What was open is another connection's than the subscription, which may have been announced. */
  #leaveBehind(sid: number): void {
    const heardTs = this.#heardBefore.get(sid)
    if (heardTs !== undefined) for (const run of this) run.forgetHearing(heardTs)
    this.close('new connection')
  }

  #isNext(run: FeedRun, seq: number, ts: bigint): boolean {
    if (ts - run.lastTs > SILENCE_NS_MAX) return false
    return seq === run.lastSeq + 1 || this.#sequence === 'per-market'
  }

  #openRun(sid: number, beforeHole?: NumberedMessage): FeedRun {
    // What looks like parts of connections may as well be lines in no order.
    if (this.#spans.isFull) this.#lineOrder.refuseDisorder()
    // Nor is one subscription heard of through another there.
    if (this.#lineOrder.goesBack) this.#connection++
    const isPartial = this.#sequence === 'per-market' ? (true as const) : undefined
    const known = this.#subscriptions.take(sid)
    const run = this.#spans.start(
      { sid, ...known, isPartial, connection: this.#connection, beforeHole },
      this.#name,
    )
    this.#runs.set(sid, { run, recent: [] })
    return run
  }

  #plainRun(ts: bigint): FeedRun {
    if (this.#plain !== undefined && ts - this.#plain.lastTs > SILENCE_NS_MAX) {
      this.#records.end(this.#plain, 'silence of more than a day')
      this.#plain = undefined
    }
    const { isTurned } = this.#subscriptions
    const facts = { sid: null, isBegun: true, isTurned, connection: this.#connection }
    this.#plain ??= this.#spans.start(facts, this.#name)
    return this.#plain
  }

  // Where markets were left out, most subscriptions seem to have begun before the file.
  #hasOlderRuns(): boolean {
    if (this.#sequence !== 'strict') return false
    return [...this.#runs.values()].some(({ run }) => run.firstSeq !== 1)
  }
}

function isRepeat({ recent }: OpenRun, seq: number, frame: Frame, recvTs: bigint | undefined): boolean {
  const earlier = recent[seq % IMPORT_DUPLICATE_WINDOW]
  if (earlier?.seq !== seq || !isDeepStrictEqual(earlier.frame, frame)) return false
  // A snapshot says when it was sent only by its receipt: the same book may come again from a new connection.
  return frame['type'] === 'orderbook_delta' || recvTs === undefined || recvTs === earlier.recvTs
}
