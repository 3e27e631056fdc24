// One line of a recording → the frames in it and when they were received. Accepted are, for both exchanges:
//   {…frame…}                                        a bare frame
//   [{…frame…}, …]                                   several frames (Polymarket sends them so)
//   {"recv_ts": 1782316195033836123, "msg": {…frame…}}   the frame with its receive time around it; see the key lists
//   {…frame…, "_received_at": "2026-06-24T15:49:55Z"}    the receive time put into the frame itself
//   1782316195.033 {…frame…}   or tab or comma between   the receive time before the frame
//   [1782316195033, {…frame…}]                       the same as a JSON array
// A wrapped frame may be JSON or a string that holds JSON. What a frame means is the decoders' affair.

import { BadLineError } from './bad-line.ts'
import { instantOf } from './instant.ts'

/** One message of the exchange as JSON gives it. */
export type Frame = Readonly<Record<string, unknown>>

export interface RecordedMessage {
  /** When the recorder received it, ns; `undefined` when the recording does not say. */
  readonly recvTs: bigint | undefined
  readonly frames: readonly Frame[]
}

const RECEIVE_KEYS = [
  'recv_ts',
  'received_at',
  '_received_at',
  'recv_time',
  'ts_recv',
  'local_timestamp',
] as const
// `timestamp` belongs to Polymarket's frames too, so it only counts beside a wrapped frame.
const WRAPPER_KEYS = [...RECEIVE_KEYS, 'timestamp'] as const
// `msg` comes last: in a bare Kalshi frame it is the content, not the frame.
const PAYLOAD_KEYS = ['frame', 'data', 'message', 'raw', 'msg'] as const

const HEARTBEATS = new Set(['PING', 'PONG'])

/** The message of a line that is not empty. Throws BadLineError. */
export function parseRecordedLine(line: string): RecordedMessage {
  const text = line.trim()
  const start = text.charCodeAt(0)
  if (start === 123 /* { */ || start === 91 /* [ */) return ofValue(parseJson(text), text)
  if (HEARTBEATS.has(text)) return { recvTs: undefined, frames: [heartbeat(text)] }
  const json = text.search(/[{[]/)
  const recvTs = json === -1 ? undefined : instantOf(text.slice(0, json).replace(/[\s,]+$/, ''))
  if (recvTs === undefined) throw new BadLineError('neither JSON nor a time followed by JSON')
  const message = ofValue(parseJson(text.slice(json)), text)
  return { recvTs: message.recvTs ?? recvTs, frames: message.frames }
}

function ofValue(value: unknown, text: string): RecordedMessage {
  if (isFrame(value)) return ofObject(value, text)
  if (!Array.isArray(value)) throw new BadLineError('neither a frame nor a list of frames')
  const items: readonly unknown[] = value
  if (items.length === 2 && !isFrame(items[0])) {
    const recvTs = instantOf(exactNumber(items[0], /^\[\s*(\d+)/.exec(text)?.[1]))
    if (recvTs !== undefined) return { recvTs, frames: framesOf(items[1]) }
  }
  return { recvTs: undefined, frames: framesOf(items) }
}

function ofObject(value: Frame, text: string): RecordedMessage {
  for (const key of PAYLOAD_KEYS) {
    if (value[key] === undefined || (key === 'msg' && looksLikeFrame(value))) continue
    const payload = jsonWithin(value[key])
    if (isPayload(payload)) {
      return { recvTs: receiveTime(value, WRAPPER_KEYS, text), frames: framesOf(payload) }
    }
  }
  if (!looksLikeFrame(value))
    throw new BadLineError('an object that is neither a frame nor a frame in a known wrapper')
  return { recvTs: receiveTime(value, RECEIVE_KEYS, text), frames: [value] }
}

function framesOf(payload: unknown): Frame[] {
  const value = jsonWithin(payload)
  if (typeof value === 'string' && HEARTBEATS.has(value)) return [heartbeat(value)]
  const items: readonly unknown[] = Array.isArray(value) ? value : [value]
  return items.map((item) => {
    if (!isFrame(item) || !looksLikeFrame(item)) throw new BadLineError('an element that is no frame')
    return item
  })
}

// A frame names its kind, is a command of the client's, or is one of Polymarket's first books, which lack a kind.
function looksLikeFrame(value: Frame): boolean {
  return (
    typeof value['type'] === 'string' ||
    typeof value['event_type'] === 'string' ||
    typeof value['cmd'] === 'string' ||
    (value['market'] !== undefined &&
      (value['asset_id'] !== undefined || value['price_changes'] !== undefined))
  )
}

function isPayload(value: unknown): boolean {
  if (typeof value === 'string') return HEARTBEATS.has(value)
  if (Array.isArray(value)) return value.every((item) => isFrame(item) && looksLikeFrame(item))
  return isFrame(value) && looksLikeFrame(value)
}

function jsonWithin(value: unknown): unknown {
  return typeof value === 'string' && /^\s*[{[]/.test(value) ? parseJson(value) : value
}

function receiveTime(value: Frame, keys: readonly string[], text: string): bigint | undefined {
  const key = keys.find((name) => value[name] !== undefined && value[name] !== null)
  if (key === undefined) return undefined
  const found = value[key]
  // Nanoseconds do not fit a JSON number as JavaScript reads it: their digits are taken from the line.
  const exact =
    typeof found === 'number' && !Number.isSafeInteger(found)
      ? [...text.matchAll(new RegExp(`"${key}"\\s*:\\s*(\\d+)`, 'g'))]
          .map((match) => match[1]!)
          .find((digits) => Number(digits) === found)
      : undefined
  const recvTs = instantOf(exact ?? found)
  if (recvTs === undefined) throw new BadLineError(`${key} is no time: ${shown(found)}`)
  return recvTs
}

function exactNumber(value: unknown, digits: string | undefined): unknown {
  return typeof value === 'number' && digits !== undefined && Number(digits) === value ? digits : value
}

function heartbeat(text: string): Frame {
  return { type: text }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new BadLineError(`no valid JSON: ${error instanceof Error ? error.message : 'unknown'}`)
  }
}

/** A JSON object, as every frame and every part of one is. */
export function isFrame(value: unknown): value is Frame {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A value as an error message shows it: short, and on one line. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
