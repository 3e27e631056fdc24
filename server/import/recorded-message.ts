// One line of a recording → the frames in it and when they were received. Accepted are, for every exchange:
//   {…frame…}                                        a bare frame
//   [{…frame…}, …]                                   several frames, as some exchanges send them
//   {"recv_ts": 1782316195033836123, "msg": {…frame…}}   the frame (or a list) with its receive time around it
//   {…frame…, "_received_at": "2026-06-24T15:49:55Z"}    the receive time put into the frame itself
//   1782316195.033 {…frame…}   or tab or comma between   the receive time before the frame
//   [1782316195033, {…frame…}]   or a list of frames     the same as a JSON array
// A wrapped frame may be JSON or a string that holds JSON. receive-time.ts decides by their names which keys are times. Every time
// around a frame is a receive time. Within a frame, `ts` and `timestamp` are the exchange's, and only a key with the name of a
// receive time is one. The text of the frame is kept as it is in the line, if it is there in one piece. segment-input.ts reads the
// lines of raw segments.

import { BadLineError } from '../feed/bad-line.ts'
import { exchangeOf, exchanges } from '../exchanges/registry.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { parsedJson } from '../../shared/parsed-json.ts'
import { isFrame } from '../feed/frame.ts'
import type { Frame } from '../feed/frame.ts'
import type { SegmentLine } from '../raw/segment-lines.ts'
import { agreedTime, kindOfKey, readTime } from './receive-time.ts'
import type { FoundTime } from './receive-time.ts'

// `msg` comes last: in a bare frame it may be the content, not the frame.
const PAYLOAD_KEYS = [
  'frame',
  'frames',
  'data',
  'message',
  'raw',
  'payload',
  'body',
  'content',
  'json',
  'text',
  'msg',
] as const
// What a bare frame may have as the exchange's own time outside its content; an exchange may have others too.
const OWN_TIME_KEYS = ['ts', 'ts_ms']

const HEARTBEATS = new Set(['PING', 'PONG'])
const TIMED_HEARTBEAT = /^(\d[^[{]*?)[\s,]+(PING|PONG)$/
const BEFORE_FRAME = 'what stands before the frame'

/** A message of a recording: its frames, or the word of a heartbeat. */
type RecordedLine = Extract<SegmentLine, { readonly kind: 'frames' | 'text' }>

/** A message with every time that was found for it, and the line it came from. */
interface Reading {
  readonly line: string
  readonly times: FoundTime[]
  readonly ownTimeKeys: ReadonlySet<string>
  isList: boolean
  /** The text of the frame or of the list, if the line has it. Of a heartbeat, which is not JSON: its word. */
  text: string | undefined
}

/** The keys under which frames of the exchange have their own time, for parseRecordedLine. */
export function ownTimeKeysOf(source: LobSource): ReadonlySet<string> {
  return new Set([...OWN_TIME_KEYS, ...(exchangeOf(source).timeKeys ?? [])])
}

const USUAL_TIME_KEYS: ReadonlySet<string> = new Set(OWN_TIME_KEYS)

/** The message of a line that is not empty. Throws BadLineError. */
export function parseRecordedLine(line: string, ownTimeKeys = USUAL_TIME_KEYS): RecordedLine {
  const text = line.trim()
  const reading: Reading = { line: text, times: [], ownTimeKeys, isList: false, text: undefined }
  const frames = wrappedFrames(reading) ?? framesOfLine(reading)
  const { times, isList } = reading
  const recvTs = times.length === 0 ? undefined : agreedTime(times)
  const place = { recvTs, connection: undefined, n: undefined }
  if (frames === HEARTBEAT) return { kind: 'text', ...place, text: reading.text! }
  return { kind: 'frames', ...place, frames, isList, text: textOf(reading, frames) }
}

function textOf({ text, isList }: Reading, frames: readonly Frame[]): string {
  // A string that holds JSON may hold it on several lines.
  if (text !== undefined && !text.includes('\n') && !text.includes('\r')) return text
  return JSON.stringify(isList ? frames : frames[0])
}

// The usual wrapper, and that of raw segments: a time or none, then the frame, and nothing else. The frame is parsed alone; if
// that succeeds, the line is an object of exactly these members.
const WRAPPER =
  /^\{\s*(?:"([^"\\]+)"\s*:\s*(?:([1-9]\d{0,18})|"([^"\\]*)")\s*,\s*)?"([^"\\]+)"\s*:\s*(?=[{[])/
const PAYLOADS: ReadonlySet<string> = new Set(PAYLOAD_KEYS)

/** The frame, or the list, of a line that is a wrapper of the usual form. */
export interface WrappedFrame<T> {
  readonly value: T
  /** Its JSON text. */
  readonly json: string
  /** The receive time, if the wrapper has one. */
  readonly time: FoundTime | undefined
}

/**
 * Reads the frame with `read`, whose result is undefined for a text that it cannot read. Returns undefined for that, and for a line
 * that is no wrapper of the usual form. Throws BadLineError for a wrong time.
 */
export function readWrapped<T>(
  line: string,
  read: (json: string) => T | undefined,
): WrappedFrame<T> | undefined {
  if (line.charCodeAt(line.length - 1) !== 125 /* } */) return undefined
  const wrapper = WRAPPER.exec(line)
  if (wrapper === null) return undefined
  const [start, key, digits, text, payloadKey = ''] = wrapper
  const kind = key === undefined ? undefined : kindOfKey(key)
  if (kind === 'other' || !PAYLOADS.has(payloadKey)) return undefined
  const json = line.slice(start.length, -1).trimEnd()
  const value = read(json)
  if (value === undefined) return undefined
  const isReceiveTime = kind === 'receive'
  return {
    value,
    json,
    time: key === undefined ? undefined : { key, ts: readTime(key, digits ?? text), isReceiveTime },
  }
}

function wrappedFrames(reading: Reading): readonly Frame[] | undefined {
  const wrapped = readWrapped(reading.line, parsedPayload)
  if (wrapped === undefined) return undefined
  if (wrapped.time !== undefined) reading.times.push(wrapped.time)
  reading.text = wrapped.json
  return framesOf(wrapped.value, reading)
}

function parsedPayload(json: string): unknown {
  const payload = parsedJson(json)
  return isPayload(payload) ? payload : undefined
}

function framesOfLine(reading: Reading): readonly Frame[] {
  const { line } = reading
  const start = line.charCodeAt(0)
  if (start === 123 /* { */ || start === 91 /* [ */) return framesOfValue(parseJson(line), line, reading)
  if (HEARTBEATS.has(line)) return heartbeat(line, reading)
  const [, stated, word] = TIMED_HEARTBEAT.exec(line) ?? []
  if (stated !== undefined && word !== undefined) {
    reading.times.push({ key: BEFORE_FRAME, ts: readTime(BEFORE_FRAME, stated), isReceiveTime: false })
    return heartbeat(word, reading)
  }
  const at = line.search(/[{[]/)
  const prefix = at === -1 ? '' : line.slice(0, at).replace(/[\s,]+$/, '')
  if (!/^\d/.test(prefix)) throw new BadLineError('neither JSON nor a time followed by JSON')
  const json = line.slice(at)
  const value = parseJson(json)
  reading.times.push({ key: BEFORE_FRAME, ts: readTime(BEFORE_FRAME, prefix), isReceiveTime: false })
  return framesOfValue(value, json, reading)
}

/** `json` is the text of `value`. */
function framesOfValue(value: unknown, json: string, reading: Reading): readonly Frame[] {
  if (isFrame(value)) return framesOfObject(value, json, reading)
  if (!Array.isArray(value)) throw new BadLineError('neither a frame nor a list of frames')
  const items: readonly unknown[] = value
  if (items.length !== 2 || (typeof items[0] !== 'number' && typeof items[0] !== 'string')) {
    reading.text = json
    return framesOf(items, reading)
  }
  const key = 'the first element'
  const exact = /^\[\s*(\d+(?:\.\d+)?)/.exec(reading.line)?.[1]
  reading.times.push({ key, ts: readTime(key, exactNumber(items[0], exact)), isReceiveTime: false })
  return framesOf(items[1], reading)
}

function framesOfObject(value: Frame, json: string, reading: Reading): readonly Frame[] {
  for (const key of PAYLOAD_KEYS) {
    if (value[key] === undefined) continue
    const payload = jsonWithin(value[key])
    if (!isPayload(payload) || (key === 'msg' && looksLikeFrame(value) && !isWholeFrame(payload))) continue
    collectTimes(value, () => true, reading)
    if (typeof value[key] === 'string') reading.text = value[key].trim()
    return framesOf(payload, reading)
  }
  if (!looksLikeFrame(value))
    throw new BadLineError('an object that is neither a frame nor a frame in a known wrapper')
  // Where the content is apart, the recorder may have put its time beside it.
  const isApart = typeof value['type'] === 'string' && value['market'] === undefined
  const { ownTimeKeys } = reading
  collectTimes(value, (key, isReceiveTime) => isReceiveTime || (isApart && !ownTimeKeys.has(key)), reading)
  reading.text = json
  return [value]
}

function framesOf(payload: unknown, reading: Reading): readonly Frame[] {
  const value = jsonWithin(payload)
  if (typeof value === 'string' && HEARTBEATS.has(value)) return heartbeat(value, reading)
  if (typeof payload === 'string') reading.text = payload.trim()
  if (Array.isArray(value)) reading.isList = true
  const items: readonly unknown[] = Array.isArray(value) ? value : [value]
  return items.map((item) => {
    if (!isFrame(item) || !looksLikeFrame(item)) throw new BadLineError('an element that is no frame')
    collectTimes(item, (_, isReceiveTime) => isReceiveTime, reading)
    return item
  })
}

const UNTYPED_FRAMES = exchanges().flatMap(({ exchange }) => exchange.isUntyped ?? [])

// A frame names its kind, is a command of the client's, or is one of those of an exchange that lack a kind.
function looksLikeFrame(value: Frame): boolean {
  return (
    typeof value['type'] === 'string' ||
    typeof value['event_type'] === 'string' ||
    typeof value['cmd'] === 'string' ||
    isUntypedFrame(value)
  )
}

function isUntypedFrame(value: Frame): boolean {
  for (const isUntyped of UNTYPED_FRAMES) if (isUntyped(value)) return true
  return false
}

// Whether a value can only be a whole frame, even if the object around it looks like one: a frame's content has neither.
function isWholeFrame(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  if (!isFrame(value)) return false
  const hasContent = typeof value['type'] === 'string' && isFrame(value['msg'])
  return hasContent || (value['market'] !== undefined && looksLikeFrame(value))
}

function isPayload(value: unknown): boolean {
  if (typeof value === 'string') return HEARTBEATS.has(value)
  if (Array.isArray(value)) return value.every((item) => isFrame(item) && looksLikeFrame(item))
  return isFrame(value) && looksLikeFrame(value)
}

function jsonWithin(value: unknown): unknown {
  return typeof value === 'string' && /^\s*[{[]/.test(value) ? parseJson(value) : value
}

function collectTimes(
  value: Frame,
  isWanted: (key: string, isReceiveTime: boolean) => boolean,
  { line, times }: Reading,
): void {
  for (const key in value) {
    const kind = kindOfKey(key)
    const isReceiveTime = kind === 'receive'
    if (kind === 'other' || !isWanted(key, isReceiveTime)) continue
    const found = value[key]
    if (found === undefined || found === null) continue
    times.push({ key, ts: readTime(key, exactOf(key, found, line)), isReceiveTime })
  }
}

const NUMBER_OF_KEY = /\s*:\s*(\d+(?:\.\d+)?)(?![\d.eE])/y

// Nanoseconds do not fit a JSON number as JavaScript reads it: their digits are taken from the line.
function exactOf(key: string, found: unknown, line: string): unknown {
  if (typeof found !== 'number' || Number.isSafeInteger(found)) return found
  const quoted = JSON.stringify(key)
  for (let at = line.indexOf(quoted); at !== -1; at = line.indexOf(quoted, at + 1)) {
    NUMBER_OF_KEY.lastIndex = at + quoted.length
    const digits = NUMBER_OF_KEY.exec(line)?.[1]
    if (digits !== undefined && Number(digits) === found) return digits
  }
  return found
}

function exactNumber(value: unknown, digits: string | undefined): unknown {
  return typeof value === 'number' && digits !== undefined && Number(digits) === value ? digits : value
}

/** The frames of a heartbeat. */
const HEARTBEAT: readonly Frame[] = []

function heartbeat(word: string, reading: Reading): readonly Frame[] {
  reading.text = word
  return HEARTBEAT
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new BadLineError(`not valid JSON: ${error instanceof Error ? error.message : 'unknown'}`)
  }
}
