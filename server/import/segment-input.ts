// Parses the lines of an import's input: recorded lines in any accepted shape, and lines of raw segments. So the raw folder of one
// lake can be imported into another.

import { BadLineError } from '../feed/bad-line.ts'
import { SegmentLineError, parseSegmentLine } from '../raw/segment-lines.ts'
import type { SegmentLine } from '../raw/segment-lines.ts'
import { parseRecordedLine } from './recorded-message.ts'

/** The beginning of a line that only a segment can have. Frames without a connection are read like those of any recording. */
const SEGMENT_LINE =
  /^\s*\{\s*(?:"recv_ts"\s*:\s*"\d{1,19}"\s*,\s*)?"(?:segment"\s*:\s*\d|skipped"\s*:\s*1\s*\}|connection"\s*:\s*"[^"\\]*"\s*,\s*"n"\s*:\s*\d|rest"\s*:\s*"|event"\s*:\s*"(?:series|open|close|alive|lost)")/

/** Parses a line that is not empty. Throws BadLineError. */
export function parseInputLine(text: string, ownTimeKeys: ReadonlySet<string>): SegmentLine {
  if (SEGMENT_LINE.test(text)) return parseLineOfSegment(text.trim())
  const { recvTs, frames, isList, isHeartbeat, text: json } = parseRecordedLine(text, ownTimeKeys)
  return isHeartbeat
    ? { kind: 'text', recvTs, connection: undefined, n: undefined, text: json }
    : { kind: 'frames', recvTs, connection: undefined, n: undefined, frames, isList, text: json }
}

function parseLineOfSegment(text: string): SegmentLine {
  try {
    return parseSegmentLine(text)
  } catch (error) {
    if (!(error instanceof SegmentLineError)) throw error
    throw new BadLineError(`no line of a segment: ${error.message}`)
  }
}
