// The records of the write-ahead log as lines of raw segments: text for the segment, messages for the fold. Only public frames
// become lines. A private frame becomes an `alive` line, which keeps its number.

import type { LobSource } from '../../shared/lob-sources.ts'
import { parsedJson } from '../../shared/parsed-json.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import { isFrame } from '../feed/frame.ts'
import type { Frame } from '../feed/frame.ts'
import { countType } from '../fold/fold-tally.ts'
import type { OwnLine } from '../fold/piece.ts'
import { LineReading } from '../fold/raw-pieces.ts'
import { eventText, framesText, messageText } from '../raw/segment-lines.ts'
import type { ConnectionEvent, SegmentLine } from '../raw/segment-lines.ts'
import { WAL_KIND } from './wal-record.ts'
import type { WalRecord } from './wal-record.ts'

/** A line of a raw segment as text, and as the fold reads it. */
export interface RecordedLine {
  readonly text: string
  readonly frames: readonly Frame[]
  readonly line: OwnLine
}

const HEARTBEATS: ReadonlySet<string> = new Set(['PING', 'PONG'])

export class OwnLines {
  readonly #recorder: string
  readonly #publicPart: (frame: Frame) => Frame | undefined
  readonly #reading: LineReading
  readonly #isNumbered: boolean
  /** Messages that cannot be read. */
  badLines = 0
  /** By connection: lines so far, for a log of 0.1, which does not number them. */
  readonly #counts: Map<string, number>
  /** Private frames, by type. */
  readonly privateFrames = new Map<string, number>()

  constructor(source: LobSource, recorder: string, counts: readonly (readonly [string, number])[] = []) {
    this.#recorder = recorder
    this.#publicPart = exchangeOf(source).publicPart
    this.#isNumbered = exchangeOf(source).isNumbered
    this.#reading = new LineReading(source, 'of the log')
    this.#counts = new Map(counts)
  }

  /** Plain data. */
  state(): readonly (readonly [string, number])[] {
    return [...this.#counts]
  }

  /** The line of a frame, a command or a mark. */
  read({ kind, lane, begunMs, start, n, payload }: WalRecord, recvTs: bigint): RecordedLine {
    const connection = `${this.#recorder}/${start}/${lane}/${begunMs}`
    const place = { connection, n: n ?? this.#count(connection) }
    const text = payload.toString('utf8')
    const value = parsedJson(text)
    if (kind === WAL_KIND.mark) return this.#event(recvTs, value, place)
    if (value === undefined && HEARTBEATS.has(text))
      return this.#line(recvTs, place, messageText(recvTs, text, place), { kind: 'text', text })
    const isList = Array.isArray(value)
    const values: readonly unknown[] = isList ? value : [value]
    const frames = values.filter((frame): frame is Frame => isFrame(frame))
    if (frames.length < values.length) {
      this.badLines++
      // With sequence numbers, the next message shows whether one is missing.
      return this.#ofEvent(recvTs, this.#isNumbered ? 'alive' : 'lost', place)
    }
    const kept = frames.flatMap<Frame>((frame) => this.#publicPart(frame) ?? this.#countPrivate(frame))
    if (kept.length === 0 && frames.length > 0) return this.#ofEvent(recvTs, 'alive', place)
    const isWhole = kept.length === frames.length && kept.every((frame, index) => frame === frames[index])
    // A line break is always between two JSON tokens.
    const json = isWhole ? text.replaceAll(/[\r\n]+/g, ' ') : JSON.stringify(isList ? kept : kept[0])
    const line = { kind: 'frames', frames: kept, isList, text: json } as const
    const read = this.#line(recvTs, place, framesText(recvTs, json, isList, place), line)
    if (read.line.isSkipped === true) this.badLines++
    return read
  }

  #event(recvTs: bigint, value: unknown, place: Pick<OwnLine, 'connection' | 'n'>): RecordedLine {
    const frame = isFrame(value) ? value : {}
    if (frame['type'] === 'open' || frame['type'] === 'lost')
      return this.#ofEvent(recvTs, frame['type'], place)
    const ms = frame['ts_ms']
    if (frame['type'] !== 'heartbeat' || typeof ms !== 'number') return this.#ofEvent(recvTs, 'close', place)
    return this.#ofEvent(BigInt(Math.round(ms)) * NS_PER_MS, 'alive', place)
  }

  #ofEvent(recvTs: bigint, event: ConnectionEvent, place: Pick<OwnLine, 'connection' | 'n'>): RecordedLine {
    return this.#line(recvTs, place, eventText(recvTs, event, place), { kind: 'event', event })
  }

  #line(
    recvTs: bigint,
    place: Pick<OwnLine, 'connection' | 'n'>,
    text: string,
    line: LineContent,
  ): RecordedLine {
    const read = this.#reading.read({ ...line, recvTs, ...place })
    return { text, frames: line.kind === 'frames' ? line.frames : [], line: { ...read, recvTs, ...place } }
  }

  #countPrivate(frame: Frame): Frame[] {
    const type = frame['type'] ?? frame['event_type'] ?? frame['cmd']
    const name = typeof type === 'string' ? type.slice(0, 60) : 'unknown'
    countType(this.privateFrames, name)
    return []
  }

  #count(connection: string): number {
    const n = this.#counts.get(connection) ?? 0
    this.#counts.set(connection, n + 1)
    return n
  }
}

type LineContent =
  | Pick<Extract<SegmentLine, { kind: 'frames' }>, 'kind' | 'frames' | 'isList' | 'text'>
  | Pick<Extract<SegmentLine, { kind: 'text' }>, 'kind' | 'text'>
  | Pick<Extract<SegmentLine, { kind: 'event' }>, 'kind' | 'event'>
