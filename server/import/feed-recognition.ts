// Recognizes the exchange of a recording by its first frames. Without this check, a file of another exchange might have no message
// that the decoder refuses, and the import would silently import nothing.

import { exchanges } from '../exchanges/registry.ts'
import type { Frame } from '../feed/frame.ts'
import type { LobSource } from '../../shared/lob-sources.ts'

/** Frames that are enough to recognize an exchange. */
export const FRAMES_TO_RECOGNISE = 100

/**
 * The exchange of `frames`, the first ones of a recording. `unknown` if none is typical of an exchange, or if they are typical of
 * several. Pure; reads at most FRAMES_TO_RECOGNISE of them.
 */
export function recogniseFeed(frames: Iterable<Frame>): LobSource | 'unknown' {
  let found: LobSource | undefined
  let seen = 0
  for (const frame of frames) {
    if (seen++ >= FRAMES_TO_RECOGNISE) break
    const source = sourceOf(frame)
    if (source === undefined) continue
    if (found !== undefined && source !== found) return 'unknown'
    found = source
  }
  return found ?? 'unknown'
}

function sourceOf(frame: Frame): LobSource | undefined {
  return exchanges().find(({ exchange }) => exchange.isTypical(frame))?.source
}
