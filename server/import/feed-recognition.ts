// Which exchange a recording comes from, by its first frames: one exchange's file given as another's may have no message
// that a decoder refuses, so it would be imported as nothing at all.

import { exchanges } from '../exchanges/registry.ts'
import type { Frame } from '../feed/frame.ts'
import type { LobSource } from '../../shared/lob-sources.ts'

/** Frames that are enough to tell; more of them tell no more. */
export const FRAMES_TO_RECOGNISE = 100

/**
 * The exchange that `frames`, the first of a recording in any number, look like; `unknown` where none of them is typical of
 * one exchange or some are of each. Pure; reads at most FRAMES_TO_RECOGNISE of them.
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
