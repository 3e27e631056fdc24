// The latest messages with a receive time, by which a line that stands twice is known.

import { isDeepStrictEqual } from 'node:util'
import type { Frame } from '../../feed/frame.ts'

/** A line that stands twice stands again within so many. */
const WINDOW = 64

export class RecentMessages {
  /** A ring. */
  readonly #messages: { readonly recvTs: bigint; readonly frames: readonly Frame[] }[] = []
  #count = 0
  #latestTs = -1n

  /** Whether the same message came lately, at the same time. Else it is remembered. */
  holds(frames: readonly Frame[], recvTs: bigint): boolean {
    const isNew = recvTs > this.#latestTs
    if (
      !isNew &&
      this.#messages.some((one) => one.recvTs === recvTs && isDeepStrictEqual(one.frames, frames))
    )
      return true
    if (isNew) this.#latestTs = recvTs
    this.#messages[this.#count++ % WINDOW] = { recvTs, frames }
    return false
  }

  clear(): void {
    this.#messages.length = 0
    this.#count = 0
    this.#latestTs = -1n
  }
}
