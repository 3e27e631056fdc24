// Recognizes the exchange of an input by its first frames, and refuses input of another exchange. Without this check, a file of another
// exchange might have no message that the decoder refuses, and the import would silently import nothing.

import type { LobSource } from '../../shared/lob-sources.ts'
import { exchanges } from '../exchanges/registry.ts'
import type { Frame } from '../feed/frame.ts'

/** Frames that are enough to recognize an exchange. */
const FRAMES_TO_RECOGNISE = 100

/** The exchange of which a frame is typical; undefined if it is of none. */
export function sourceOfFrame(frame: Frame): LobSource | undefined {
  return exchanges().find(({ exchange }) => exchange.isTypical(frame))?.source
}

export class FirstFrames {
  readonly #name: string
  readonly #source: LobSource
  /** The exchanges of which the frames so far are typical. */
  readonly #found = new Set<LobSource>()
  #count = 0
  /** No more frames are needed. */
  isSettled = false

  /** `name` is the input's, for the message. */
  constructor(name: string, source: LobSource) {
    this.#name = name
    this.#source = source
  }

  /** Takes further frames. Throws if they belong to another exchange. */
  add(frames: readonly Frame[]): void {
    for (const frame of frames.slice(0, FRAMES_TO_RECOGNISE - this.#count)) {
      this.#count++
      const source = sourceOfFrame(frame)
      if (source !== undefined) this.#found.add(source)
    }
    if (this.#count < FRAMES_TO_RECOGNISE) return
    this.refuseOthers()
    this.isSettled = true
  }

  /** Throws if the frames so far belong to another exchange. Frames of several exchanges belong to none. */
  refuseOthers(): void {
    const [source] = this.#found
    if (this.isSettled || this.#found.size !== 1 || source === this.#source) return
    throw new Error(
      `${this.#name}: these are messages of ${source}, not of ${this.#source}; import them with --source ${source}`,
    )
  }

  /** A frame that only this exchange sends was found. */
  settle(): void {
    this.isSettled = true
  }
}
