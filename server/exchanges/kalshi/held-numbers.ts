// The numbers of messages that wait for a time: they stand before the next message, though no run has them yet.

import { isDeepStrictEqual } from 'node:util'
import type { Frame } from '../../feed/frame.ts'

export class HeldNumbers {
  /** Whether a connection began among the messages that wait: nothing before them counts. */
  hasConnection = false
  /** The latest number of each subscription. */
  readonly #lastSeqs = new Map<number, number>()
  /** By subscription and number; receive times as the recorder wrote them. */
  readonly #messages = new Map<string, { readonly frame: Frame; readonly receivedTs: bigint | undefined }>()

  add(sid: number, seq: number, frame: Frame, receivedTs: bigint | undefined): void {
    this.#lastSeqs.set(sid, seq)
    this.#messages.set(`${sid}:${seq}`, { frame, receivedTs })
  }

  /** Whether the same message, received at the same time, waits already. */
  hasReceived(sid: number, seq: number, frame: Frame, receivedTs: bigint): boolean {
    const held = this.#messages.get(`${sid}:${seq}`)
    return held !== undefined && held.receivedTs === receivedTs && isDeepStrictEqual(held.frame, frame)
  }

  lastSeq(sid: number): number | undefined {
    return this.#lastSeqs.get(sid)
  }

  /** Whether the same message waits already. */
  has(sid: number, seq: number, frame: Frame): boolean {
    return isDeepStrictEqual(this.#messages.get(`${sid}:${seq}`)?.frame, frame)
  }

  clear(): void {
    this.hasConnection = false
    // Comes before every message, and an empty map is dear to clear.
    if (this.#lastSeqs.size === 0) return
    this.#lastSeqs.clear()
    this.#messages.clear()
  }
}
