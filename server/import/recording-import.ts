// An import from its inputs to the lake: lines → frames → decoder → recording writer, merged with what the lake holds.
// All or nothing is published; a line that cannot be read stops it, or is counted where the caller wants so.

import type { Readable } from 'node:stream'
import { IMPORT_BAD_LINES_SHOWN } from '../../shared/limits.ts'
import type { LobSource } from '../../shared/lake-layout.ts'
import { LobRecordingWriter } from '../lake/lob-recording-writer.ts'
import type {
  LobRecordingWriterOptions,
  LobWriteProgress,
  WrittenLobFile,
} from '../lake/lob-recording-writer.ts'
import { BadLineError } from './bad-line.ts'
import type { FeedDecoder } from './feed-decoder.ts'
import { FeedLedger } from './feed-ledger.ts'
import { FeedSpans } from './feed-spans.ts'
import { openInputs } from './import-input.ts'
import type { ImportInput } from './import-input.ts'
import { ImportTally } from './import-tally.ts'
import { KalshiDecoder } from './kalshi-decoder.ts'
import type { SequenceTrust } from './kalshi-decoder.ts'
import { LakeMerge, seriesTouched } from './lake-merge.ts'
import { readLines } from './line-reader.ts'
import type { RecordedLine } from './line-reader.ts'
import { PolymarketDecoder } from './polymarket-decoder.ts'
import { parseRecordedLine } from './recorded-message.ts'

export interface ImportProgress {
  /** An input is opened, with its size in bytes where it has one. */
  onInput?(name: string, sizeBytes: number | undefined): void
  /** Bytes of the input read since the last call, before decompression. */
  onBytes?(count: number): void
  onWrite?(progress: LobWriteProgress): void
}

export interface ImportOptions {
  readonly source: LobSource
  readonly lake: string
  /** Files; `-`, or no path at all, means stdin. */
  readonly paths: readonly string[]
  readonly stdin: Readable
  readonly series?: string | undefined
  readonly skipBad: boolean
  /** Dates that the recording has events of are written from it alone; otherwise it is merged with what is there. */
  readonly replace: boolean
  readonly useYesPrice: boolean
  readonly sequence?: SequenceTrust
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
  readonly raisedTimes: { readonly events: number; readonly nsMax: bigint }
}

/** Imports everything or throws: an error for the user, or the signal's reason. Nothing temporary stays behind. */
export async function importRecordings(options: ImportOptions): Promise<ImportResult> {
  const { source, lake, replace, progress, bounds, signal } = options
  const inputs = await openInputs(options.paths, options.stdin, signal)
  const spans = new FeedSpans()
  const ledger = new FeedLedger(lake, source)
  const merge = { lake, source, spans, replace, ledger }
  const tally = new ImportTally()
  // Series are folded one after the other.
  let strands: LakeMerge | undefined
  const writer = new LobRecordingWriter({
    lake,
    source,
    onExisting: 'replace',
    merging: {
      seriesTouched: () => seriesTouched(merge),
      strandsOf: async (recording) => (strands = await LakeMerge.prepare(merge, recording)),
    },
    onKnowledge: (_market, _ts, strand, reason) => {
      if (reason !== undefined) tally.countUnknown(reason, strands!.endOf(strand!))
    },
    onProgress: (written) => progress?.onWrite?.(written),
    ...(bounds === undefined ? {} : { bounds }),
  })
  const abort = (): void => void writer.abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    const decoder = decoderOf(options, writer, spans, tally)
    const badLines: BadLines[] = []
    for (const input of inputs) {
      const bad = await readInput(input, decoder, tally, options)
      if (bad.count > 0) badLines.push(bad)
    }
    const { raisedTimes } = writer
    ledger.read(spans)
    const files = await writer.finish()
    ledger.write(spans)
    return { files, tally, badLines, raisedTimes }
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
    await writer.abort()
  }
}

function decoderOf(
  options: ImportOptions,
  sink: LobRecordingWriter,
  spans: FeedSpans,
  tally: ImportTally,
): FeedDecoder {
  const { series, useYesPrice, sequence } = options
  return options.source === 'kalshi'
    ? new KalshiDecoder({ sink, spans, tally, series, useYesPrice, sequence })
    : new PolymarketDecoder({ sink, spans, tally, series })
}

async function readInput(
  input: ImportInput,
  decoder: FeedDecoder,
  tally: ImportTally,
  { progress, signal, skipBad }: ImportOptions,
): Promise<BadLines> {
  const bad: BadLines = { input: input.name, count: 0, first: [] }
  progress?.onInput?.(input.name, input.sizeBytes)
  decoder.startFile(input.name)
  const batches = readLines(input.open(), { signal, onBytes: (count) => progress?.onBytes?.(count) })
  for await (const lines of batches) {
    for (const line of lines) {
      try {
        decodeLine(line, decoder)
      } catch (error) {
        if (!(error instanceof BadLineError)) throw error
        const text = `${input.name}:${line.number}: ${error.message}`
        if (!skipBad) throw new Error(text, { cause: error })
        decoder.skipBadLine()
        tally.badLines++
        if (bad.count++ < IMPORT_BAD_LINES_SHOWN) bad.first.push(text)
      }
    }
    signal.throwIfAborted()
  }
  decoder.finishFile()
  return bad
}

function decodeLine({ text }: RecordedLine, decoder: FeedDecoder): void {
  if (typeof text !== 'string') throw text
  decoder.decode(parseRecordedLine(text))
}
