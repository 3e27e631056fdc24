// Recordings → raw segments: the first half of an import. It reads lines, leaves out private frames, and cuts the rest where the
// hour advances. Each further segment of an input begins with the last line of the segment before, so that the segments together
// show the order of the lines. Segments wait under temporary names until every input has been read.

import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { isRecorderName, rawSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { BadLineError, shown } from '../feed/bad-line.ts'
import type { FeedReading } from '../feed/feed-reading.ts'
import { LineOrder } from '../feed/line-order.ts'
import { DecodedSegments } from '../fold/decoded-lines.ts'
import { removeStaleTemporaries, temporaryPath } from '../lake/temporary-file.ts'
import type { SegmentHeader, SegmentLine } from '../raw/segment-lines.ts'
import type { MessageLine } from './segment-input.ts'
import type { StagedSegment } from '../raw/segment-writer.ts'
import { FirstFrames } from './first-frames.ts'
import { UnreadableInputError, openInputs } from './import-input.ts'
import type { ImportInput } from './import-input.ts'
import { LineFiling, SKIPPED_LINE } from './line-filing.ts'
import type { FiledLine, SegmentingTally } from './line-filing.ts'
import { readLines } from './line-reader.ts'
import type { InputLine } from './line-reader.ts'
import { SegmentCutter } from './segment-cutter.ts'

/** Bad lines that an import shows in full; all are counted. */
const BAD_LINES_SHOWN = 5
const SKIP_HINT =
  '--skip-bad imports the lines that can be read and counts the others; a recorder that was killed leaves half a last line'

export interface SegmentingProgress {
  /** An input is opened, with its size in bytes if that is known. */
  onInput?(name: string, sizeBytes: number | undefined): void
  /** Bytes of the input read since the last call, before decompression. */
  onBytes?(count: number): void
}

export interface SegmentingOptions extends FeedReading {
  readonly source: LobSource
  readonly lake: string
  /** Files; `-`, or no path at all, means stdin. */
  readonly paths: readonly string[]
  readonly stdin: Readable
  /** Files every market under this series. */
  readonly series?: string | undefined
  /** Count lines that cannot be read, instead of stopping at the first one. */
  readonly skipBad: boolean
  readonly signal: AbortSignal
  readonly progress?: SegmentingProgress | undefined
}

/** Lines of one input that could not be read. */
export interface BadLines {
  readonly input: string
  count: number
  /** The first few, as `file:line: reason`. */
  readonly first: string[]
}

/** Segments that are complete under temporary names. `discard` must be called, also after `publish`: it closes the file of the messages. */
export class SegmentedRecordings {
  segments: StagedSegment[] = []
  readonly tally: SegmentingTally = {
    messages: 0,
    badLines: 0,
    privateFrames: new Map(),
    otherFrames: new Map(),
  }
  /** Inputs with lines that were skipped. */
  readonly badLines: BadLines[] = []
  readonly decoded: DecodedSegments

  constructor(decoded: DecodedSegments) {
    this.decoded = decoded
  }

  /** The dates that have segments, sorted. */
  get dates(): string[] {
    return [...new Set(this.segments.map(({ facts }) => facts.date))].toSorted()
  }

  /** Gives each segment its name. If one fails, the ones before it stay in the lake; they are complete. */
  async publish(): Promise<void> {
    for (const segment of this.segments) await segment.publish()
  }

  /** Keeps each segment once: several inputs may have the same lines. */
  async dropRepeats(): Promise<void> {
    const byPath = new Map<string, StagedSegment>()
    for (const segment of this.segments) {
      if (byPath.has(segment.facts.path)) await segment.discard()
      else byPath.set(segment.facts.path, segment)
    }
    this.segments = [...byPath.values()]
  }

  /** Removes segments that are not to be published. */
  async drop(isDropped: (segment: StagedSegment) => boolean): Promise<void> {
    for (const segment of this.segments.filter(isDropped)) await segment.discard()
    this.segments = this.segments.filter((segment) => !isDropped(segment))
  }

  /** Removes what was not published. */
  async discard(): Promise<void> {
    for (const segment of this.segments) await segment.discard()
    this.decoded.discard()
  }
}

/**
 * Reads every input, and writes its segments under temporary names. Throws an error for the user, or the signal's reason, after it
 * has removed the temporary files.
 */
export async function segmentRecordings(options: SegmentingOptions): Promise<SegmentedRecordings> {
  const { lake, source, signal, progress } = options
  const inputs = await openInputs(options.paths, options.stdin, signal)
  await removeStaleTemporaries(rawSourceDirectory(lake, source))
  const decoded = new DecodedSegments(temporaryPath(join(rawSourceDirectory(lake, source), 'lines')))
  const recordings = new SegmentedRecordings(decoded)
  const filing = new LineFiling(options, recordings.tally)
  try {
    for (const input of inputs) {
      progress?.onInput?.(input.name, input.sizeBytes)
      await new InputSegmenting(input, options, filing, recordings).read()
    }
    await recordings.dropRepeats()
    return recordings
  } catch (error) {
    await recordings.discard()
    signal.throwIfAborted()
    throw error
  }
}

/** Cuts one input into segments. */
class InputSegmenting {
  readonly #input: ImportInput
  readonly #options: SegmentingOptions
  readonly #filing: LineFiling
  readonly #recordings: SegmentedRecordings
  readonly #bad: BadLines
  readonly #order: LineOrder
  /** The header for lines that do not come from a segment. */
  readonly #ownHeader: SegmentHeader
  #cutter: SegmentCutter

  constructor(
    input: ImportInput,
    options: SegmentingOptions,
    filing: LineFiling,
    recordings: SegmentedRecordings,
  ) {
    this.#input = input
    this.#options = options
    this.#filing = filing
    this.#recordings = recordings
    this.#bad = { input: input.name, count: 0, first: [] }
    this.#order = new LineOrder(input.name)
    const { source, series, sequence = 'strict', useYesPrice } = options
    this.#ownHeader = { source, reading: { series, sequence, useYesPrice } }
    this.#cutter = this.#newCutter(this.#ownHeader)
  }

  async read(): Promise<void> {
    const { signal, source } = this.#options
    const first = new FirstFrames(this.#input.name, source)
    try {
      for await (const lines of this.#lines()) {
        for (const { text, number } of lines) {
          let wait: Promise<void> | undefined
          try {
            if (typeof text !== 'string') throw text
            const line = this.#filing.parse(text)
            if (!first.isSettled) {
              if (line.kind === 'message') first.settle()
              else if (line.kind === 'frames') first.add(line.frames)
            }
            wait = this.#take(line)
          } catch (error) {
            if (!(error instanceof BadLineError)) throw error
            first.refuseOthers()
            this.#skip(`${this.#input.name}:${number}: ${error.message}`, error, SKIP_HINT)
            wait = this.#cutter.add(SKIPPED_LINE)
          }
          if (wait !== undefined) await wait
        }
        await this.#cutter.drained()
        signal.throwIfAborted()
      }
      first.refuseOthers()
      await this.#finishPiece()
      this.#order.refuseDisorder()
    } catch (error) {
      await this.#cutter.discard()
      throw error
    }
    if (this.#bad.count > 0) this.#recordings.badLines.push(this.#bad)
  }

  #take(line: SegmentLine | MessageLine): Promise<void> | undefined {
    if (line.kind === 'header') return this.#startSegment(line.header)
    const filed = this.#filing.file(line, this.#order)
    if (filed === undefined) return undefined
    const { header } = this.#cutter
    // Lines of a recorder without a header, or lines of another recording after a segment.
    const isOfAnother = filed.recorder !== undefined && filed.recorder !== header.recorder
    const isMessage = line.kind === 'frames' || line.kind === 'message'
    const isOfNone = filed.recorder === undefined && header.recorder !== undefined && isMessage
    if (!isOfAnother && !isOfNone) return this.#cutter.add(filed)
    const recorder = filed.recorder
    if (recorder !== undefined && !isRecorderName(recorder)) {
      throw new BadLineError(`not a recorder's name: ${shown(recorder)}`)
    }
    const { source } = this.#options
    return this.#startPiece(recorder === undefined ? this.#ownHeader : { source, recorder }, filed)
  }

  /** Throws for a segment of another exchange. */
  #startSegment(header: SegmentHeader): Promise<void> {
    const { source } = this.#options
    if (header.source !== source) {
      throw new Error(
        `${this.#input.name}: it is a segment of ${header.source}, not of ${source}; import it with --source ${header.source}`,
      )
    }
    return this.#startPiece(header, undefined)
  }

  async #startPiece(header: SegmentHeader, line: FiledLine | undefined): Promise<void> {
    await this.#finishPiece()
    this.#cutter = this.#newCutter(header)
    if (line !== undefined) await this.#cutter.add(line)
  }

  async #finishPiece(): Promise<void> {
    try {
      await this.#cutter.finish()
    } catch (error) {
      if (!(error instanceof BadLineError)) throw error
      this.#skip(`${this.#input.name}: ${error.message}`, error)
      await this.#cutter.discard()
    }
  }

  #newCutter(header: SegmentHeader): SegmentCutter {
    const segmentPath = header === this.#ownHeader ? undefined : this.#input.name
    const { segments: staged, decoded } = this.#recordings
    return new SegmentCutter({ lake: this.#options.lake, header, staged, segmentPath, decoded })
  }

  /** Counts a bad line, or stops at it. */
  #skip(text: string, cause: BadLineError, hint?: string): void {
    if (!this.#options.skipBad) throw new Error(hint === undefined ? text : `${text}\n(${hint})`, { cause })
    this.#recordings.tally.badLines++
    if (this.#bad.count++ < BAD_LINES_SHOWN) this.#bad.first.push(text)
  }

  /** The lines of the input. Errors that concern the whole input name it. */
  async *#lines(): AsyncGenerator<readonly InputLine[]> {
    const { signal, progress } = this.#options
    try {
      yield* readLines(this.#input.open(), { signal, onBytes: (count) => progress?.onBytes?.(count) })
    } catch (error) {
      signal.throwIfAborted()
      throw new UnreadableInputError(this.#input.name, error)
    }
  }
}
