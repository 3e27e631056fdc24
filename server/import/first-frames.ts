// Recognizes the exchange of an input by its first frames, and refuses input of another exchange.

import type { LobSource } from '../../shared/lob-sources.ts'
import type { Frame } from '../feed/frame.ts'
import { FRAMES_TO_RECOGNISE, recogniseFeed } from './feed-recognition.ts'

export class FirstFrames {
  readonly #name: string
  readonly #source: LobSource
  #frames: Frame[] = []
  /** No more frames are needed. */
  isSettled = false

  /** `name` is the input's, for the message. */
  constructor(name: string, source: LobSource) {
    this.#name = name
    this.#source = source
  }

  /** Takes further frames. Throws if they belong to another exchange. */
  add(frames: readonly Frame[]): void {
    this.#frames.push(...frames.slice(0, FRAMES_TO_RECOGNISE))
    if (this.#frames.length >= FRAMES_TO_RECOGNISE) this.refuseOthers()
  }

  /** Throws if the frames so far belong to another exchange. */
  refuseOthers(): void {
    if (this.isSettled) return
    const source = recogniseFeed(this.#frames)
    if (source !== 'unknown' && source !== this.#source) {
      throw new Error(
        `${this.#name}: these are messages of ${source}, not of ${this.#source}; import them with --source ${source}`,
      )
    }
    if (this.#frames.length >= FRAMES_TO_RECOGNISE) this.settle()
  }

  /** A frame that only this exchange sends was found, or no more frames are needed. */
  settle(): void {
    this.isSettled = true
    this.#frames = []
  }
}
