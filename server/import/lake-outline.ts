// What the lake holds of a series that a recording is merged into: its files' strands as spans beside the recording's
// own, and what only the ledger tells of.

import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MS_PER_HOUR, addDays, utcDateOf } from '../../shared/utc-date.ts'
import type { FeedSpans } from '../feed/feed-spans.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import type { StatedStrand } from '../lake/lob-evidence.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import type { FeedLedger } from './feed-ledger.ts'
import { OpaqueFileError, lakeDates } from './lake-dates.ts'
import { outlineOfFile } from './lake-records.ts'
import type { LakeFile } from './lake-records.ts'
import { NO_MARKETS, datesOf, isSilent } from './series-spans.ts'
import type { SeriesSpan } from './series-spans.ts'
import { dateOfKey, linkSpans } from './span-links.ts'
import { lastSpanOf, strandParts } from './strand-parts.ts'
import type { OutlinedFile } from './strand-parts.ts'

export interface LakeMergeOptions {
  readonly lake: string
  readonly source: LobSource
  readonly spans: FeedSpans
  /** Dates for which the recording has events are written from it alone. */
  readonly replace: boolean
  /** What earlier imports have heard, of all series. */
  readonly ledger: FeedLedger
  /** Files of the series that lie elsewhere, of one date: they are merged into the lake's. */
  readonly others?: readonly LakeFile[]
}

/** A date's file in the lake, or one of `others`, and where its strands stand among the spans. */
export interface LakeDate extends OutlinedFile {
  /** By strand of the file: its parts' spans, in feed order. */
  readonly parts: readonly (readonly number[])[]
  isLoaded: boolean
}

export interface LakeOutline {
  readonly dates: ReadonlyMap<string, LakeDate>
  readonly others: readonly LakeDate[]
  /** Dates in the lake whose files keep no evidence. */
  readonly opaque: readonly string[]
}

/** Outlines what the lake holds from the recording's first date on, and adds its spans to `spans`, linked with them. */
export async function outlineLake(
  options: LakeMergeOptions,
  recording: SeriesRecording,
  spans: SeriesSpan[],
): Promise<LakeOutline> {
  const { lake, source, replace, ledger, others: otherFiles = [] } = options
  const { series } = recording
  const dates = new Map<string, LakeDate>()
  const others: LakeDate[] = []
  const opaque: string[] = []
  const first = datesOf(options.spans)[0] ?? otherFiles[0]?.date
  if (first === undefined) return { dates, others, opaque }
  // Files say themselves what they begin with: only a recording may go on with the date before.
  const firstRead = options.others === undefined ? addDays(first, -1) : first
  const files = lakeDates(lake, source, series)
    .filter((date) => date >= firstRead && !(replace && hasEvents(recording, date)))
    .map((date): LakeFile => ({ date, path: lobFilePath(lake, source, series, date) }))
  const outlines: OutlinedFile[] = []
  for (const { date, path } of [...files, ...otherFiles]) {
    const outline = await outlineOfFile(path)
    if (outline === undefined) opaque.push(date)
    else outlines.push({ date, path, outline })
  }
  for (const file of outlines) {
    const parts = file.outline.strands.map((strand) => addSpans(spans, strand, file, options))
    const lakeDate = { ...file, parts, isLoaded: false }
    if (otherFiles.some(({ path }) => path === file.path)) others.push(lakeDate)
    else dates.set(file.date, lakeDate)
  }
  // What is replaced proves nothing of what replaces it, and what is gone nothing of what comes behind it.
  const forgotten = ledger.goneDates(series, (date) => dates.has(date))
  if (replace) for (const date of datesWithEvents(recording)) forgotten.add(date)
  const hasFile = (date: string): boolean => dates.has(date) || forgotten.has(date)
  for (const span of ledger.spansFor(series, first, hasFile))
    spans.push({ ...span, ownIds: NO_MARKETS, fromTs: undefined })
  forgetDates(forgotten, series, spans, ledger)
  linkSpans(spans)
  return { dates, others, opaque }
}

/** Adds a strand's parts and returns their numbers. */
function addSpans(
  spans: SeriesSpan[],
  strand: StatedStrand & FeedSpan,
  file: OutlinedFile,
  { ledger, others, spans: read }: LakeMergeOptions,
): number[] {
  const heard = ledger.partsOf(file.date, strand)
  // That it went on in silence follows from what it is put together of.
  const isHeardOf = heard.length > 0 || others !== undefined
  const before = !isHeardOf && isSilent(strand) ? lastSpanOf(spans, strand) : undefined
  if (before !== undefined) return [before]
  return strandParts(strand, heard, file, ledger.endsWith(read)).map((part) => spans.push(part) - 1)
}

/** @throws {OpaqueFileError} where the recording has events of a date whose file keeps no evidence */
export function refuseOpaque(
  { opaque }: LakeOutline,
  touched: readonly string[],
  { lake, source, replace }: LakeMergeOptions,
  recording: SeriesRecording,
): void {
  const inTheWay = opaque.filter((date) => touched.includes(date) && hasEvents(recording, date))
  if (inTheWay.length === 0 || replace) return
  throw new OpaqueFileError(inTheWay.map((date) => lobFilePath(lake, source, recording.series, date)))
}

// What begins as a span that is forgotten has its name: what followed that one does not therefore follow it.
function forgetDates(
  dates: ReadonlySet<string>,
  series: string,
  spans: SeriesSpan[],
  ledger: FeedLedger,
): void {
  for (const date of dates) ledger.forget(series, date)
  for (const [number, span] of spans.entries()) {
    const isBehindForgotten = span.previousKey !== undefined && dates.has(dateOfKey(span.previousKey))
    if (isBehindForgotten) spans[number] = { ...span, previousKey: undefined }
  }
}

function datesWithEvents({ hours }: SeriesRecording): Set<string> {
  return new Set([...hours.keys()].map((hour) => utcDateOf(hour * MS_PER_HOUR)))
}

function hasEvents({ hours }: SeriesRecording, date: string): boolean {
  const first = Date.parse(`${date}T00:00:00Z`) / MS_PER_HOUR
  for (const hour of hours.keys()) if (hour >= first && hour < first + 24) return true
  return false
}
