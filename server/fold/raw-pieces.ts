// The raw segments of a lake as the fold reads them: the pieces of each hour of a date.

import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { groupedBy } from '../../shared/grouped-by.ts'
import { rawDateDirectory, rawSegmentOfName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import { BadLineError } from '../feed/bad-line.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import { marketsOf } from '../feed/feed-message.ts'
import type { Frame } from '../feed/frame.ts'
import type { ManifestSegment } from '../raw/date-manifest.ts'
import type { KeptRow, SegmentHeader, SegmentLine } from '../raw/segment-lines.ts'
import { readSegment } from '../raw/segment-reader.ts'
import { DecodedLines, IN_MEMORY } from './decoded-lines.ts'
import type { DecodedSegment, DecodedSegments } from './decoded-lines.ts'
import { HEARTBEAT_NAME, lineKey } from './piece.ts'
import type { Line, Lines, Piece } from './piece.ts'
import { mergeSorted } from './sorted-merge.ts'

export interface RawPiecesOptions {
  readonly lake: string
  readonly source: LobSource
  /** The names of a date's segments that count; empty if it has no raw segments. */
  readonly segmentsOf: (date: string) => readonly string[]
  /** Segments that need not be read from their files. */
  readonly decoded?: DecodedSegments | undefined
  readonly signal: AbortSignal
  /** Called for each segment that was read to its end. */
  readonly onSegment?: ((date: string, segment: ManifestSegment) => void) | undefined
}

/** The message of a line that is not JSON. */
export const HEARTBEAT: FeedMessage = {
  sid: undefined,
  seq: undefined,
  ts: undefined,
  body: { kind: 'other', name: HEARTBEAT_NAME },
}

export class RawPieces {
  readonly #options: RawPiecesOptions
  readonly #series = new Map<string, string>()

  constructor(options: RawPiecesOptions) {
    this.#options = options
  }

  has(date: string): boolean {
    return this.#options.segmentsOf(date).length > 0
  }

  /** The series of a market, if the raw segments state it. */
  seriesOf(marketId: string): string | undefined {
    return this.#series.get(marketId)
  }

  /** The pieces of each hour that has any, ascending. */
  async *hoursOf(date: string): AsyncGenerator<readonly Piece[]> {
    const byHour = groupedBy(this.#options.segmentsOf(date), (name) => rawSegmentOfName(name)!.hour)
    for (const [, names] of [...byHour].toSorted(([a], [b]) => a - b)) {
      const pieces: Piece[] = []
      const own = new Map<string, OwnLines>()
      for (const name of names.toSorted()) {
        const piece = await this.#read(date, name, own)
        if (piece !== undefined) pieces.push(piece)
      }
      for (const [connection, lines] of own) {
        lines.close()
        pieces.push({ lines, sequence: 'strict', useYesPrice: true, connection })
      }
      yield pieces
    }
  }

  /** Reads a segment. Returns the piece of an imported one; lines of a recorder go to `own`, by connection and number. */
  async #read(date: string, name: string, own: Map<string, OwnLines>): Promise<Piece | undefined> {
    const { decoded, onSegment } = this.#options
    const { facts, header, lines, isNumbered } =
      decoded?.read(name) ?? (await this.#readFile(date, name, own))
    // Let lock heartbeats and the progress run: a decoded segment is read without waiting for the disk.
    await setImmediate()
    onSegment?.(date, facts)
    const { reading } = header
    if (reading === undefined || lines.length === 0) return undefined
    const { series, sequence, useYesPrice } = reading
    if (series !== undefined)
      for (const { messages } of lines)
        for (const { body } of messages) for (const id of marketsOf(body)) this.#series.set(id, series)
    return { lines, sequence: isNumbered ? sequence : 'ignore', useYesPrice }
  }

  /** Lines without a connection are in the result, those of a recorder in `own`. */
  async #readFile(date: string, name: string, own: Map<string, OwnLines>): Promise<DecodedSegment> {
    const { lake, source, signal } = this.#options
    const path = join(rawDateDirectory(lake, source, date), name)
    const reader = new LineReading(source, path)
    let header: SegmentHeader | undefined
    let lines: DecodedLines | undefined
    let count = 0
    let [firstTs, lastTs]: [bigint | undefined, bigint | undefined] = [undefined, undefined]
    for await (const batch of readSegment(path, { signal })) {
      for (const line of batch) {
        if (line.kind === 'header') {
          header = line.header
          continue
        }
        count++
        const { recvTs, connection, n } = line
        if (recvTs !== undefined) {
          if (firstTs === undefined || recvTs < firstTs) firstTs = recvTs
          if (lastTs === undefined || recvTs > lastTs) lastTs = recvTs
        }
        if (line.kind === 'series') {
          for (const [id, series] of line.series) this.#series.set(id, series)
          continue
        }
        if (line.kind === 'rest') continue
        const read = reader.read(line)
        if (connection !== undefined) {
          const known = own.get(connection) ?? new OwnLines(header!)
          own.set(connection, known)
          known.add(read, n!)
          continue
        }
        lines ??= new DecodedLines(header!, IN_MEMORY)
        lines.add(read, '')
      }
    }
    // The reader refuses a segment without a header.
    lines?.close()
    const facts = { name, lines: count, firstTs, lastTs }
    return { facts, header: header!, lines: lines ?? [], isNumbered: lines?.isNumbered ?? true }
  }
}

function messageOfRow(
  { marketId, event, side, price, qty, seq }: KeptRow,
  ts: bigint | undefined,
): FeedMessage {
  const place = { sid: undefined, seq: Number(seq), ts }
  if (event === EVENT_CLEAR) return { ...place, body: { kind: 'book', marketId, levels: [] } }
  // The book is unknown from then on.
  if (event === EVENT_GAP) return { ...place, body: { kind: 'finished', marketId } }
  return { ...place, body: { kind: 'changes', event, changes: [{ marketId, side, price, qty }] } }
}

/** An hour has fewer slices. */
const PARTS_MAX = 1_000

/** The lines of a recorder's connection in an hour, each once, by their numbers. */
class OwnLines implements Lines {
  readonly #header: SegmentHeader
  /** Each in the order of its numbers. After a restart, two slices may have the same lines. */
  readonly #parts: DecodedLines[] = []
  /** Lines beyond PARTS_MAX parts: of segments whose lines are out of order. */
  readonly #others: Line[] = []
  #last = Infinity
  length = 0

  constructor(header: SegmentHeader) {
    this.#header = header
  }

  add(line: Line, n: number): void {
    this.length++
    if (n <= this.#last) {
      if (this.#parts.length === PARTS_MAX) {
        this.#others.push(line)
        return
      }
      this.close()
      this.#parts.push(new DecodedLines(this.#header, IN_MEMORY))
    }
    this.#parts.at(-1)!.add(line, '')
    this.#last = n
  }

  close(): void {
    this.#parts.at(-1)?.close()
  }

  *[Symbol.iterator](): Generator<Line> {
    let last = -1
    for (const line of mergeSorted([...this.#parts, this.#others.toSorted(byNumber)], byNumber)) {
      if (line.n! > last) yield line
      last = line.n!
    }
  }
}

function byNumber(a: Line, b: Line): number {
  return a.n! - b.n!
}

/** Turns the lines of one segment into those of the fold. */
export class LineReading {
  readonly #readFrame: (frame: Frame) => FeedMessage
  readonly #path: string

  constructor(source: LobSource, path: string) {
    const exchange = exchangeOf(source)
    this.#readFrame = (frame) => exchange.readFrame(frame)
    this.#path = path
  }

  read(line: Exclude<SegmentLine, { readonly kind: 'header' | 'series' | 'rest' }>): Line {
    const { kind, recvTs, n } = line
    if (kind === 'frames') {
      const { isList, frames, text } = line
      const messages = this.#messagesOf(frames, n !== undefined)
      if (messages === undefined) return { recvTs, n, key: 0, isList, messages: [], isSkipped: true }
      return { recvTs, n, key: n === undefined ? lineKey(recvTs, text) : 0, isList, messages }
    }
    const read = { recvTs, n, key: 0, isList: false, messages: [] }
    switch (kind) {
      case 'text':
        return { ...read, key: lineKey(recvTs, line.text), messages: [HEARTBEAT] }
      case 'event':
        return { ...read, key: lineKey(recvTs, line.event), event: line.event }
      case 'row':
        return { ...read, messages: [messageOfRow(line.row, recvTs)], rowRecvTs: line.row.recvTs }
      default:
        return { ...read, isSkipped: true }
    }
  }

  /** A recorder keeps frames that it cannot read: then undefined. Throws if this version cannot read another frame. */
  #messagesOf(frames: readonly Frame[], isOwn: boolean): FeedMessage[] | undefined {
    try {
      return frames.map((frame) => this.#readFrame(frame))
    } catch (error) {
      if (!(error instanceof BadLineError)) throw error
      if (isOwn) return undefined
      throw new Error(`Segment ${this.#path} has a message that cannot be read: ${error.message}`, {
        cause: error,
      })
    }
  }
}
