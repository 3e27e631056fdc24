// Gives every message of a file a time, and sees to it that one wrong clock moves nothing else. A message has the
// exchange's time, the recorder's, both or none. Messages with both tell what the recorder's clock is worth: where it
// differs from the exchange's by as much again and again (local time written as UTC, an hour put back), all receive times
// are corrected by that; a single time that its neighbours contradict is set aside. Until a connection's first message
// with both, those with a receive time alone wait. A message without any time takes the previous one's where that says
// nothing new, else it waits for the next.

import { BadLineError } from './bad-line.ts'
import { ConnectionTimes } from './connection-times.ts'
import {
  BEHIND_NS_MAX,
  HEARD_BEFORE_NS_MAX,
  agrees,
  distance,
  isDoubtfulAlone,
  judgeAlone,
  judgePair,
} from './recorder-clock.ts'
import type { MessageClockOptions, MessageClockState } from './message-clock-options.ts'
import { WaitingMessages, isTimeless } from './waiting-messages.ts'
import type { WaitingMessage } from './waiting-messages.ts'
import { judgeReceipts } from './waiting-receipts.ts'

/** So many may wait for one with both times; then their receive times are believed. */
const WAITING_MAX = 2_000

/** A message's times, or those of a silence that bounds others. */
interface Times {
  readonly ts: bigint
  readonly recvTs: bigint
}

export class MessageClock<T> {
  readonly #options: MessageClockOptions<T>
  readonly #held = new WaitingMessages<T>()
  readonly #times: ConnectionTimes
  /** The recorder's clock less the right one. */
  #offset = 0n
  /** Whether receive times are believed: a message of the connection had both, or too many waited for one. */
  #isSettled = false

  constructor(options: MessageClockOptions<T>) {
    this.#options = options
    this.#times = new ConnectionTimes(options.state)
  }

  /** Throws while messages wait. */
  state(): MessageClockState {
    if (this.isHolding) throw new Error('messages that wait for a time cannot be kept')
    return this.#times.state()
  }

  get isHolding(): boolean {
    return this.#held.count > 0
  }

  /** `startsConnection`: the messages before are another connection's, and their times say nothing. */
  push(item: T, ts: bigint | undefined, recvTs: bigint | undefined, startsConnection: boolean): void {
    if (startsConnection) this.#startConnection()
    const entry = { item, ts, recvTs }
    if (this.#held.count === 0 && this.#takeNow(entry)) return
    this.#held.add(entry)
    if (ts !== undefined || this.#held.count > WAITING_MAX) this.#settle(false)
  }

  /** Delivers what still waits. Throws when the whole recording has no time. */
  finish(): void {
    if (this.#held.count === 0) return
    if (this.#times.lastTs !== undefined || !this.#held.areTimeless) {
      this.#settle(true)
      return
    }
    if (this.#times.beforeTs === undefined)
      throw new BadLineError('no message of the recording carries a time')
    for (const { item } of this.#held.take()) this.#options.onLeftOut(item, 'timeless')
  }

  #startConnection(): void {
    // A connection that told no time at all waits on, with the one that follows it.
    if (!this.#held.areTimeless) this.#settle(true)
    this.#forgetConnection()
  }

  #forgetConnection(): void {
    this.#times.forget()
    this.#isSettled = false
  }

  /** Delivers a message whose times are beyond doubt. */
  #takeNow(entry: WaitingMessage<T>): boolean {
    const { item, ts, recvTs } = entry
    if (ts !== undefined && recvTs !== undefined) return this.#takePair(entry, ts, recvTs)
    if (ts !== undefined) return this.#takeOne(entry, 'ts', ts)
    if (recvTs !== undefined) return this.#takeReceived(entry, recvTs)
    if (this.#times.lastTs === undefined || !this.#options.saysNothingNew(item)) return false
    this.#deliver(item, this.#times.lastTs, this.#times.lastTs)
    return true
  }

  #takePair({ item }: WaitingMessage<T>, ts: bigint, recvTs: bigint): boolean {
    if (!agrees(ts, recvTs, this.#offset)) {
      if (this.#options.trustsReceiveTimes) {
        this.#putAtReceipt(item, ts, recvTs)
        return true
      }
      if (this.#isSettled || !agrees(ts, recvTs, 0n)) return false
      this.#offset = 0n
    }
    const time = recvTs - this.#offset
    if (this.#times.isAhead(ts, time)) {
      if (!this.#options.trustsReceiveTimes) return false
      if (this.#times.isAheadFirst(ts, time)) {
        this.#putAtReceipt(item, ts, time)
        return true
      }
    }
    const isBack = this.#times.isBack(ts)
    if (isBack && this.#isOfAnother(time)) return false
    this.#isSettled = true
    if (isBack && this.#options.isNext(item)) this.#putAtReceipt(item, ts, time)
    else this.#correctPair(item, ts, recvTs)
    return true
  }

  #takeReceived(entry: WaitingMessage<T>, recvTs: bigint): boolean {
    if (this.#options.trustsReceiveTimes) return this.#takeOne(entry, 'recvTs', recvTs)
    const time = recvTs - this.#offset
    const last = this.#times.lastRecvTs
    // A time that goes back a little moves nothing: numbers, or the times themselves, tell what comes first.
    if (!this.#isSettled || last === undefined || distance(time, last) > BEHIND_NS_MAX) return false
    this.#correct(entry.item, time, recvTs)
    return true
  }

  #takeOne({ item }: WaitingMessage<T>, which: 'ts' | 'recvTs', time: bigint): boolean {
    const last = this.#times.lastTs
    if (!this.#options.trustsReceiveTimes) {
      if (isDoubtfulAlone({ time, isIdle: this.#options.isIdle(item), last })) return false
    }
    if (last !== undefined && time < last - BEHIND_NS_MAX) this.#setAside(item, which, time, last)
    else this.#deliver(item, time, time)
    return true
  }

  /** Delivers what waits as far as its times can be told; all of it when nothing more comes. */
  #settle(isFinal: boolean): void {
    if (this.#times.lastTs === undefined && this.#held.areTimeless) return
    while (this.#held.count > 0) {
      const place = this.#held.placeOfTold
      const offset = this.#offset
      const told = place === -1 ? undefined : this.#tellTimes(place, isFinal)
      if (told === undefined && !isFinal && (place !== -1 || this.#held.count <= WAITING_MAX)) return
      const heads = this.#held.take(told === undefined ? undefined : place)
      if (this.#isOfAnother(told === undefined ? this.#latestOf(heads) : told.times.recvTs)) {
        this.#forgetConnection()
        this.#options.anotherRecording.onBegin()
      }
      this.#deliverHeads(heads, told && { ...told.times, item: this.#held.at(0).item }, offset)
      if (told === undefined) this.#isSettled = true
      else {
        this.#held.shift()
        told.deliver()
      }
      while (this.#held.first !== undefined && this.#takeNow(this.#held.first)) this.#held.shift()
    }
  }

  /** Whether a message received then belongs to another recording than those before it. */
  #isOfAnother(recvTs: bigint | undefined): boolean {
    const last = this.#times.lastRecvTs
    const { anotherRecording, trustsReceiveTimes } = this.#options
    if (trustsReceiveTimes || recvTs === undefined || last === undefined) return false
    return recvTs < last - anotherRecording.backNs
  }

  /** The latest receipt of several messages. One alone may as well have a wrong time. */
  #latestOf(heads: readonly WaitingMessage<T>[]): bigint | undefined {
    const received = heads.flatMap(({ recvTs }) => (recvTs === undefined ? [] : [recvTs - this.#offset]))
    return received.length < 2 ? undefined : received.reduce((a, b) => (a > b ? a : b))
  }

  /** The times of the first message that waits with the exchange's; undefined while only later ones can tell. */
  #tellTimes(
    place: number,
    isFinal: boolean,
  ): { readonly times: Times; readonly deliver: () => void } | undefined {
    const { item, ts, recvTs } = this.#held.at(place)
    if (recvTs === undefined) return this.#tellOnly(place, isFinal)
    const received = this.#held.receivedBefore(place)
    const before = received === undefined ? this.#times.lastRecvTs : received - this.#offset
    const pair = { ts: ts!, recvTs, before, beforeTs: this.#times.lastTs, aheadNs: this.#times.aheadNs }
    const verdict = judgePair(pair, this.#held.after(place), {
      offset: this.#offset,
      isSettled: this.#isSettled,
      isFinal,
      isInOrder: this.#times.isInOrder,
    })
    if (verdict === undefined) return undefined
    this.#offset = verdict.offset
    if (verdict.isTold) this.#isSettled = true
    const time = recvTs - verdict.offset
    if (verdict.wrong === 'ts') {
      return { times: { ts: time, recvTs: time }, deliver: () => this.#putAtReceipt(item, ts!, time) }
    }
    if (verdict.wrong === 'recvTs') {
      return { times: { ts: ts!, recvTs: ts! }, deliver: () => this.#setAside(item, 'recvTs', time, ts!) }
    }
    return { times: { ts: ts!, recvTs: time }, deliver: () => this.#correctPair(item, ts!, recvTs) }
  }

  /** One clock alone leapt ahead: it was wrong when the next message goes back, or when nothing bears it out. */
  #tellOnly(place: number, isFinal: boolean) {
    const { item, ts } = this.#held.at(place)
    const time = ts!
    const next = this.#held.after(place).find((entry) => !isTimeless(entry))
    const alone = { time, isIdle: this.#options.isIdle(item), last: this.#times.lastTs }
    if (next === undefined && !isFinal && isDoubtfulAlone(alone)) return undefined
    const right = judgeAlone(alone, next?.ts ?? next?.recvTs)
    const deliver = (): void =>
      right === time ? this.#deliver(item, time, time) : this.#setAside(item, 'ts', time, right)
    return { times: { ts: right, recvTs: right }, deliver }
  }

  /**
   * Delivers messages with a receive time at most; `next` are the times of the message after them, where one is known, and
   * `offset` is what was believed of the clock before it.
   */
  #deliverHeads(
    heads: readonly WaitingMessage<T>[],
    next: (Times & { readonly item: T }) | undefined,
    offset: bigint,
  ): void {
    const receipts = judgeReceipts(
      heads.map(({ item, recvTs }) => ({ recvTs, isIdle: this.#options.isIdle(item) })),
      {
        before: this.#times.lastRecvTs,
        beforeConnection: this.#times.beforeTs,
        next: next?.recvTs,
        offsets: [offset, this.#offset],
      },
    )
    for (const [index, { item, recvTs }] of heads.entries()) {
      const { time, received, following, offset: ownOffset } = receipts[index]!
      if (time !== undefined) this.#correct(item, time, recvTs!, ownOffset)
      else if (recvTs !== undefined) {
        // A book is not known before the next message came, and a word proves nothing after the one before.
        const [first, second] = this.#options.isIdle(item)
          ? [this.#times.lastTs, following]
          : [following, this.#times.lastTs]
        const right = first ?? second ?? received!
        const waiting = [...heads.slice(index + 1), ...(next === undefined ? [] : [next])].map(
          (one) => one.item,
        )
        if (this.#times.isInOrder && !this.#options.isOutOfPlace(item, waiting)) {
          this.#setAside(item, 'recvTs', received!, right)
        } else if (distance(received!, right) < HEARD_BEFORE_NS_MAX)
          this.#correct(item, received!, recvTs, ownOffset)
        else this.#options.onLeftOut(item, 'out of order')
      } else {
        const last = this.#times.lastTs
        const isNothingNew = last !== undefined && this.#options.saysNothingNew(item)
        const right = isNothingNew ? last : (following ?? next?.ts ?? last!)
        this.#deliver(item, right, right)
      }
    }
  }

  /** Delivers at `ts` with the receive time that the right clock would have shown. */
  #correct(item: T, ts: bigint, recvTs: bigint, offset = this.#offset): void {
    if (offset !== 0n) this.#options.onSetAside(item, 'recvTs', offset < 0n ? -offset : offset)
    this.#deliver(item, ts, recvTs - offset)
  }

  #correctPair(item: T, ts: bigint, recvTs: bigint): void {
    this.#correct(item, ts, recvTs)
    // What a live recorder itself says that it has heard tells nothing of the exchange's clock.
    if (!this.#options.trustsReceiveTimes || ts !== recvTs) this.#times.tell(ts, recvTs - this.#offset)
  }

  /** Sets the exchange's time aside: the message happened at its receipt, by what the clock was worth before it. */
  #putAtReceipt(item: T, ts: bigint, time: bigint): void {
    this.#setAside(item, 'ts', ts, this.#times.happenedAt(time), time)
  }

  /** Delivers at `time` what a clock put elsewhere. */
  #setAside(item: T, which: 'ts' | 'recvTs', wrong: bigint, time: bigint, recvTs = time): void {
    if (!this.#times.isInOrder && !this.#options.trustsReceiveTimes) {
      this.#options.onLeftOut(item, 'out of order')
      return
    }
    this.#options.onSetAside(item, which, distance(wrong, time))
    this.#deliver(item, time, recvTs)
  }

  #deliver(item: T, ts: bigint, recvTs: bigint): void {
    this.#options.deliver(item, ts, recvTs)
    this.#times.add(ts, recvTs)
  }
}
