// Lines of an input → lines of a segment. Private frames, and those of other exchanges, are left out and counted. A line that cannot
// be read is a bad line.

import { lobSourceNames } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import type { Exchange } from '../exchanges/exchange.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import { BadLineError, shown } from '../feed/bad-line.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import type { SequenceTrust } from '../feed/feed-reading.ts'
import type { Frame } from '../feed/frame.ts'
import type { LineOrder } from '../feed/line-order.ts'
import { isMarketId } from '../feed/market-id.ts'
import { countType } from '../fold/fold-tally.ts'
import { lineKey } from '../fold/piece.ts'
import type { Line } from '../fold/piece.ts'
import { HEARTBEAT } from '../fold/raw-pieces.ts'
import {
  SKIPPED_TEXT,
  eventText,
  framesText,
  headerText,
  messageText,
  restText,
  rowText,
  seriesText,
} from '../raw/segment-lines.ts'
import type { ConnectionPlace, FramesLine, LinePlace, SegmentLine } from '../raw/segment-lines.ts'
import type { LineTimes } from './line-hours.ts'
import { sourceOfFrame } from './first-frames.ts'
import { ownTimeKeysOf } from './recorded-message.ts'
import { parseInputLine } from './segment-input.ts'
import type { LineParsing, MessageLine } from './segment-input.ts'

const TYPE_CHARACTERS_MAX = 40
/** Valid market ids to remember. */
const CHECKED_IDS_MAX = 100_000
const NS_PER_MS_NUMBER = 1_000_000

/** The counters of the lines read. */
export interface SegmentingTally {
  /** Frames that were kept. */
  messages: number
  badLines: number
  /** Frames that were left out as private, or lost a private part, by type. */
  readonly privateFrames: Map<string, number>
  /** Frames that were left out as those of other exchanges, by exchange. */
  readonly otherFrames: Map<LobSource, number>
}

export interface LineFilingOptions {
  readonly source: LobSource
  readonly series?: string | undefined
  readonly sequence?: SequenceTrust | undefined
}

/** A line as a segment takes it. */
export interface FiledLine extends LineTimes {
  readonly text: string
  readonly recvTs: bigint | undefined
  /** The recorder, if the line comes from a recorder's segment. */
  readonly recorder: string | undefined
  /** It holds a message or a connection event. A heartbeat without a time says nothing. */
  readonly hasContent: boolean
  /** As the fold reads it; `undefined` if the fold reads it from the segment. */
  readonly read: Line | undefined
}

/** Reads lines, and leaves out private frames. */
export class LineFiling {
  readonly #exchange: Exchange
  readonly #parsing: LineParsing
  readonly #tally: SegmentingTally
  readonly #hasNumbers: boolean
  readonly #seriesOf: (id: string) => string
  readonly #checkedIds = new Set<string>()

  constructor({ source, sequence, series }: LineFilingOptions, tally: SegmentingTally) {
    this.#exchange = exchangeOf(source)
    this.#parsing = { ownTimeKeys: ownTimeKeysOf(source), readText: this.#exchange.readText }
    this.#tally = tally
    this.#hasNumbers = this.#exchange.isNumbered && sequence !== 'ignore'
    this.#seriesOf = series === undefined ? lobSourceNames(source).seriesOf : () => series
  }

  /** Parses a line of an input. Throws BadLineError. */
  parse(text: string): SegmentLine | MessageLine {
    return parseInputLine(text, this.#parsing)
  }

  /** The line for a segment; `undefined` if all of it is private. Throws BadLineError. */
  file(line: SegmentLine | MessageLine, order: LineOrder): FiledLine | undefined {
    if (line.kind === 'message') return this.#fileMessages([line.message], line, order)
    if (line.kind === 'frames') return this.#fileFrames(line, order)
    const { recvTs } = line
    const place = placeOf(line)
    const isLone = line.kind === 'text' && place === undefined
    if (isLone) order.count(recvTs)
    return {
      text: textOf(line, place),
      recvTs,
      recorder: recorderOf(line),
      ms: line.kind === 'rest' ? msOf(this.#exchange.trades?.ofRow(line.row).ts) : NaN,
      recvMs: line.kind === 'rest' ? NaN : msOf(recvTs),
      bookMs: NaN,
      hasContent: line.kind !== 'skipped' && (!isLone || recvTs !== undefined),
      read: isLone ? lineOf(recvTs, line.text, false, [HEARTBEAT]) : undefined,
    }
  }

  #fileFrames(line: FramesLine, order: LineOrder): FiledLine | undefined {
    const { frames, isList } = line
    const kept = this.#publicParts(frames)
    if (kept.length === 0 && frames.length > 0) return undefined
    const messages = kept.map((frame) => this.#exchange.readFrame(frame))
    const publicLine = kept === frames ? line : { ...line, text: JSON.stringify(isList ? kept : kept[0]) }
    return this.#fileMessages(messages, publicLine, order)
  }

  #fileMessages(
    messages: readonly FeedMessage[],
    line: FramesLine | MessageLine,
    order: LineOrder,
  ): FiledLine {
    const { recvTs, isList, text } = line
    let [ms, bookMs] = [NaN, NaN]
    const { isNumbered } = this.#exchange
    for (const message of messages) {
      this.#checkIds(message)
      if (message.ts === undefined) continue
      const time = msOf(message.ts)
      if (message.body.kind === 'book' && !isNumbered) {
        if (!(time <= bookMs)) bookMs = time
      } else if (!(time <= ms)) ms = time
    }
    this.#tally.messages += messages.length
    const place = placeOf(line)
    // Lines of a recorder are numbered. A list of messages came at once.
    if (place === undefined) this.#count(messages[0], recvTs, order)
    return {
      text: framesText(recvTs, text, isList, place),
      recvTs,
      recorder: recorderOf(line),
      ms,
      recvMs: msOf(recvTs),
      bookMs,
      hasContent: true,
      read: place === undefined ? lineOf(recvTs, text, isList, messages) : undefined,
    }
  }

  #count(message: FeedMessage | undefined, recvTs: bigint | undefined, order: LineOrder): void {
    const time = recvTs ?? (message?.body.kind === 'book' ? undefined : message?.ts)
    if (this.#hasNumbers && message !== undefined) order.count(time, message.sid, message.seq)
    else order.count(time)
  }

  /** The public parts of the frames. Returns the same list if nothing in it is private. */
  #publicParts(frames: readonly Frame[]): readonly Frame[] {
    let parts: Frame[] | undefined
    for (let index = 0; index < frames.length; index++) {
      const frame = frames[index]!
      const part = this.#exchange.publicPart(frame)
      if (part !== frame) {
        this.#countLeftOut(frame)
        parts ??= frames.slice(0, index)
      }
      if (part !== undefined) parts?.push(part)
    }
    return parts ?? frames
  }

  #countLeftOut(frame: Frame): void {
    const { privateFrames, otherFrames } = this.#tally
    const source = sourceOfFrame(frame)
    if (source !== undefined && exchangeOf(source) !== this.#exchange) {
      otherFrames.set(source, (otherFrames.get(source) ?? 0) + 1)
      return
    }
    countType(privateFrames, typeOf(frame))
  }

  #checkIds({ body }: FeedMessage): void {
    if (body.kind === 'book') this.#checkId(body.marketId)
    else if (body.kind === 'changes') for (const { marketId } of body.changes) this.#checkId(marketId)
  }

  // Refuse an id that the lake cannot store.
  #checkId(id: string): void {
    if (this.#checkedIds.has(id)) return
    if (!isMarketId(id) || !isSeriesName(this.#seriesOf(id)))
      throw new BadLineError(`not a market id: ${shown(id)}`)
    if (this.#checkedIds.size < CHECKED_IDS_MAX) this.#checkedIds.add(id)
  }
}

function lineOf(
  recvTs: bigint | undefined,
  text: string,
  isList: boolean,
  messages: readonly FeedMessage[],
): Line {
  return { recvTs, n: undefined, key: lineKey(recvTs, text), isList, messages }
}

function typeOf(frame: Frame): string {
  const type = frame['type'] ?? frame['event_type'] ?? frame['cmd'] ?? frame['operation']
  return typeof type === 'string' ? type.slice(0, TYPE_CHARACTERS_MAX) : 'unknown'
}

function msOf(ts: bigint | undefined): number {
  return ts === undefined ? NaN : Number(ts) / NS_PER_MS_NUMBER
}

function placeOf({ connection, n }: LinePlace): ConnectionPlace | undefined {
  return connection === undefined || n === undefined ? undefined : { connection, n }
}

/** A connection is named after its recorder. */
function recorderOf({ connection }: LinePlace): string | undefined {
  return connection === undefined ? undefined : connection.split('/', 1)[0]
}

function textOf(line: Exclude<SegmentLine, FramesLine>, place: ConnectionPlace | undefined): string {
  if (line.kind === 'text') return messageText(line.recvTs, line.text, place)
  if (line.kind === 'event') return eventText(line.recvTs, line.event, place)
  if (line.kind === 'series') return seriesText(line.recvTs, line.series)
  if (line.kind === 'rest') return restText(line.recvTs, line.request, line.row)
  if (line.kind === 'row') return rowText(line.recvTs!, line.row, place!)
  return line.kind === 'header' ? headerText(line.header) : SKIPPED_TEXT
}

/** A line that could not be read. */
export const SKIPPED_LINE: FiledLine = {
  text: SKIPPED_TEXT,
  recvTs: undefined,
  recorder: undefined,
  ms: NaN,
  recvMs: NaN,
  bookMs: NaN,
  hasContent: false,
  read: { recvTs: undefined, n: undefined, key: 0, isList: false, messages: [], isSkipped: true },
}
