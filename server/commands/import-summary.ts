// The summary that an import prints at its end: the files, and everything in the recording that is not in them.

import { relative } from 'node:path'
import type { WrittenLobFile } from '../lake/lob-publication.ts'
import type { MarketDay } from '../fold/fold-report.ts'
import type { SequenceTrust } from '../feed/feed-reading.ts'
import type { ImportResult } from '../import/recording-import.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { NS_PER_DAY, NS_PER_MS } from '../../shared/utc-date.ts'

/** The summary names at most this many market days; the JSON report has all. */
const DAYS_SHOWN_MAX = 10
/** The summary names a market day if a smaller share of its covered time is known. */
const NAMED_SHARE = 0.95
const WARNED_SHARE = 0.5
/** A market day counts as late if the median delay of its messages is larger. */
const LATE_MS = 5_000
/** Missing numbers indicate a filtered recording if there are at least this many holes and a tenth of the numbers is missing. */
const FILTER_HOLES_MIN = 3
const FILTER_PART = 10
/** The warnings about losses that go unnoticed without sequence numbers. */
const UNNOTICED: Readonly<Record<Exclude<SequenceTrust, 'strict'>, string>> = {
  'per-market':
    'with --sequence per-market, lost messages go unnoticed: after one, the lake shows a wrong book as known',
  ignore:
    'with --sequence ignore, lost messages and unmarked reconnects go unnoticed: after one, the lake shows a ' +
    'wrong book as known',
}

/** The settings of the import that the summary depends on. */
export interface SummarySettings {
  readonly lake: string
  readonly source: LobSource
  readonly sequence: SequenceTrust
}

/** The report as text, one fact per line. `elapsedMs` is the time of the whole import. */
export function importSummary(result: ImportResult, settings: SummarySettings, elapsedMs: number): string {
  const { lake } = settings
  const { tally, files, input } = result
  const seconds = elapsedMs / 1000
  const rate = Math.round(input.messages / Math.max(seconds, 0.001))
  const lines = [
    ...files.map((file) => fileLine(file, lake)),
    `${count(input.messages, 'message')}, ${count(tally.events, 'book event')} in ${seconds.toFixed(1)} s ` +
      `(${count(rate, 'message')}/s)`,
    segmentsText(result),
    ...(files.length > 0
      ? []
      : ['no order-book file: the lake has no order-book message of these dates yet']),
    ...[...tally.gaps].toSorted(byName).map(([reason, gaps]) => `${count(gaps, 'gap')}: ${reason}`),
    ...[...tally.skippedTypes]
      .toSorted(byName)
      .map(([type, n]) => `${count(n, 'message')} without book event: ${type}`),
    ...[...input.privateFrames]
      .toSorted(byName)
      .map(([type, n]) => `${count(n, 'private message')} left out: ${type}`),
    ...[...input.otherFrames].map(
      ([other, n]) =>
        `${count(n, 'message')} of ${other} left out: import the input with --source ${other}, too`,
    ),
    ...remark(tally.repeats, 'repeated message', 'counted once'),
    ...remark(tally.correctedTimes, 'message', 'with a wrong time, corrected by the messages around it'),
    ...remark(tally.negativeLevels, 'delta', 'below zero: the book is unknown until its next snapshot'),
    ...remark(tally.badTrades, 'trade', 'that cannot be read: left out of the trades file'),
    ...remark(tally.roundedPrices, 'trade', 'with a price finer than 1/10000 dollar, rounded'),
    ...lateLine(result.days),
    ...knownLines(result.days),
    ...adviceLines(result, settings),
    ...badLines(result),
    ...result.kept.map(
      (date) =>
        `${date} keeps its raw segments, since more may follow: remove them later with \`bookcast prune --keep-raw\``,
    ),
    ...result.sealed.map(
      (date) => `${date} is sealed: its raw segments are removed, and nothing can be added to it`,
    ),
  ]
  return `${lines.join('\n')}\n`
}

function segmentsText({ segments: { added, present } }: ImportResult): string {
  return `${count(added, 'raw segment')} added` + (present === 0 ? '' : `, ${grouped(present)} already there`)
}

function fileLine(file: WrittenLobFile, lake: string): string {
  return (
    `${file.status} ${relative(lake, file.path)}: ${count(file.rows, 'row')}, ` +
    `${count(file.markets, 'market')}, ${count(file.gaps, 'gap')}, ${timeText(file.coversFrom)} to ${timeText(file.coversTo)}`
  )
}

// A recorder's clock that is ahead cannot be distinguished from a slow connection.
function lateLine(days: readonly MarketDay[]): string[] {
  const late = days.flatMap(({ lag }) => (lag !== undefined && lag.p50Ms > LATE_MS ? [lag.p50Ms] : []))
  if (late.length === 0) return []
  return [
    `messages of ${count(late.length, 'market day')} were received more than ${LATE_MS / 1000} s after the exchange sent ` +
      `them, typically by up to ${Math.round(Math.max(...late) / 1000)} s: the recorder’s clock was ahead, or its ` +
      'connection was slow',
  ]
}

function knownLines(days: readonly MarketDay[]): string[] {
  if (days.length === 0) return []
  const known = days.reduce((sum, { knownNs }) => sum + knownNs, 0n)
  const covered = days.reduce((sum, { coveredNs }) => sum + coveredNs, 0n)
  const ofDays = shareText(known, NS_PER_DAY * BigInt(days.length))
  const doubtful = days.filter((day) => shareOf(day) < WARNED_SHARE).length
  const named = days
    .filter((day) => shareOf(day) < NAMED_SHARE)
    .toSorted((a, b) => shareOf(a) - shareOf(b) || (dayName(a) < dayName(b) ? -1 : 1))
  return [
    `known for ${shareText(known, covered)} of the covered time (${ofDays} of the day), over ` +
      count(days.length, 'market day'),
    ...(doubtful === 0
      ? []
      : [`warning: less than half of the covered time is known on ${count(doubtful, 'market day')}`]),
    ...named.slice(0, DAYS_SHOWN_MAX).map(dayLine),
    ...(named.length > DAYS_SHOWN_MAX
      ? [`  and ${count(named.length - DAYS_SHOWN_MAX, 'more market day')}; --report <file> lists all`]
      : []),
  ]
}

function dayLine(day: MarketDay): string {
  const { knownNs, coveredNs, gaps, gapsLeftOut, changesWithoutBook } = day
  const causes = new Map<string, number>()
  for (const { cause } of gaps) causes.set(cause, (causes.get(cause) ?? 0) + 1)
  const facts = [
    `${shareText(knownNs, coveredNs)} known`,
    ...[...causes].toSorted(byName).map(([cause, n]) => `${count(n, 'time')} unknown: ${cause}`),
    ...remark(gapsLeftOut, 'more time', 'unknown'),
    ...remark(changesWithoutBook, 'change', 'without a book'),
  ]
  return `  ${dayName(day)}: ${facts.join(', ')}`
}

function dayName({ market, date }: MarketDay): string {
  return `${market} ${date}`
}

function shareOf({ knownNs, coveredNs }: MarketDay): number {
  return coveredNs === 0n ? 0 : Number(knownNs) / Number(coveredNs)
}

// Rounded down, so that 100 % always means completely known.
function shareText(part: bigint, whole: bigint): string {
  const perTenThousand = whole === 0n ? 0n : (part * 10_000n) / whole
  return `${(Number(perTenThousand) / 100).toFixed(2)}%`
}

function adviceLines({ tally, days }: ImportResult, { sequence, source }: SummarySettings): string[] {
  const isAnythingKnown = days.some(({ knownNs }) => knownNs > 0n)
  const lines: string[] = []
  if (tally.snapshots === 0 && tally.events > 0 && !isAnythingKnown) {
    lines.push(
      `${count(tally.events, 'change')}, but no snapshot: the books stay unknown; record from the start of a subscription`,
    )
  }
  if (sequence !== 'strict' && exchangeOf(source).isNumbered && tally.events > 0)
    lines.push(UNNOTICED[sequence])
  const { numbers, holes } = tally.missing
  const all = tally.messages + numbers
  const looksFiltered = holes >= FILTER_HOLES_MIN && numbers * FILTER_PART > all
  // If other files fill the holes of one file, no book becomes unknown because of them.
  const isFelt = (tally.gaps.get('sequence gap') ?? 0) > 0 || !isAnythingKnown
  if (sequence === 'strict' && looksFiltered && isFelt) {
    lines.push(
      `${grouped(numbers)} of ${grouped(all)} sequence numbers are missing, ` +
        `in ${count(holes, 'hole')}: if the recording holds only some markets of a connection, import it with --sequence per-market`,
    )
  }
  return lines
}

function badLines(result: ImportResult): string[] {
  return result.badLines.flatMap(({ input, count: skipped, first }) => [
    `${count(skipped, 'bad line')} of ${input} skipped, the first of them:`,
    ...first.map((text) => `  ${text}`),
  ])
}

function remark(n: number, noun: string, text: string): string[] {
  return n === 0 ? [] : [`${count(n, noun)} ${text}`]
}

function timeText(ns: bigint): string {
  return new Date(Number(ns / NS_PER_MS)).toISOString()
}

function count(n: number, noun: string): string {
  return `${grouped(n)} ${noun}${n === 1 ? '' : 's'}`
}

/** With commas between thousands; loading the locale data of `toLocaleString` takes 25 ms. */
function grouped(n: number): string {
  return String(n).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
}

function byName([a]: readonly [string, number], [b]: readonly [string, number]): number {
  return a < b ? -1 : 1
}
