// Kalshi messages → records. It follows runs: stretches of a subscription's numbers in which none is missing
// (open-runs.ts). Messages that wait for a time stand between the clock and the runs (held-numbers.ts).

import { EVENT_ADD, SIDE_ASK, SIDE_BID } from '../../../shared/lob-v1.ts'
import { LOB_SOURCES } from '../../../shared/lob-sources.ts'
import type { BookLevel } from '../../lake/exact-book.ts'
import { LEFT_OUT, RunRecords } from '../../feed/feed-decoder.ts'
import type { FeedDecoderOptions, ResumableDecoder, Stamp } from '../../feed/feed-decoder.ts'
import type { FeedReading } from '../../feed/feed-reading.ts'
import type { FeedRun } from '../../feed/feed-run.ts'
import type { FeedSpans } from '../../feed/feed-spans.ts'
import type { ImportTally } from '../../feed/import-tally.ts'
import { HeldNumbers } from './held-numbers.ts'
import { LOST_MESSAGE, parseKalshiFrame } from './frame.ts'
import type { KalshiMessage, LegLevel } from './frame.ts'
import { MessageClock } from '../../feed/message-clock.ts'
import type { MessageClockState } from '../../feed/message-clock-options.ts'
import { BACK_NS_MAX } from '../../feed/recorder-clock.ts'
import type { RecordedMessage } from '../../feed/frame.ts'
import { OpenRuns } from './open-runs.ts'
import type { OpenRunsState } from './open-runs.ts'

export interface KalshiDecoderOptions extends FeedDecoderOptions, FeedReading {
  readonly state?: KalshiDecoderState | undefined
}

export interface KalshiDecoderState extends OpenRunsState {
  readonly clock: MessageClockState
}

export class KalshiDecoder implements ResumableDecoder {
  readonly #tally: ImportTally
  readonly #records: RunRecords
  readonly #spans: FeedSpans
  readonly #clockOptions: ConstructorParameters<typeof MessageClock<KalshiMessage>>[0]
  readonly #ignoresNumbers: boolean
  readonly #runs: OpenRuns
  #clock: MessageClock<KalshiMessage>
  readonly #held = new HeldNumbers()
  /** Books without a time that came right behind one with a time. */
  readonly #sentTogether = new WeakSet<KalshiMessage>()
  #isBookTimed = false

  constructor(options: KalshiDecoderOptions) {
    this.#tally = options.tally
    this.#spans = options.spans
    this.#records = new RunRecords(options, LOB_SOURCES.kalshi.seriesOf)
    this.#ignoresNumbers = options.sequence === 'ignore'
    this.#runs = new OpenRuns(options, this.#records, options.state)
    this.#clockOptions = {
      deliver: (message, ts, recvTs) => this.#take(message, ts, recvTs),
      onSetAside: ({ body }, which, byNs) => options.tally.countSetAside(which, byNs, tickerOf(body)),
      trustsReceiveTimes: options.isLive ?? false,
      isNext: ({ sid, seq }) =>
        sid !== undefined && seq !== undefined && this.#runs.of(sid)?.lastSeq === seq - 1,
      isOutOfPlace: ({ sid, seq }, waiting) => {
        if (sid === undefined || seq === undefined) return false
        const run = this.#runs.of(sid)
        const next = waiting.find((message) => message.sid === sid && message.seq !== undefined)
        const follows = run === undefined || seq === run.lastSeq + 1
        return !follows || (next !== undefined && next.seq !== seq + 1)
      },
      isIdle: ({ body }) => body.kind !== 'snapshot' && body.kind !== 'delta',
      saysNothingNew: (message) => this.#saysNothingNew(message),
      onLeftOut: (_, why) => options.tally.countSkipped(LEFT_OUT[why]),
      // Where that was a wrong guess, numbers put the runs together again.
      anotherRecording: { backNs: BACK_NS_MAX, onBegin: () => this.#runs.goBack() },
    }
    this.#clock = new MessageClock({ ...this.#clockOptions, state: options.state?.clock })
  }

  state(): KalshiDecoderState {
    return { clock: this.#clock.state(), ...this.#runs.state() }
  }

  forgetMarkets(): void {
    this.#records.forgetMarkets()
  }

  startFile(name: string): void {
    this.#clock = new MessageClock(this.#clockOptions)
    this.#runs.startFile(name)
  }

  decode({ frames, recvTs }: RecordedMessage): void {
    for (const frame of frames) {
      const message = this.#trusted(parseKalshiFrame(frame))
      const { body } = message
      if (body.kind === 'snapshot' || body.kind === 'delta') this.#records.checkId(body.ticker)
      this.#push(message, recvTs)
    }
  }

  skipBadLine(): void {
    if (this.#clock.isHolding) this.#clock.push(LOST_MESSAGE, undefined, undefined, false)
    else this.#runs.lose()
  }

  finishFile(): void {
    this.#clock.finish()
    this.#runs.finishFile()
  }

  #trusted(message: KalshiMessage): KalshiMessage {
    return this.#ignoresNumbers ? { ...message, seq: undefined } : message
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
    return !this.#held.hasConnection && this.#runs.hasReceived(sid, seq, frame, recvTs)
  }

  /** A book without a time may be told anew where nothing is missing before it; else it is known when the next message comes. */
  #saysNothingNew(message: KalshiMessage): boolean {
    const { sid, seq, body } = message
    if (body.kind !== 'snapshot' || this.#sentTogether.has(message)) return true
    const run = sid === undefined || seq === undefined ? undefined : this.#runs.of(sid)
    return run !== undefined && seq! <= run.lastSeq + 1 && this.#records.follows(run, body.ticker)
  }

  /** Whether the message belongs to another connection than those before it. */
  #isRestart({ sid, seq, body, frame }: KalshiMessage): boolean {
    const runs = this.#held.hasConnection ? undefined : this.#runs
    if (body.kind === 'subscribed' && body.subscription !== undefined) {
      const { subscription } = body
      return this.#held.lastSeq(subscription) !== undefined || runs?.of(subscription) !== undefined
    }
    if (sid === undefined || seq === undefined) return false
    const lastSeq = this.#held.lastSeq(sid) ?? runs?.of(sid)?.lastSeq
    if (lastSeq === undefined || seq > lastSeq || this.#held.has(sid, seq, frame)) return false
    return runs === undefined || !runs.holds(sid, seq, frame)
  }

  #take(message: KalshiMessage, ts: bigint, recvTs: bigint): void {
    const { body } = message
    if (body.kind === 'lost') {
      this.#runs.lose()
      return
    }
    this.#tally.messages++
    const seq = message.seq ?? 0
    const run = this.#runs.next(message, ts, recvTs)
    if (run === 'repeat') {
      this.#tally.countRepeat(tickerOf(body))
      return
    }
    // What the recorder says itself does not show that the connection lives.
    const isHeard = body.kind !== 'disconnect' && body.kind !== 'subscribe'
    if (isHeard) this.#runs.hear(run, ts, recvTs)
    if (run !== undefined) {
      if (run.sid !== null) this.#tally.numbers.taken++
      run.take(run.sid === null ? 0 : seq, ts, recvTs)
      this.#runs.remember(message, recvTs)
    }
    this.#apply(message, run, { ts, recvTs, seq: run?.sid === null ? 0 : seq })
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
        this.#runs.rememberCommand(body.id, body.useYesPrice)
        return
      case 'subscribed':
        if (sid !== undefined && run !== undefined) this.#runs.startSubscription(body.id, body.subscription)
        return
      case 'following':
        this.#leave(sid, stamp, (id) => !body.tickers.has(id))
        return
      case 'unsubscribed':
        this.#leave(sid, stamp, () => true)
        if (sid !== undefined) this.#runs.drop(sid)
        return
      case 'finished':
        for (const open of this.#runs) this.#records.leave(open, body.ticker, stampIn(open, stamp))
        return
      case 'disconnect':
        if (this.#runs.isEmpty) this.#spans.endsBefore.push(stamp.recvTs)
        this.#runs.close('disconnect')
        return
      case 'other':
        this.#tally.countSkipped(body.name)
    }
  }

  #leave(sid: number | undefined, stamp: Stamp, isMeant: (id: string) => boolean): void {
    const run = this.#runs.of(sid)
    if (run === undefined) return
    for (const [, id] of run.markets()) if (isMeant(id)) this.#records.leave(run, id, stampIn(run, stamp))
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
