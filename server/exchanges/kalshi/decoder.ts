// Kalshi messages → records. It follows runs: stretches of a subscription's numbers in which none is missing. A number
// that does not follow begins another run; whether that is a loss, another connection, or another recorder's file is
// told when all runs are put together.

import { isDeepStrictEqual } from 'node:util'
import { EVENT_ADD, SIDE_ASK, SIDE_BID } from '../../../shared/lob-v1.ts'
import {
  IMPORT_COMMANDS_MAX,
  IMPORT_DUPLICATE_WINDOW,
  IMPORT_SILENCE_MS_MAX,
} from '../../../shared/limits.ts'
import { LOB_SOURCES } from '../../../shared/lob-sources.ts'
import { NS_PER_MS } from '../../../shared/utc-date.ts'
import type { BookLevel } from '../../lake/exact-book.ts'
import { RunRecords, TIMELESS } from '../../feed/feed-decoder.ts'
import type { FeedDecoderOptions, ResumableDecoder, Stamp } from '../../feed/feed-decoder.ts'
import type { FeedReading, SequenceTrust } from '../../feed/feed-reading.ts'
import type { FeedRun, FeedRunState } from '../../feed/feed-run.ts'
import type { FeedSpans } from '../../feed/feed-spans.ts'
import type { RunEnd } from '../../feed/read-span.ts'
import type { NumberedMessage } from '../../lake/feed-strand.ts'
import type { ImportTally } from '../../feed/import-tally.ts'
import { HeldNumbers } from './held-numbers.ts'
import { LOST_MESSAGE, parseKalshiFrame } from './frame.ts'
import type { KalshiMessage, LegLevel } from './frame.ts'
import { MessageClock } from '../../feed/message-clock.ts'
import type { MessageClockState } from '../../feed/message-clock.ts'
import type { Frame, RecordedMessage } from '../../feed/frame.ts'

const SILENCE_NS_MAX = BigInt(IMPORT_SILENCE_MS_MAX) * NS_PER_MS

export interface KalshiDecoderOptions extends FeedDecoderOptions, FeedReading {
  readonly state?: KalshiDecoderState | undefined
}

export interface KalshiDecoderState {
  readonly clock: MessageClockState
  readonly name: string
  readonly runs: readonly (readonly [number, FeedRunState, OpenRun['recent']])[]
  readonly plain: FeedRunState | undefined
  readonly flagByCommand: readonly (readonly [number, boolean])[]
  readonly subscribed: readonly (readonly [number, boolean | undefined])[]
  readonly flag: boolean | undefined
  readonly connection: number
}

interface OpenRun {
  readonly run: FeedRun
  /** The latest messages, by number. */
  readonly recent: {
    readonly seq: number
    readonly recvTs: bigint
    readonly receivedTs?: bigint | undefined
    readonly frame: Frame
  }[]
}

export class KalshiDecoder implements ResumableDecoder {
  readonly #tally: ImportTally
  readonly #records: RunRecords
  readonly #spans: FeedSpans
  readonly #clockOptions: ConstructorParameters<typeof MessageClock<KalshiMessage>>[0]
  readonly #sequence: SequenceTrust
  readonly #usesYesPrice: boolean
  #clock: MessageClock<KalshiMessage>
  readonly #held = new HeldNumbers()
  /** Books without a time that came right behind one with a time. */
  readonly #sentTogether = new WeakSet<KalshiMessage>()
  #isBookTimed = false
  #name = ''
  /** Runs that may go on, by subscription. */
  #runs = new Map<number, OpenRun>()
  /** The run of messages without numbers. */
  #plain: FeedRun | undefined
  readonly #flagByCommand = new Map<number, boolean>()
  /** What is known of subscriptions before their first message. */
  readonly #subscribed = new Map<number, boolean | undefined>()
  #flag: boolean | undefined
  /** Counts the connections that the file shows. */
  #connection = 0

  constructor(options: KalshiDecoderOptions) {
    this.#tally = options.tally
    this.#spans = options.spans
    this.#records = new RunRecords(options, LOB_SOURCES.kalshi.seriesOf)
    this.#sequence = options.sequence ?? 'strict'
    this.#usesYesPrice = options.useYesPrice
    this.#clockOptions = {
      deliver: (message, ts, recvTs) => this.#take(message, ts, recvTs),
      onSetAside: ({ body }, which, byNs) => options.tally.countSetAside(which, byNs, tickerOf(body)),
      trustsReceiveTimes: options.isLive ?? false,
      isNext: ({ sid, seq }) =>
        sid !== undefined && seq !== undefined && this.#runs.get(sid)?.run.lastSeq === seq - 1,
      isIdle: ({ body }) => body.kind !== 'snapshot' && body.kind !== 'delta',
      saysNothingNew: (message) => this.#saysNothingNew(message),
      onTimeless: () => options.tally.countSkipped(TIMELESS),
    }
    const { state } = options
    this.#clock = new MessageClock({ ...this.#clockOptions, state: state?.clock })
    if (state === undefined) return
    this.#name = state.name
    for (const [sid, run, recent] of state.runs) {
      this.#runs.set(sid, { run: this.#spans.resume(run), recent: [...recent] })
    }
    if (state.plain !== undefined) this.#plain = this.#spans.resume(state.plain)
    for (const [id, flag] of state.flagByCommand) this.#flagByCommand.set(id, flag)
    for (const [sid, flag] of state.subscribed) this.#subscribed.set(sid, flag)
    this.#flag = state.flag
    this.#connection = state.connection
  }

  state(): KalshiDecoderState {
    return {
      clock: this.#clock.state(),
      name: this.#name,
      runs: [...this.#runs].map(([sid, { run, recent }]) => [sid, run.state(), [...recent]]),
      plain: this.#plain?.state(),
      flagByCommand: [...this.#flagByCommand],
      subscribed: [...this.#subscribed],
      flag: this.#flag,
      connection: this.#connection,
    }
  }

  forgetMarkets(): void {
    this.#records.forgetMarkets()
  }

  startFile(name: string): void {
    this.#name = name
    this.#clock = new MessageClock(this.#clockOptions)
    this.#closeRuns('end of file')
    this.#subscribed.clear()
    this.#flagByCommand.clear()
    this.#flag = undefined
  }

  decode({ frames, recvTs }: RecordedMessage): void {
    for (const frame of frames) {
      const message = this.#trusted(parseKalshiFrame(frame))
      const { body } = message
      if (body.kind === 'snapshot' || body.kind === 'delta') this.#records.checkId(body.ticker)
      this.#push(message, recvTs)
    }
  }

  // A numbered message that is missing shows in the numbers. Books without numbers have only this sign.
  skipBadLine(): void {
    if (this.#clock.isHolding) this.#clock.push(LOST_MESSAGE, undefined, undefined, false)
    else this.#lose()
  }

  finishFile(): void {
    this.#clock.finish()
    this.#closeRuns('end of file')
  }

  #trusted(message: KalshiMessage): KalshiMessage {
    if (this.#sequence === 'strict') return message
    if (this.#sequence === 'ignore') return { ...message, seq: undefined }
    return message
  }

  #push(message: KalshiMessage, recvTs: bigint | undefined): void {
    if (!this.#clock.isHolding) this.#held.clear()
    if (recvTs !== undefined && this.#wasReceived(message, recvTs)) {
      this.#tally.messages++
      this.#tally.countRepeat(tickerOf(message.body))
      return
    }
    message.receivedTs = recvTs
    const isTimeless = message.ts === undefined && recvTs === undefined
    if (isTimeless && this.#isBookTimed) this.#sentTogether.add(message)
    this.#isBookTimed = message.body.kind === 'snapshot' && (!isTimeless || this.#isBookTimed)
    const isRestart = this.#isRestart(message)
    this.#clock.push(message, message.ts, recvTs, isRestart)
    if (!this.#clock.isHolding) return
    if (isRestart) {
      this.#held.clear()
      this.#held.hasConnection = true
    }
    const { sid, seq, frame } = message
    if (sid !== undefined && seq !== undefined) this.#held.add(sid, seq, frame, recvTs)
  }

  /** Whether the same message came already, at the same time: a line that stands twice. */
  #wasReceived({ sid, seq, frame }: KalshiMessage, recvTs: bigint): boolean {
    if (sid === undefined || seq === undefined) return false
    if (this.#held.hasReceived(sid, seq, frame, recvTs)) return true
    if (this.#held.hasConnection) return false
    const earlier = this.#runs.get(sid)?.recent[seq % IMPORT_DUPLICATE_WINDOW]
    return earlier?.seq === seq && earlier.receivedTs === recvTs && isDeepStrictEqual(earlier.frame, frame)
  }

  /** A book without a time may be told anew where nothing is missing before it; else it is known when the next message comes. */
  #saysNothingNew(message: KalshiMessage): boolean {
    const { sid, seq, body } = message
    if (body.kind !== 'snapshot' || this.#sentTogether.has(message)) return true
    const run = sid === undefined || seq === undefined ? undefined : this.#runs.get(sid)?.run
    return run !== undefined && seq! <= run.lastSeq + 1 && this.#records.follows(run, body.ticker)
  }

  /** Whether the message belongs to another connection than those before it. */
  #isRestart({ sid, seq, body, frame }: KalshiMessage): boolean {
    const runs = this.#held.hasConnection ? undefined : this.#runs
    if (body.kind === 'subscribed' && body.subscription !== undefined) {
      return this.#held.lastSeq(body.subscription) !== undefined || (runs?.has(body.subscription) ?? false)
    }
    if (sid === undefined || seq === undefined) return false
    const open = runs?.get(sid)
    const lastSeq = this.#held.lastSeq(sid) ?? open?.run.lastSeq
    if (lastSeq === undefined || seq > lastSeq || this.#held.has(sid, seq, frame)) return false
    return open === undefined || !this.#isRepeat(open, seq, frame, undefined)
  }

  #isRepeat({ recent }: OpenRun, seq: number, frame: Frame, recvTs: bigint | undefined): boolean {
    const earlier = recent[seq % IMPORT_DUPLICATE_WINDOW]
    if (earlier?.seq !== seq || !isDeepStrictEqual(earlier.frame, frame)) return false
    // A snapshot says when it was sent only by its receipt: the same book may come again from a new connection.
    return frame['type'] === 'orderbook_delta' || recvTs === undefined || recvTs === earlier.recvTs
  }

  #take(message: KalshiMessage, ts: bigint, recvTs: bigint): void {
    const { body, sid } = message
    if (body.kind === 'lost') {
      this.#lose()
      return
    }
    this.#tally.messages++
    const seq = message.seq ?? 0
    const run = this.#runOf(message, ts, recvTs)
    if (run === 'repeat') {
      this.#tally.countRepeat(tickerOf(body))
      return
    }
    // What the recorder says itself does not show that the connection lives.
    const isHeard = body.kind !== 'disconnect' && body.kind !== 'subscribe'
    if (isHeard) this.#hear(run, ts, recvTs)
    if (run !== undefined) {
      if (run.sid !== null) this.#tally.numbers.taken++
      run.take(run.sid === null ? 0 : seq, ts, recvTs)
      const recent = sid === undefined ? undefined : this.#runs.get(sid)?.recent
      if (recent !== undefined) {
        const { receivedTs, frame } = message
        recent[seq % IMPORT_DUPLICATE_WINDOW] = { seq, recvTs, receivedTs, frame }
      }
    }
    this.#apply(message, run, { ts, recvTs, seq: run?.sid === null ? 0 : seq })
  }

  /** The run that the message goes on with, or begins; undefined for one that is no part of any. */
  #runOf(message: KalshiMessage, ts: bigint, recvTs: bigint): FeedRun | 'repeat' | undefined {
    const { sid, seq, body, frame } = message
    if (sid === undefined || seq === undefined) {
      if (body.kind === 'subscribed') this.#startSubscription(body.id, body.subscription)
      return body.kind === 'snapshot' || body.kind === 'delta' ? this.#plainRun(ts) : undefined
    }
    const open = this.#runs.get(sid)
    if (open === undefined) {
      // A subscription that begins beside others that went on from before the file: another connection, as a rule.
      if (seq === 1 && this.#hasOlderRuns()) this.#closeRuns('new connection')
      return this.#openRun(sid)
    }
    const { run } = open
    if (seq > run.lastSeq && this.#isNext(run, seq, ts)) return run
    if (seq > run.lastSeq) {
      this.#records.end(
        run,
        ts - run.lastTs > SILENCE_NS_MAX ? 'silence of more than a day' : 'sequence break',
      )
      this.#tally.numbers.holes++
      this.#tally.numbers.missing += seq - run.lastSeq - 1
      // Whether it is still the same connection, a number does not tell.
      this.#connection++
      run.missUntil({ seq, recvTs })
      return this.#openRun(sid, { seq: run.lastSeq, recvTs: run.lastRecvTs })
    }
    if (this.#isRepeat(open, seq, frame, recvTs)) return 'repeat'
    this.#tally.numbers.restarts++
    this.#closeRuns('new connection')
    return this.#openRun(sid)
  }

  #isNext(run: FeedRun, seq: number, ts: bigint): boolean {
    if (ts - run.lastTs > SILENCE_NS_MAX) return false
    return seq === run.lastSeq + 1 || this.#sequence === 'per-market'
  }

  #openRun(sid: number, beforeHole?: NumberedMessage): FeedRun {
    const isBegun = this.#subscribed.has(sid)
    const isTurned = this.#subscribed.get(sid) ?? this.#flag ?? (this.#usesYesPrice ? true : null)
    const isPartial = this.#sequence === 'per-market' ? (true as const) : undefined
    const facts = { sid, isBegun, isTurned, isPartial, connection: this.#connection, beforeHole }
    const run = this.#spans.start(facts, this.#name)
    this.#subscribed.delete(sid)
    this.#runs.set(sid, { run, recent: [] })
    return run
  }

  #plainRun(ts: bigint): FeedRun {
    if (this.#plain !== undefined && ts - this.#plain.lastTs > SILENCE_NS_MAX) {
      this.#records.end(this.#plain, 'silence of more than a day')
      this.#plain = undefined
    }
    const isTurned = this.#flag ?? (this.#usesYesPrice ? true : null)
    const facts = { sid: null, isBegun: true, isTurned, connection: this.#connection }
    this.#plain ??= this.#spans.start(facts, this.#name)
    return this.#plain
  }

  #apply({ sid, body }: KalshiMessage, run: FeedRun | undefined, stamp: Stamp): void {
    switch (body.kind) {
      case 'snapshot':
        this.#records.snapshot(run!, body.ticker, stamp, body.levels.map(sided))
        return
      case 'delta':
        if (body.level.qty !== 0) this.#records.level(run!, body.ticker, stamp, EVENT_ADD, sided(body.level))
        return
      case 'subscribe':
        this.#rememberCommand(body.id, body.useYesPrice)
        return
      case 'subscribed':
        if (sid !== undefined && run !== undefined) this.#startSubscription(body.id, body.subscription)
        return
      case 'following':
        this.#leave(sid, stamp, (id) => !body.tickers.has(id))
        return
      case 'unsubscribed':
        this.#leave(sid, stamp, () => true)
        if (sid !== undefined) this.#runs.delete(sid)
        return
      case 'finished':
        for (const open of this.#openRuns()) this.#records.leave(open, body.ticker, stampIn(open, stamp))
        return
      case 'disconnect':
        if (this.#runs.size === 0 && this.#plain === undefined) this.#spans.endsBefore.push(stamp.recvTs)
        this.#closeRuns('disconnect')
        return
      case 'other':
        this.#tally.countSkipped(body.name)
    }
  }

  // Where markets were left out, most subscriptions seem to have begun before the file.
  #hasOlderRuns(): boolean {
    if (this.#sequence !== 'strict') return false
    return [...this.#runs.values()].some(({ run }) => run.firstSeq !== 1)
  }

  *#openRuns(): Iterable<FeedRun> {
    for (const { run } of this.#runs.values()) yield run
    if (this.#plain !== undefined) yield this.#plain
  }

  #leave(sid: number | undefined, stamp: Stamp, isMeant: (id: string) => boolean): void {
    const run = sid === undefined ? this.#plain : this.#runs.get(sid)?.run
    if (run === undefined) return
    for (const [, id] of run.markets()) if (isMeant(id)) this.#records.leave(run, id, stampIn(run, stamp))
  }

  /** Others of the connection of `speaker` are heard of by its message. */
  #hear(speaker: FeedRun | undefined, ts: bigint, recvTs: bigint): void {
    const connection = speaker?.connection ?? this.#connection
    for (const { run } of this.#runs.values())
      if (run !== speaker && run.connection === connection) run.hear(ts, recvTs)
    const plain = this.#plain
    if (plain !== undefined && plain !== speaker && plain.connection === connection) plain.hear(ts, recvTs)
  }

  // A recording may hold the commands without their answers, so a command's flag holds from then on; with the answer it
  // holds for that subscription whatever comes later.
  #rememberCommand(id: number, useYesPrice: boolean | undefined): void {
    if (useYesPrice === undefined) return
    this.#flag = useYesPrice
    if (id !== 0 && this.#flagByCommand.size < IMPORT_COMMANDS_MAX) this.#flagByCommand.set(id, useYesPrice)
  }

  #startSubscription(id: number, sid: number | undefined): void {
    if (sid === undefined) return
    // Beside others that went on from before the file it is another connection's, as a rule.
    if (this.#runs.has(sid) || this.#hasOlderRuns()) this.#closeRuns('new connection')
    const flag = this.#flagByCommand.get(id)
    this.#flagByCommand.delete(id)
    this.#subscribed.set(sid, flag)
  }

  #lose(): void {
    if (this.#plain === undefined) return
    this.#records.end(this.#plain, 'bad line')
    this.#plain = undefined
  }

  #closeRuns(reason: RunEnd): void {
    for (const run of this.#openRuns()) this.#records.end(run, reason)
    this.#connection++
    this.#runs = new Map()
    this.#plain = undefined
  }
}

// Prices stay on the leg that they came on; which price of the book that is depends on the subscription and is settled
// when the strand is known.
function sided({ isYes, price, qty }: LegLevel): BookLevel {
  return { side: isYes ? SIDE_BID : SIDE_ASK, price, qty }
}

function tickerOf(body: KalshiMessage['body']): string | undefined {
  return body.kind === 'snapshot' || body.kind === 'delta' ? body.ticker : undefined
}

/** A mark that another subscription brought stands behind the run's latest message. */
function stampIn(run: FeedRun, { ts, recvTs, seq }: Stamp): Stamp {
  if (run.sid === null) return { ts, recvTs: run.lastRecvTs > recvTs ? run.lastRecvTs : recvTs, seq: 0 }
  return { ts, recvTs, seq: seq === run.lastSeq ? seq : run.lastSeq }
}
