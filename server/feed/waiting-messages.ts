// Messages that wait until the next time tells what theirs is, in the order of arrival.

import { BadLineError } from './bad-line.ts'

/** So many may wait. */
export const HELD_MESSAGES_MAX = 10_000

export interface WaitingMessage<T> {
  readonly item: T
  /** The exchange's time. */
  readonly ts: bigint | undefined
  /** As the recorder wrote it. */
  readonly recvTs: bigint | undefined
}

export class WaitingMessages<T> {
  #messages: WaitingMessage<T>[] = []

  get count(): number {
    return this.#messages.length
  }

  /** Whether none of them has a time. */
  get areTimeless(): boolean {
    return this.#messages.every(isTimeless)
  }

  get first(): WaitingMessage<T> | undefined {
    return this.#messages[0]
  }

  /** Throws BadLineError when too many wait. */
  add(message: WaitingMessage<T>): void {
    if (this.#messages.length === HELD_MESSAGES_MAX) {
      throw new BadLineError(`no time in this message nor in the ${HELD_MESSAGES_MAX} before it`)
    }
    this.#messages.push(message)
  }

  at(place: number): WaitingMessage<T> {
    return this.#messages[place]!
  }

  after(place: number): readonly WaitingMessage<T>[] {
    return this.#messages.slice(place + 1)
  }

  /** The place of the first with the exchange's time; -1 where none has it. */
  get placeOfTold(): number {
    return this.#messages.findIndex(({ ts }) => ts !== undefined)
  }

  /** The latest receipt before the message at `place`, as the recorder wrote it. */
  receivedBefore(place: number): bigint | undefined {
    return this.#messages.slice(0, place).findLast(({ recvTs }) => recvTs !== undefined)?.recvTs
  }

  shift(): void {
    this.#messages.shift()
  }

  /** Removes the first `count` and returns them. */
  take(count = this.#messages.length): readonly WaitingMessage<T>[] {
    return this.#messages.splice(0, count)
  }
}

export function isTimeless({ ts, recvTs }: WaitingMessage<unknown>): boolean {
  return ts === undefined && recvTs === undefined
}
