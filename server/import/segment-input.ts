// Parses the lines of an import's input: recorded lines in any accepted shape, and lines of raw segments. So the raw folder of one
// lake can be imported into another.

import type { Exchange } from '../exchanges/exchange.ts'
import { BadLineError } from '../feed/bad-line.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import { SegmentLineError, parseSegmentLine } from '../raw/segment-lines.ts'
import type { LinePlace, SegmentLine } from '../raw/segment-lines.ts'
import { parseRecordedLine, readWrapped } from './recorded-message.ts'

/** The beginning of a line that only a segment can have. Frames without a connection are read like those of any recording. */
const SEGMENT_LINE =
  /^\s*\{\s*(?:"recv_ts"\s*:\s*"\d{1,19}"\s*,\s*)?"(?:segment"\s*:\s*\d|skipped"\s*:\s*1\s*\}|connection"\s*:\s*"[^"\\]*"\s*,\s*"n"\s*:\s*\d|rest"\s*:\s*"|event"\s*:\s*"(?:series|open|close|alive|lost)")/

/** A frame that was read from its text, without parsing the JSON. */
export interface MessageLine extends LinePlace {
  readonly kind: 'message'
  readonly message: FeedMessage
  readonly isList: false
  /** The JSON text of the frame. */
  readonly text: string
}

/** How lines are parsed. */
export interface LineParsing {
  readonly ownTimeKeys: ReadonlySet<string>
  readonly readText: Exchange['readText']
}

/** Parses a line that is not empty. Throws BadLineError. */
export function parseInputLine(
  text: string,
  { ownTimeKeys, readText }: LineParsing,
): SegmentLine | MessageLine {
  const message = messageOfText(text, readText)
  if (message !== undefined) return message
  if (SEGMENT_LINE.test(text)) return parseLineOfSegment(text.trim())
  return parseRecordedLine(text, ownTimeKeys)
}

/** Undefined for a line that must be parsed, also for a wrong one: the parser says what is wrong, and which frames it has. */
function messageOfText(line: string, readText: Exchange['readText']): MessageLine | undefined {
  if (readText === undefined) return undefined
  try {
    const wrapped = readWrapped(line, readText)
    if (wrapped === undefined) return undefined
    const { value: message, json, time } = wrapped
    return {
      kind: 'message',
      recvTs: time?.ts,
      connection: undefined,
      n: undefined,
      message,
      isList: false,
      text: json,
    }
  } catch (error) {
    if (error instanceof BadLineError) return undefined
    throw error
  }
}

function parseLineOfSegment(text: string): SegmentLine {
  try {
    return parseSegmentLine(text)
  } catch (error) {
    if (!(error instanceof SegmentLineError)) throw error
    throw new BadLineError(`no line of a segment: ${error.message}`)
  }
}
