// The report of an import as JSON: the facts of the summary, complete and by market.

import { createWriteStream } from 'node:fs'
import { dirname, relative } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { exchangeOf } from '../exchanges/registry.ts'
import type { MarketDay } from '../fold/fold-report.ts'
import type { ImportResult } from '../import/recording-import.ts'
import { groupedBy } from '../../shared/grouped-by.ts'
import { instantText, NS_PER_DAY } from '../../shared/utc-date.ts'
import { isDirectory } from './directories.ts'
import type { SummarySettings } from './import-summary.ts'

/** Shares are rounded down to this precision, so that 1 always means completely known. */
const SHARE_PARTS = 1_000_000n
const MS_DIGITS = 3

/** Called before any input is read. @throws {Error} if `path` is a directory, or its directory does not exist */
export async function checkReportPath(path: string): Promise<void> {
  if (!(await isDirectory(dirname(path))))
    throw new Error(`--report ${path}: there is no directory ${dirname(path)}`)
  if (await isDirectory(path)) throw new Error(`--report ${path} is a directory`)
}

/** Streams the report market by market, because it may be long. */
export async function writeImportReport(
  result: ImportResult,
  settings: SummarySettings,
  path: string,
): Promise<void> {
  await pipeline(Readable.from(reportPieces(result, settings)), createWriteStream(path))
}

function* reportPieces(result: ImportResult, settings: SummarySettings): Generator<string> {
  const head = JSON.stringify(headOf(result, settings), undefined, 2)
  yield `${head.slice(0, -2)},\n  "markets": [`
  let separator = '\n    '
  for (const days of marketsOf(result.days)) {
    const [{ series, market }] = days
    const entry = { series, market_id: market, dates: days.map(dayOf) }
    yield `${separator}${JSON.stringify(entry)}`
    separator = ',\n    '
  }
  yield '\n  ]\n}\n'
}

function headOf(result: ImportResult, { lake, source, sequence }: SummarySettings) {
  const { tally, input, files, badLines, days, segments, sealed } = result
  const knownNs = days.reduce((sum, day) => sum + day.knownNs, 0n)
  const coveredNs = days.reduce((sum, day) => sum + day.coveredNs, 0n)
  return {
    source,
    sequence: exchangeOf(source).isNumbered ? sequence : undefined,
    messages: input.messages,
    private_messages: Object.fromEntries(input.privateFrames),
    messages_of_other_exchanges: Object.fromEntries(input.otherFrames),
    raw_segments: segments,
    sealed_dates: sealed,
    book_events: tally.events,
    snapshots: tally.snapshots,
    repeated_messages: tally.repeats,
    corrected_times: tally.correctedTimes,
    missing_numbers: tally.missing.numbers,
    bad_lines: badLines.map(({ input: name, count, first }) => ({ input: name, count, first })),
    gaps: Object.fromEntries(tally.gaps),
    without_book_event: Object.fromEntries(tally.skippedTypes),
    known_share_of_covered: share(knownNs, coveredNs),
    known_share_of_day: share(knownNs, NS_PER_DAY * BigInt(days.length)),
    files: files.map(({ path, series, date, status, rows, markets, gaps, coversFrom, coversTo }) => ({
      path: relative(lake, path),
      series,
      date,
      status,
      rows,
      markets,
      gaps,
      covers_from: instantText(coversFrom),
      covers_to: instantText(coversTo),
    })),
  }
}

/** The days, grouped by market. */
function marketsOf(days: readonly MarketDay[]): Iterable<readonly [MarketDay, ...MarketDay[]]> {
  return groupedBy(days, ({ series, market }) => `${series} ${market}`).values()
}

function dayOf(day: MarketDay) {
  const { date, knownNs, coveredNs, gaps, gapsLeftOut, lag } = day
  return {
    date,
    known_ns: Number(knownNs),
    covered_ns: Number(coveredNs),
    known_share_of_covered: share(knownNs, coveredNs),
    known_share_of_day: share(knownNs, NS_PER_DAY),
    gaps: gaps.map(({ from, to, cause }) => ({ from: instantText(from), to: instantText(to), cause })),
    gaps_left_out: gapsLeftOut,
    lag_ms:
      lag === undefined ? null : { p50: rounded(lag.p50Ms), p99: rounded(lag.p99Ms), messages: lag.messages },
    resets: day.resets,
    changes_without_book: day.changesWithoutBook,
  }
}

function share(part: bigint, whole: bigint): number | null {
  return whole === 0n ? null : Number((part * SHARE_PARTS) / whole) / Number(SHARE_PARTS)
}

function rounded(ms: number): number {
  return Number(ms.toFixed(MS_DIGITS))
}
