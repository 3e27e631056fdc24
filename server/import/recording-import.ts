// An import from its inputs to the lake: lines → frames → decoder → recording writer, merged with what the lake holds.
// All or nothing is published; a line that cannot be read stops it, or is counted where the caller wants so.

import type { Readable } from 'node:stream'
import type { LobSource } from '../../shared/lob-sources.ts'
import { NS_PER_MS, utcDateOf } from '../../shared/utc-date.ts'
import { LobRecordingWriter } from '../lake/lob-recording-writer.ts'
import type {
  LobRecordingWriterOptions,
  LobWriteProgress,
  WrittenLobFile,
} from '../lake/lob-recording-writer.ts'
import { BadLineError } from '../feed/bad-line.ts'
import type { FeedDecoder } from '../feed/feed-decoder.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import { FeedLedger } from './feed-ledger.ts'
import { FeedSpans } from '../feed/feed-spans.ts'
import { UnreadableInputError, openInputs } from './import-input.ts'
import type { ImportInput } from './import-input.ts'
import { ImportTally } from '../feed/import-tally.ts'
import type { FeedReading } from '../feed/feed-reading.ts'
import { FRAMES_TO_RECOGNISE, recogniseFeed } from './feed-recognition.ts'
import { mergeAlone } from './import-lock.ts'
import type { TouchSeries } from './import-lock.ts'
import { ImportReport } from './import-report.ts'
import type { MarketDay } from './import-report.ts'
import { seriesTouched } from './lake-dates.ts'
import { LakeMerge } from './lake-merge.ts'
import { readLines } from './line-reader.ts'
import type { RecordedLine } from './line-reader.ts'
import { ownTimeKeysOf, parseRecordedLine } from './recorded-message.ts'
import type { Frame } from '../feed/frame.ts'

/** Bad lines that an import shows in full; all are counted. */
const IMPORT_BAD_LINES_SHOWN = 5
const SKIP_HINT =
  '--skip-bad imports the lines that can be read and counts the others; a recorder that was killed leaves half a last line'

export interface ImportProgress {
  /** An input is opened, with its size in bytes where it has one. */
  onInput?(name: string, sizeBytes: number | undefined): void
  /** Bytes of the input read since the last call, before decompression. */
  onBytes?(count: number): void
  /** Another import, of the process named, merges into the lake first. */
  onWait?(owner: string): void
  onWrite?(progress: LobWriteProgress): void
}

export interface ImportOptions extends FeedReading {
  readonly source: LobSource
  readonly lake: string
  /** Files; `-`, or no path at all, means stdin. */
  readonly paths: readonly string[]
  readonly stdin: Readable
  readonly series?: string | undefined
  readonly skipBad: boolean
  /** Dates that the recording has events of are written from it alone; otherwise it is merged with what is there. */
  readonly replace: boolean
  readonly signal: AbortSignal
  readonly progress?: ImportProgress
  readonly bounds?: NonNullable<LobRecordingWriterOptions['bounds']>
}

export interface BadLines {
  readonly input: string
  count: number
  /** The first few, as `file:line: reason`. */
  readonly first: string[]
}

export interface ImportResult {
  readonly files: readonly WrittenLobFile[]
  readonly tally: ImportTally
  /** Inputs with skipped lines. */
  readonly badLines: readonly BadLines[]
  /** What is known of each market in the dates that the recording has to do with. */
  readonly days: readonly MarketDay[]
  readonly raisedTimes: { readonly events: number; readonly nsMax: bigint }
  /** Words that a connection had ended, with no message before them in their files, which the ledger keeps. */
  readonly connectionEnds: number
  /** Files of what earlier imports have heard that could not be read, and why; what they proved is no longer known. */
  readonly damagedLedgers: readonly string[]
}

/** The system failed between two steps of publishing: some files are in the lake. The same import again completes them. */
export class PublishedInPartError extends Error {
  /** Relative to the lake. */
  readonly paths: readonly string[]

  constructor(paths: readonly string[], cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'PublishedInPartError'
    this.paths = paths
  }
}

/**
 * Imports everything or throws: an error for the user, or the signal's reason. Nothing temporary stays behind.
 * @throws {PublishedInPartError} when the disk or the system fails in the midst of publishing
 */
export async function importRecordings(options: ImportOptions): Promise<ImportResult> {
  const { source, lake, replace, progress, bounds, signal } = options
  const inputs = await openInputs(options.paths, options.stdin, signal)
  const spans = new FeedSpans({ partsAtSilence: true })
  const ledger = new FeedLedger(lake, source)
  const merge = { lake, source, spans, replace, ledger }
  const report = new ImportReport()
  let touch: TouchSeries
  const writer = new LobRecordingWriter({
    lake,
    source,
    onExisting: 'replace',
    merging: {
      seriesTouched: () => seriesTouched(merge),
      strandsOf: async (recording) => {
        await touch(recording.series)
        const strands = await LakeMerge.prepare(merge, recording)
        if (strands !== undefined) report.startSeries(strands)
        return strands
      },
      beforePublish: (paths) => ledger.stage(spans, paths),
      onPublish: () => ledger.publishBeforeRows(),
    },
    onKnowledge: report.onKnowledge,
    onDate: report.onDate,
    onProgress: (written) => progress?.onWrite?.(written),
    ...(bounds === undefined ? {} : { bounds }),
  })
  const abort = (): void => void writer.abort()
  signal.addEventListener('abort', abort, { once: true })
  let lost: Error | undefined
  try {
    const tally = new ImportTally()
    const decoder = decoderOf(options, writer, spans, tally)
    const badLines: BadLines[] = []
    for (const input of inputs) {
      const bad = await readInput(input, decoder, tally, options)
      if (bad.count > 0) badLines.push(bad)
    }
    const { raisedTimes } = writer
    const onLost = (error: Error): void => {
      lost = error
      abort()
    }
    const onWait = (owner: string): void => progress?.onWait?.(owner)
    const files = await mergeAlone({ lake, source, signal, onLost, onWait }, async (touchSeries) => {
      touch = touchSeries
      ledger.read(spans)
      const written = await writer.finish()
      ledger.publish()
      return written
    })
    const days = reportedDays(report, files, spans)
    countLosses(days, tally)
    const connectionEnds = new Set(spans.endsBefore).size
    return { files, tally, badLines, days, raisedTimes, connectionEnds, damagedLedgers: ledger.damaged }
  } catch (error) {
    if (writer.published.length > 0) throw new PublishedInPartError(writer.published, error)
    signal.throwIfAborted()
    throw lost ?? error
  } finally {
    signal.removeEventListener('abort', abort)
    ledger.discard()
    await writer.abort()
  }
}

/** The days of files that were changed, or that the recording itself speaks of. */
function reportedDays(report: ImportReport, files: readonly WrittenLobFile[], spans: FeedSpans): MarketDay[] {
  const dates = new Set<string>()
  for (const { firstTs } of spans.list.values()) dates.add(utcDateOf(Number(firstTs / NS_PER_MS)))
  const changed = new Set<string>()
  for (const { series, date, status } of files) if (status !== 'unchanged') changed.add(`${series} ${date}`)
  return report.days.filter(({ series, date }) => dates.has(date) || changed.has(`${series} ${date}`))
}

function countLosses(days: readonly MarketDay[], tally: ImportTally): void {
  for (const { losses } of days) {
    for (const [cause, count] of losses) {
      if (cause === 'level below zero') tally.negativeLevels += count
      // The decoder has counted the markets that were left.
      else if (cause !== 'no longer followed') tally.countGap(cause, count)
    }
  }
}

function decoderOf(
  options: ImportOptions,
  sink: LobRecordingWriter,
  spans: FeedSpans,
  tally: ImportTally,
): FeedDecoder {
  const { source, series, useYesPrice, sequence } = options
  return exchangeOf(source).makeDecoder({ sink, spans, tally, series, useYesPrice, sequence })
}

async function readInput(
  input: ImportInput,
  decoder: FeedDecoder,
  tally: ImportTally,
  { progress, signal, skipBad, source }: ImportOptions,
): Promise<BadLines> {
  const bad: BadLines = { input: input.name, count: 0, first: [] }
  progress?.onInput?.(input.name, input.sizeBytes)
  decoder.startFile(input.name)
  const first = new FirstFrames(input.name, source)
  const ownTimeKeys = ownTimeKeysOf(source)
  for await (const lines of linesOf(input, signal, progress)) {
    for (const line of lines) {
      try {
        decodeLine(line, decoder, first, ownTimeKeys)
      } catch (error) {
        if (!(error instanceof BadLineError)) throw error
        first.refuseOthers()
        const text = `${input.name}:${line.number}: ${error.message}`
        if (!skipBad) throw new Error(`${text}\n(${SKIP_HINT})`, { cause: error })
        decoder.skipBadLine()
        tally.badLines++
        if (bad.count++ < IMPORT_BAD_LINES_SHOWN) bad.first.push(text)
      }
    }
    signal.throwIfAborted()
  }
  first.refuseOthers()
  try {
    decoder.finishFile()
  } catch (error) {
    if (!(error instanceof BadLineError)) throw error
    const text = `${input.name}: ${error.message}`
    if (!skipBad) throw new Error(text, { cause: error })
    tally.badLines++
    if (bad.count++ < IMPORT_BAD_LINES_SHOWN) bad.first.push(text)
  }
  return bad
}

/** The lines of an input; what is wrong with it as a whole is said with its name. */
async function* linesOf(
  input: ImportInput,
  signal: AbortSignal,
  progress: ImportProgress | undefined,
): AsyncGenerator<readonly RecordedLine[]> {
  try {
    yield* readLines(input.open(), { signal, onBytes: (count) => progress?.onBytes?.(count) })
  } catch (error) {
    signal.throwIfAborted()
    throw new UnreadableInputError(input.name, error)
  }
}

function decodeLine(
  { text }: RecordedLine,
  decoder: FeedDecoder,
  first: FirstFrames,
  ownTimeKeys: ReadonlySet<string>,
): void {
  if (typeof text !== 'string') throw text
  const message = parseRecordedLine(text, ownTimeKeys)
  if (!first.isSettled) first.add(message.frames)
  decoder.decode(message)
}

/** The first frames of an input, which show whose they are. */
class FirstFrames {
  readonly #name: string
  readonly #source: LobSource
  #frames: Frame[] = []
  isSettled = false

  constructor(name: string, source: LobSource) {
    this.#name = name
    this.#source = source
  }

  add(frames: readonly Frame[]): void {
    this.#frames.push(...frames.slice(0, FRAMES_TO_RECOGNISE))
    if (this.#frames.length >= FRAMES_TO_RECOGNISE) this.refuseOthers()
  }

  /** Throws where what has come so far is another exchange's. */
  refuseOthers(): void {
    if (this.isSettled) return
    const source = recogniseFeed(this.#frames)
    if (source !== 'unknown' && source !== this.#source) {
      throw new Error(
        `${this.#name}: these are messages of ${source}, not of ${this.#source}; import them with --source ${source}`,
      )
    }
    if (this.#frames.length < FRAMES_TO_RECOGNISE) return
    this.isSettled = true
    this.#frames = []
  }
}
