// Cuts consecutive lines of one input that have the same reading settings into segments, where the hour changes. Each further segment
// begins with the last line of the one before.

import { IMPORTED, isOfRecorder } from '../../shared/lake-layout.ts'
import { MS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import { BadLineError } from '../feed/bad-line.ts'
import { DecodedLines } from '../fold/decoded-lines.ts'
import type { DecodedSegments } from '../fold/decoded-lines.ts'
import type { SegmentHeader } from '../raw/segment-lines.ts'
import { fileOfPath } from '../raw/segment-reader.ts'
import { SegmentWriter } from '../raw/segment-writer.ts'
import type { SegmentPlace, StagedSegment } from '../raw/segment-writer.ts'
import { SKIPPED_LINE } from './line-filing.ts'
import type { FiledLine } from './line-filing.ts'
import { LineHours } from './line-hours.ts'

/** Lines without a time that wait until a later line shows their hour. */
const WAITING_LINES_MAX = 1_000
const WAITING_CHARACTERS_MAX = 8 * 1024 * 1024
export interface SegmentCutterOptions {
  readonly lake: string
  readonly header: SegmentHeader
  /** Takes the segments as they are staged. */
  readonly staged: StagedSegment[]
  /** The path of the file if the lines come from a segment. They stay one segment. */
  readonly segmentPath: string | undefined
  /** Takes the lines of the segments, for the fold. */
  readonly decoded: DecodedSegments
}

export class SegmentCutter {
  readonly header: SegmentHeader
  readonly #lake: string
  readonly #staged: StagedSegment[]
  /** The lines come from a segment and stay one. */
  readonly #isSegment: boolean
  /** The place of the segment, from its path. */
  readonly #place: SegmentPlace | undefined
  readonly #decoded: DecodedSegments
  readonly #hours = new LineHours()
  #writer: SegmentWriter | undefined
  #lines: DecodedLines | undefined
  #waiting: FiledLine[] = []
  #waitingCharacters = 0
  #last: FiledLine | undefined
  /** Lines after the last one could not be read. */
  #hasSkipped = false
  #hasContent = false
  /** The latest time of books that state only their last change, ms. */
  #bookMs = NaN
  #firstRecvMs = NaN

  constructor({ lake, header, staged, segmentPath, decoded }: SegmentCutterOptions) {
    this.header = header
    this.#lake = lake
    this.#staged = staged
    this.#decoded = decoded
    this.#isSegment = segmentPath !== undefined
    this.#place = segmentPath === undefined ? undefined : placeOfPath(segmentPath, header)
  }

  /** Adds a line. Returns a promise if the next line must wait. */
  add(line: FiledLine): Promise<void> | undefined {
    if (this.#waiting.length > 0) return this.#addWaiting(line)
    if (this.#writer === undefined) return this.#open(line)
    if (this.#hours.judge(line) === 'stay') {
      this.#write(line)
      return undefined
    }
    this.#wait(line)
    return undefined
  }

  /** Waits for the disk. */
  async drained(): Promise<void> {
    if (this.#writer?.isFull === true) await this.#writer.drained()
  }

  /** Stages the last segment. Throws BadLineError if no line has a time. */
  async finish(): Promise<void> {
    if (this.#waiting.length > 0) {
      const { hourMs } = this.#hours
      await this.#release(this.#hours.resolveLast(), hourMs)
    }
    await this.#stage(this.#hours.hourMs)
  }

  /** Removes what is not staged. */
  async discard(): Promise<void> {
    await this.#writer?.discard()
    this.#writer = undefined
  }

  async #open(line: FiledLine): Promise<void> {
    await this.#begin(this.header)
    await this.add(line)
  }

  async #begin(header: SegmentHeader): Promise<void> {
    this.#writer = await SegmentWriter.open(this.#lake, header)
    this.#lines = new DecodedLines(header, this.#decoded)
  }

  async #addWaiting(line: FiledLine): Promise<void> {
    const isFull =
      this.#waiting.length >= WAITING_LINES_MAX || this.#waitingCharacters >= WAITING_CHARACTERS_MAX
    const { hourMs } = this.#hours
    const begins = isFull ? this.#hours.giveUp() : this.#hours.resolve(line)
    if (begins === undefined) {
      this.#wait(line)
      return
    }
    await this.#release(begins, hourMs)
    await this.add(line)
  }

  #wait(line: FiledLine): void {
    this.#waiting.push(line)
    this.#waitingCharacters += line.text.length
  }

  /** `hourMs` is the open hour. */
  async #release(begins: boolean, hourMs: number | undefined): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingCharacters = 0
    if (begins && !this.#isSegment) {
      const [last, hasSkipped] = [this.#last, this.#hasSkipped]
      await this.#stage(hourMs)
      await this.#begin({ ...this.header, hasOverlap: last !== undefined })
      if (last !== undefined) this.#write(last)
      if (hasSkipped) this.#write(SKIPPED_LINE)
    }
    for (const line of waiting) this.#write(line)
  }

  #write(line: FiledLine): void {
    this.#writer!.add(line.text, line.recvTs)
    this.#lines!.add(line.read, line.text)
    this.#hasSkipped = line === SKIPPED_LINE
    if (line.hasContent) {
      this.#hasContent = true
      this.#last = line
    }
    if (!(line.bookMs <= this.#bookMs)) this.#bookMs = line.bookMs
    if (Number.isNaN(this.#firstRecvMs)) this.#firstRecvMs = line.recvMs
  }

  async #stage(hourMs: number | undefined): Promise<void> {
    const writer = this.#writer
    if (writer === undefined) return
    if (!this.#hasContent) {
      await this.discard()
      return
    }
    const staged = await writer.stage(this.#place ?? this.#placeOf(hourMs))
    this.#writer = undefined
    this.#staged.push(staged)
    this.#decoded.add(staged.facts, this.#lines!)
  }

  #placeOf(hourMs: number | undefined): SegmentPlace {
    const { recorder = IMPORTED } = this.header
    // A recorder cuts at its own hours.
    const ownMs = this.header.recorder === undefined ? undefined : defined(this.#firstRecvMs)
    const ms = ownMs ?? hourMs ?? defined(this.#bookMs)
    if (ms === undefined) throw new BadLineError('no message of the recording carries a time')
    return { recorder, date: utcDateOf(ms), hour: Math.floor(ms / MS_PER_HOUR) % 24 }
  }
}

function defined(ms: number): number | undefined {
  return Number.isNaN(ms) ? undefined : ms
}

/** The place of a segment in a lake's raw folder; undefined for another path. */
function placeOfPath(path: string, header: SegmentHeader): SegmentPlace | undefined {
  const file = fileOfPath(path)
  if (file?.segment === undefined || file.source !== header.source) return undefined
  const { recorder, hour } = file.segment
  const isOwn = header.recorder === undefined ? !isOfRecorder(file.segment) : header.recorder === recorder
  return isOwn ? { recorder, date: file.date, hour } : undefined
}
