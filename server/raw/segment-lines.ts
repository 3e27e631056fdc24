// The lines of a raw segment: one JSON object a line, readable by `zcat | jq`, by DuckDB's `read_ndjson` and by `bookcast
// import`. The first line is the header.
//
//   {"segment":1,"source":"…","reading":{"sequence":"strict","use_yes_price":false}}    header of an imported segment
//   {"segment":1,"source":"…","recorder":"host1"}                                       header of a recorder's segment
//   {"recv_ts":"1783015200000000000","frame":{…}}        one frame; `recv_ts` (ns) is text, because JSON numbers lose digits
//   {"recv_ts":"1783015200000000000","frames":[{…},…]}   frames that came as a list
//   {"recv_ts":"1783015200000000000","text":"PONG"}      a message that is not JSON
//   {"skipped":1}                                        a line that could not be read
//   {"recv_ts":…,"connection":"host1/1783015200000/0/1783015200001","n":17,"frame":{…}}    lines of a recorder number each connection
//   {"recv_ts":…,"connection":…,"n":0,"event":"open"}    what happened to the connection: open, close, alive, lost
//   {"recv_ts":…,"event":"series","series":{"<market id>":"<series>"}}    the series of markets, which frames do not state
//   {"recv_ts":"…","rest":"/markets/trades?ticker=…","frame":{…}}    a row of a trade that REST gave; only server/trades/ reads it
//   {"recv_ts":…,"connection":…,"n":3,"row":["<market id>",<event>,<side>,<price>,<qty>,"<seq>","<received, ns>"]}
//       a row of an order-book file (lob.v1) that has no raw segments (server/fold/kept-rows.ts); `recv_ts` is its `ts`

import { isRecorderName } from '../../shared/lake-layout.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { SEQUENCE_TRUSTS } from '../feed/feed-reading.ts'
import type { SequenceTrust } from '../feed/feed-reading.ts'
import { isFrame } from '../feed/frame.ts'
import type { Frame } from '../feed/frame.ts'

/** The version of the lines' format. */
export const SEGMENT_FORMAT = 1

/** The settings with which the frames of an imported segment are read. */
export interface SegmentReading {
  /** Files every market under this series. */
  readonly series?: string | undefined
  readonly sequence: SequenceTrust
  /** Whether `no` prices are given on the yes leg. A recorded command overrides it. */
  readonly useYesPrice: boolean
}

/** The first line of a segment. It has either `reading` (imported) or `recorder` (recorded). */
export interface SegmentHeader {
  readonly source: LobSource
  readonly reading?: SegmentReading | undefined
  readonly recorder?: string | undefined
  /** Of an imported segment: its first line repeats the last one of the piece before it. */
  readonly hasOverlap?: boolean | undefined
}

/**
 * Events of a recorder's connection. `open`: it begins. `close`: it ended. `alive`: it was still open at `recvTs`. `lost`: the
 * messages since the connection's line before are damaged.
 */
export type ConnectionEvent = 'open' | 'close' | 'alive' | 'lost'

/** The place of a recorder's line: `n` numbers the lines of a connection from 0. */
export interface ConnectionPlace {
  readonly connection: string
  readonly n: number
}

export interface LinePlace {
  /** When the recorder received it, ns; `undefined` if the recording does not state it. */
  readonly recvTs: bigint | undefined
  /** Both are undefined in an imported segment. */
  readonly connection: string | undefined
  readonly n: number | undefined
}

export interface FramesLine extends LinePlace {
  readonly kind: 'frames'
  readonly frames: readonly Frame[]
  /** The frames came as a list, of any length. */
  readonly isList: boolean
  /** The JSON text of the frame, or of the list. It may be a slice of a longer string: copy it to keep it for long. */
  readonly text: string
}

export interface SeriesLine extends LinePlace {
  readonly kind: 'series'
  readonly recvTs: bigint
  /** Series by market id. */
  readonly series: ReadonlyMap<string, string>
}

/** A row of an order-book file, in the units of lob.v1. */
export interface KeptRow {
  readonly marketId: string
  readonly event: number
  readonly side: number
  readonly price: number
  readonly qty: number
  readonly seq: bigint
  readonly recvTs: bigint
}

/** One line of a segment. */
export type SegmentLine =
  | FramesLine
  | SeriesLine
  | (LinePlace &
      (
        | { readonly kind: 'header'; readonly header: SegmentHeader }
        /** A message that is not JSON, such as `PONG`. */
        | { readonly kind: 'text'; readonly text: string }
        | { readonly kind: 'event'; readonly recvTs: bigint; readonly event: ConnectionEvent }
        | { readonly kind: 'row'; readonly row: KeptRow }
        /** A row of the response to a REST request, which is given by its path and query. */
        | { readonly kind: 'rest'; readonly recvTs: bigint; readonly request: string; readonly row: Frame }
        /** A line that could not be read. */
        | { readonly kind: 'skipped' }
      ))

/** A line that is not a segment's. The message states the reason, without the file's name. */
export class SegmentLineError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SegmentLineError'
  }
}

/** The text of a header, without a newline. */
export function headerText({ source, reading, recorder, hasOverlap }: SegmentHeader): string {
  if (reading === undefined) return JSON.stringify({ segment: SEGMENT_FORMAT, source, recorder })
  const { series, sequence, useYesPrice } = reading
  return JSON.stringify({
    segment: SEGMENT_FORMAT,
    source,
    ...(hasOverlap === true ? { overlap: true } : {}),
    reading: { ...(series === undefined ? {} : { series }), sequence, use_yes_price: useYesPrice },
  })
}

/** The text for a line that could not be read. */
export const SKIPPED_TEXT = '{"skipped":1}'

/** The text of a line with one frame, or with a list. `json` is its JSON text, which must not contain a newline. */
export function framesText(
  recvTs: bigint | undefined,
  json: string,
  isList: boolean,
  place?: ConnectionPlace,
): string {
  return `${headOf(recvTs, place)}"${isList ? 'frames' : 'frame'}":${json}}`
}

/** The text of a line with a message that is not JSON. */
export function messageText(recvTs: bigint | undefined, text: string, place?: ConnectionPlace): string {
  return `${headOf(recvTs, place)}"text":${JSON.stringify(text)}}`
}

/** The text of a line with an event of a connection. */
export function eventText(recvTs: bigint, event: ConnectionEvent, place?: ConnectionPlace): string {
  return `${headOf(recvTs, place)}"event":"${event}"}`
}

/** The text of a line that states the series of markets. */
export function seriesText(recvTs: bigint, series: ReadonlyMap<string, string>): string {
  return `${headOf(recvTs, undefined)}"event":"series","series":${JSON.stringify(Object.fromEntries(series))}}`
}

/** The text of a line with a row that happened at `ts`. */
export function rowText(ts: bigint, row: KeptRow, place: ConnectionPlace): string {
  const { marketId, event, side, price, qty, seq, recvTs } = row
  return `${headOf(ts, place)}"row":${JSON.stringify([marketId, event, side, price, qty, String(seq), String(recvTs)])}}`
}

/** The text of a line with a row that the REST request gave at `recvTs`. */
export function restText(recvTs: bigint, request: string, row: Frame): string {
  return `${headOf(recvTs, undefined)}"rest":${JSON.stringify(request)},"frame":${JSON.stringify(row)}}`
}

function headOf(recvTs: bigint | undefined, place: ConnectionPlace | undefined): string {
  const time = recvTs === undefined ? '{' : `{"recv_ts":"${recvTs}",`
  return place === undefined
    ? time
    : `${time}"connection":${JSON.stringify(place.connection)},"n":${place.n},`
}

// A line exactly as framesText writes it: only its frame is cut out and parsed.
const HEAD = /^\{(?:"recv_ts":"(\d{1,19})",)?(?:"connection":"([^"\\]*)","n":(\d{1,15}),)?"(frame|frames)":/
const FRAMES: readonly Frame[] = []

/** @throws {SegmentLineError} */
export function parseSegmentLine(text: string): SegmentLine {
  const head = HEAD.exec(text)
  if (head !== null && text.charCodeAt(text.length - 1) === 125 /* } */) {
    const [start, recvTs, connection, n, key] = head
    const json = text.slice(start.length, -1)
    const value = valueOf(json)
    const isList = key === 'frames'
    const frames = isList ? framesOf(value) : isFrame(value) ? [value] : FRAMES
    if (!isList && frames.length === 0) throw new SegmentLineError('its frame is not an object')
    return {
      kind: 'frames',
      recvTs: recvTs === undefined ? undefined : BigInt(recvTs),
      connection,
      n: n === undefined ? undefined : Number(n),
      frames,
      isList,
      text: json,
    }
  }
  return lineOf(valueOf(text))
}

function valueOf(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    throw new SegmentLineError('a line is not valid JSON')
  }
}

function framesOf(value: unknown): readonly Frame[] {
  if (!Array.isArray(value) || !value.every(isFrame))
    throw new SegmentLineError('frames is not a list of frames')
  return value
}

function lineOf(value: unknown): SegmentLine {
  if (!isFrame(value)) throw new SegmentLineError('a line is not a JSON object')
  if (value['segment'] !== undefined) return headerLine(value)
  const place = placeOf(value)
  const { frame, frames, text, event, skipped, rest } = value
  const { recvTs } = place
  if (recvTs !== undefined && typeof rest === 'string' && isFrame(frame))
    return { ...place, kind: 'rest', recvTs, request: rest, row: frame }
  if (isFrame(frame))
    return { ...place, kind: 'frames', frames: [frame], isList: false, text: JSON.stringify(frame) }
  if (frames !== undefined) {
    return { ...place, kind: 'frames', frames: framesOf(frames), isList: true, text: JSON.stringify(frames) }
  }
  if (typeof text === 'string') return { ...place, kind: 'text', text }
  if (recvTs !== undefined && event === 'series' && isFrame(value['series'])) {
    return { ...place, kind: 'series', recvTs, series: seriesOf(value['series']) }
  }
  if (
    recvTs !== undefined &&
    (event === 'open' || event === 'close' || event === 'alive' || event === 'lost')
  ) {
    return { ...place, kind: 'event', recvTs, event }
  }
  if (Array.isArray(value['row'])) return { ...place, kind: 'row', row: rowOf(value['row']) }
  if (skipped === 1) return { ...place, kind: 'skipped' }
  throw new SegmentLineError('a line has neither frame, frames, text, event nor skipped')
}

function placeOf({ recv_ts: recvTs, connection, n }: Frame): LinePlace {
  if (recvTs !== undefined && (typeof recvTs !== 'string' || !/^\d{1,19}$/.test(recvTs))) {
    throw new SegmentLineError('recv_ts is not a time in nanoseconds')
  }
  if (connection !== undefined && (typeof connection !== 'string' || !Number.isSafeInteger(n))) {
    throw new SegmentLineError('connection is not a name, or n is not a whole number')
  }
  return {
    recvTs: recvTs === undefined ? undefined : BigInt(recvTs),
    connection,
    n: connection === undefined ? undefined : (n as number),
  }
}

function headerLine({ segment, source: name, reading, recorder, overlap }: Frame): SegmentLine {
  if (segment !== SEGMENT_FORMAT) {
    throw new SegmentLineError(`its format is ${JSON.stringify(segment)}, which this version does not read`)
  }
  const source = lobSources().find((known) => known === name)
  if (source === undefined) throw new SegmentLineError(`it is of an unknown source, ${JSON.stringify(name)}`)
  const header =
    typeof recorder === 'string' && isRecorderName(recorder)
      ? { source, recorder }
      : isFrame(reading)
        ? { source, reading: readingOf(reading), ...(overlap === true ? { hasOverlap: true } : {}) }
        : undefined
  if (header === undefined) throw new SegmentLineError('its header names neither a reading nor a recorder')
  return { kind: 'header', recvTs: undefined, connection: undefined, n: undefined, header }
}

function readingOf({ series, sequence, use_yes_price: useYesPrice }: Frame): SegmentReading {
  const trust = SEQUENCE_TRUSTS.find((known) => known === sequence)
  if (
    trust === undefined ||
    typeof useYesPrice !== 'boolean' ||
    !(series === undefined || typeof series === 'string')
  ) {
    throw new SegmentLineError('the reading settings of its header are not valid')
  }
  return { series, sequence: trust, useYesPrice }
}

function rowOf(values: readonly unknown[]): KeptRow {
  const [marketId, event, side, price, qty, seq, recvTs] = values
  const areNumbers = [event, side, price, qty].every((one) => Number.isSafeInteger(one))
  const areTexts = [seq, recvTs].every((one) => typeof one === 'string' && /^\d{1,19}$/.test(one))
  if (typeof marketId !== 'string' || !areNumbers || !areTexts)
    throw new SegmentLineError('a row is not one of lob.v1')
  const numbers = { event: event as number, side: side as number, price: price as number, qty: qty as number }
  return { marketId, ...numbers, seq: BigInt(seq as string), recvTs: BigInt(recvTs as string) }
}

function seriesOf(value: Frame): ReadonlyMap<string, string> {
  const series = new Map<string, string>()
  for (const [id, name] of Object.entries(value)) {
    if (typeof name !== 'string') throw new SegmentLineError('a series is not a text')
    series.set(id, name)
  }
  return series
}
