// Kalshi's sequence numbers. They count all messages of one subscription (sid), whatever market they are about, and start
// anew with every connection, so a number at or below the last one is either a repeated message or another connection:
// only comparing the messages tells. Numbers are never compared across subscriptions.

import { isDeepStrictEqual } from 'node:util'
import { IMPORT_DUPLICATE_WINDOW } from '../../shared/limits.ts'
import type { KalshiMessage } from './kalshi-frame.ts'
import type { Frame } from './recorded-message.ts'

/** `break`: messages of the subscription are missing. `restart`: the message belongs to another connection. */
export type SequenceVerdict = 'next' | 'break' | 'duplicate' | 'restart'

interface Subscription {
  /** `undefined` until the first numbered message, which is never a break. */
  lastSeq: number | undefined
  readonly recent: { readonly seq: number; readonly frame: Frame }[]
}

export interface KalshiSequenceState {
  readonly subscriptions: readonly (readonly [number, Subscription])[]
  readonly hasMessages: boolean
  readonly isFileStart: boolean
}

export class KalshiSequence {
  #subscriptions: Map<number, Subscription>
  #hasMessages: boolean
  #isFileStart: boolean

  constructor(state?: KalshiSequenceState) {
    this.#subscriptions = new Map(state?.subscriptions.map(([sid, known]) => [sid, copyOf(known)]))
    this.#hasMessages = state?.hasMessages ?? false
    this.#isFileStart = state?.isFileStart ?? false
  }

  state(): KalshiSequenceState {
    return {
      subscriptions: [...this.#subscriptions].map(([sid, known]) => [sid, copyOf(known)]),
      hasMessages: this.#hasMessages,
      isFileStart: this.#isFileStart,
    }
  }

  /** The next message that can tell may belong to another connection than the one before. */
  startFile(): void {
    this.#isFileStart = this.#hasMessages
  }

  /** What the message is to the sequence; nothing is changed. */
  verdict({ sid, seq, frame, body }: KalshiMessage): SequenceVerdict {
    if (body.kind === 'subscribed' && body.subscription !== undefined) {
      return this.#subscriptions.has(body.subscription) ? 'restart' : 'next'
    }
    if (sid === undefined || seq === undefined) {
      // Without numbers nothing shows that the new file goes on where the last one ended.
      return this.#isFileStart && (body.kind === 'snapshot' || body.kind === 'delta') ? 'restart' : 'next'
    }
    const subscription = this.#subscriptions.get(sid)
    const lastSeq = subscription?.lastSeq
    if (subscription === undefined || lastSeq === undefined) return this.#isFileStart ? 'restart' : 'next'
    if (seq === lastSeq + 1) return 'next'
    if (seq > lastSeq) return this.#isFileStart ? 'restart' : 'break'
    const earlier = subscription.recent[seq % IMPORT_DUPLICATE_WINDOW]
    return earlier?.seq === seq && isDeepStrictEqual(earlier.frame, frame) ? 'duplicate' : 'restart'
  }

  /** The message has been taken. After a restart, `forget` comes first. */
  accept({ sid, seq, frame, body }: KalshiMessage): void {
    this.#hasMessages = true
    if (body.kind === 'subscribed' && body.subscription !== undefined) {
      this.#subscriptions.set(body.subscription, { lastSeq: undefined, recent: [] })
      this.#isFileStart = false
    }
    if (sid === undefined || seq === undefined) return
    this.#isFileStart = false
    const subscription = this.#subscriptions.get(sid) ?? { lastSeq: undefined, recent: [] }
    subscription.lastSeq = seq
    subscription.recent[seq % IMPORT_DUPLICATE_WINDOW] = { seq, frame }
    this.#subscriptions.set(sid, subscription)
    if (body.kind === 'unsubscribed') this.#subscriptions.delete(sid)
  }

  /** Another connection begins: its subscriptions count from anew. */
  forget(): void {
    this.#subscriptions = new Map()
    this.#isFileStart = false
  }
}

function copyOf({ lastSeq, recent }: Subscription): Subscription {
  return { lastSeq, recent: [...recent] }
}
