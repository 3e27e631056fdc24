// Polymarket messages → records. There are no sequence numbers, so a loss only shows as a disconnect, as a first dump of
// books that are known already, or in the best prices that messages state (token-books.ts). Both tokens of a market are kept, each with a book of its own.

import { EVENT_SET } from '../../../shared/lob-v1.ts'
import { LOB_SOURCES } from '../../../shared/lob-sources.ts'
import { earlier, later } from '../../../shared/utc-date.ts'
import type { BookLevel } from '../../lake/exact-book.ts'
import { LEFT_OUT, RunRecords } from '../../feed/feed-decoder.ts'
import type { FeedDecoderOptions, ResumableDecoder, Stamp } from '../../feed/feed-decoder.ts'
import { SILENCE_NS_MAX } from '../../feed/feed-run.ts'
import type { FeedRun } from '../../feed/feed-run.ts'
import type { FeedSpans } from '../../feed/feed-spans.ts'
import type { RunEnd } from '../../feed/read-span.ts'
import type { ImportTally } from '../../feed/import-tally.ts'
import { LOST, firstBooksOf } from './arrival.ts'
import type { Arrival } from './arrival.ts'
import type { PolymarketDecoderState } from './decoder-state.ts'
import { LineOrder } from '../../feed/line-order.ts'
import { MessageClock } from '../../feed/message-clock.ts'
import { AHEAD_NS_MAX, BEHIND_NS_MAX } from '../../feed/recorder-clock.ts'
import { HELD_MESSAGES_MAX } from '../../feed/waiting-messages.ts'
import { latestChange, parsePolymarketFrame, tokenOf } from './frame.ts'
import type { PolymarketMessage, PriceChange } from './frame.ts'
import { LoneBookLines } from './lone-books.ts'
import { MessageTimes } from './message-times.ts'
import { RecentMessages } from './recent-messages.ts'
import { TokenBooks } from './token-books.ts'
import type { TokenBook } from './token-books.ts'
import type { RecordedMessage } from '../../feed/frame.ts'

export interface PolymarketDecoderOptions extends FeedDecoderOptions {
  readonly state?: PolymarketDecoderState | undefined
}

export class PolymarketDecoder implements ResumableDecoder {
  readonly #tally: ImportTally
  readonly #records: RunRecords
  readonly #spans: FeedSpans
  readonly #isLive: boolean
  readonly #clockOptions: ConstructorParameters<typeof MessageClock<Arrival>>[0]
  #clock: MessageClock<Arrival>
  #name = ''
  #run: FeedRun | undefined
  /** The tokens of the run. */
  readonly #tokens: TokenBooks
  /** Books at the head of a file without receive times: they were sent when the recording began. */
  #waiting: Arrival[] = []
  readonly #times: MessageTimes
  readonly #recent = new RecentMessages()
  readonly #lone = new LoneBookLines()
  readonly #lineOrder: LineOrder
  /** When a file without receive times began; undefined until a message tells. */
  #startTs: bigint | undefined

  constructor(options: PolymarketDecoderOptions) {
    this.#tally = options.tally
    this.#spans = options.spans
    this.#isLive = options.isLive ?? false
    this.#lineOrder = new LineOrder(this.#isLive)
    this.#records = new RunRecords(options, LOB_SOURCES.polymarket.seriesOf)
    this.#clockOptions = {
      deliver: (arrival, ts, recvTs) => this.#take(arrival, ts, recvTs),
      onSetAside: ({ message }, which, byNs) => options.tally.countSetAside(which, byNs, tokenOf(message)),
      trustsReceiveTimes: options.isLive ?? false,
      isNext: () => false,
      isOutOfPlace: () => false,
      isIdle: ({ message }) => message.body.kind !== 'book' && message.body.kind !== 'changes',
      saysNothingNew: () => true,
      onLeftOut: (_, why) => {
        options.tally.countSkipped(LEFT_OUT[why])
        if (why === 'out of order') this.#end('bad line')
      },
      // Less may be two lines that stand swapped.
      anotherRecording: { backNs: BEHIND_NS_MAX, onBegin: () => this.#end('new connection') },
    }
    const { state } = options
    this.#tokens = new TokenBooks(state?.tokens)
    this.#times = new MessageTimes(state?.lagNs)
    this.#clock = new MessageClock({ ...this.#clockOptions, state: state?.clock })
    if (state === undefined) return
    this.#name = state.name
    if (state.run !== undefined) this.#run = this.#spans.resume(state.run)
  }

  state(): PolymarketDecoderState {
    return {
      clock: this.#clock.state(),
      name: this.#name,
      run: this.#run?.state(),
      tokens: this.#tokens.state(),
      lagNs: this.#times.lagNs,
    }
  }

  forgetMarkets(): void {
    this.#records.forgetMarkets()
  }

  startFile(name: string): void {
    this.#name = name
    this.#clock = new MessageClock(this.#clockOptions)
    this.#recent.clear()
    this.#lineOrder.startFile(name)
    this.#startTs = undefined
    this.#lone.clear()
    this.#end('end of file')
  }

  decode({ frames, recvTs, isList }: RecordedMessage): void {
    if (recvTs !== undefined && this.#recent.holds(frames, recvTs)) {
      this.#tally.messages += frames.length
      for (const frame of frames) this.#tally.countRepeat(tokenOf(parsePolymarketFrame(frame)))
      return
    }
    this.#lineOrder.countReceipt(recvTs)
    const messages = frames.map(parsePolymarketFrame)
    for (const message of messages) this.#checkMarkets(message)
    if (recvTs !== undefined && !isList && this.#holdsBack(messages[0], recvTs)) return
    this.#releaseLone(messages[0], recvTs)
    const books = messages.flatMap(({ body }) => (body.kind === 'book' ? [body.marketId] : []))
    const dump = isList && books.length > 0 ? books : undefined
    const changedTs = dump === undefined ? undefined : latestChange(messages)
    for (const message of messages) {
      const ts = message.body.kind === 'book' ? (changedTs ?? message.ts) : message.ts
      this.#arrive({ message, dump, ts, isReceived: recvTs !== undefined }, recvTs)
      if (recvTs !== undefined) this.#lone.pass(message, recvTs)
    }
  }

  /** Whether it is a book alone, which then waits for others that may have come with it. */
  #holdsBack(message: PolymarketMessage | undefined, recvTs: bigint): boolean {
    if (this.#isLive || message === undefined) return false
    if (this.#lone.add(message, recvTs)) return true
    this.#releaseLone(message, recvTs)
    return this.#lone.add(message, recvTs)
  }

  /** `next` comes after them. */
  #releaseLone(next?: PolymarketMessage, nextRecvTs?: bigint): void {
    for (const { recvTs, ...line } of this.#lone.take(next, nextRecvTs))
      this.#arrive({ ...line, ts: line.message.ts, isReceived: true }, recvTs)
  }

  // Which token a lost message was about is not known.
  skipBadLine(): void {
    this.#releaseLone()
    if (this.#waiting.length > 0) this.#waiting.push(LOST)
    else if (this.#clock.isHolding) this.#clock.push(LOST, undefined, undefined, false)
    else this.#end('bad line')
  }

  finishFile(): void {
    this.#releaseLone()
    this.#releaseWaiting()
    this.#clock.finish()
    this.#end('end of file')
    this.#lineOrder.refuseDisorder()
  }

  #arrive(arrival: Arrival, recvTs: bigint | undefined): void {
    const { message, ts } = arrival
    const isBook = message.body.kind === 'book'
    if (recvTs !== undefined) {
      this.#clock.push(arrival, isBook ? undefined : ts, recvTs, false)
      return
    }
    if (!isBook && ts !== undefined) this.#startTs ??= ts
    if (this.#startTs !== undefined) {
      this.#releaseWaiting()
      this.#clock.push(arrival, ts === undefined ? undefined : later(ts, this.#startTs), undefined, false)
      return
    }
    this.#waiting.push(arrival)
    if (this.#waiting.length > HELD_MESSAGES_MAX) this.#releaseWaiting()
  }

  // No message but books: their own times are all there is.
  #releaseWaiting(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const arrival of waiting) {
      const time = this.#startTs ?? arrival.ts
      this.#clock.push(arrival, arrival.message.body.kind === 'lost' ? undefined : time, undefined, false)
    }
  }

  #checkMarkets({ body }: PolymarketMessage): void {
    if (body.kind === 'book') this.#records.checkId(body.marketId)
    if (body.kind === 'changes') for (const { marketId } of body.changes) this.#records.checkId(marketId)
  }

  #take(arrival: Arrival, time: bigint, recvTs: bigint): void {
    const { message, isReceived } = arrival
    const { body } = message
    const dump = firstBooksOf(arrival, this.#tokens)
    const isAnother = dump !== undefined && this.#isNewConnection(dump, recvTs)
    const ts = this.#times.of(arrival, this.#tokens, { isFirst: dump !== undefined, isAnother }, time, recvTs)
    if (body.kind === 'lost') {
      this.#end('bad line')
      return
    }
    this.#tally.messages++
    const stamp = { ts, recvTs, seq: 0 }
    if (this.#run !== undefined && ts - this.#run.lastTs > SILENCE_NS_MAX)
      this.#end('silence of more than a day')
    switch (body.kind) {
      case 'book': {
        if (isAnother) this.#end('new connection')
        const run = this.#runFrom(dump !== undefined, stamp)
        const ownTs = message.ts ?? ts
        // One of both clocks is wrong, and nothing tells which: the book was another then, or came later.
        if (isReceived && !this.#isLive && ownTs > recvTs + AHEAD_NS_MAX)
          this.#forget(run, body.marketId, stamp, ownTs)
        else this.#applyBook(run, body.marketId, stamp, body.levels, ownTs)
        return
      }
      case 'changes':
        this.#applyChanges(this.#runFrom(false, stamp), body.changes, stamp)
        return
      case 'left':
        this.#leave(body.tokens, stamp)
        return
      case 'disconnect':
        if (this.#run === undefined) this.#spans.endsBefore.push(recvTs)
        this.#end('disconnect')
        return
      case 'heard':
      case 'other':
        this.#runFrom(false, stamp, body.kind === 'heard')
        this.#tally.countSkipped(body.name)
    }
  }

  // Tokens may be added to a connection; a list of books for tokens that it has spoken of, or in the middle of one whose
  // beginning is not known, is another's beginning. What came at the same moment is one list.
  #isNewConnection(dump: readonly string[], recvTs: bigint): boolean {
    const run = this.#run
    if (run === undefined || run.lastRecvTs === recvTs) return false
    return !run.isBegun || dump.some((id) => this.#tokens.has(id))
  }

  #runFrom(isBegun: boolean, { ts, recvTs }: Stamp, isOwnWord = false): FeedRun {
    this.#run ??= this.#spans.start({ sid: null, isBegun, isTurned: null, connection: 0 }, this.#name)
    this.#run.take(0, ts, recvTs, isOwnWord)
    return this.#run
  }

  #forget(run: FeedRun, id: string, stamp: Stamp, ownTs: bigint): void {
    this.#tally.countSetAside('recvTs', ownTs - stamp.recvTs, id)
    const last = run.behindAll(stamp)
    this.#records.leave(run, id, { ...last, ts: earlier(last.ts, ownTs) })
    this.#tokens.delete(id)
  }

  #applyBook(run: FeedRun, id: string, received: Stamp, levels: readonly BookLevel[], ownTs: bigint): void {
    const token = this.#tokens.of(id)
    const stamp = { ...received, recvTs: token.receive(received.recvTs, ownTs) }
    const { held, droppedTs } = token.become(levels, stamp.ts)
    this.#records.snapshot(run, id, stamp, levels)
    for (const change of held) {
      if (change.stamp.ts <= ownTs) continue
      token.set(change.level)
      this.#records.level(run, id, { ...change.stamp, recvTs: stamp.recvTs }, EVENT_SET, change.level)
    }
    if (droppedTs <= ownTs) return
    this.#records.leave(run, id, run.behindAll(stamp))
    this.#tally.countGap('too many changes held')
  }

  #applyChanges(run: FeedRun, changes: readonly PriceChange[], received: Stamp): void {
    const lastChanges = new Map<TokenBook, PriceChange>()
    for (const change of changes) {
      const token = this.#tokens.of(change.marketId)
      const recvTs = token.receive(received.recvTs, received.ts)
      const stamp = { ...received, ts: token.timeOfChange(received.ts), recvTs }
      token.set(change.level)
      this.#records.level(run, change.marketId, stamp, EVENT_SET, change.level)
      if (token.isKnown) lastChanges.set(token, change)
      else token.hold(stamp, change.level)
    }
    for (const [token, change] of lastChanges) if (!token.hasBest(change)) this.#tally.bestPriceMismatches++
  }

  // Without this the books of markets that are over would seem known, and stay, for as long as the connection lives.
  #leave(tokens: readonly string[], stamp: Stamp): void {
    const run = this.#run
    if (run === undefined) return
    for (const id of this.#tokens.forget(new Set(tokens))) this.#records.leave(run, id, run.behindAll(stamp))
  }

  #end(reason: RunEnd): void {
    if (this.#run !== undefined) this.#records.end(this.#run, reason)
    this.#run = undefined
    this.#tokens.clear()
    this.#times.forget()
  }
}
