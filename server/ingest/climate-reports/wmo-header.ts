// The first lines of an NWS text product: WMO header, product line and local issue line, and their instants. The header has day,
// hour and minute only; month and year come from the local issue line.

import { MS_PER_HOUR, MS_PER_MINUTE, utcDateStartMs } from '../../../shared/utc-date.ts'

export type WmoHeader = NonNullable<ReturnType<typeof readHeader>>

// A sequence line and an occasional blank line may stand before the header, never more.
const HEADER_LINES_MAX = 10
const HEADER =
  /^(?<ttaaii>[A-Z]{4}\d{0,2}) (?<office>[A-Z]{4}) (?<day>\d\d)(?<hour>\d\d)(?<minute>\d\d)(?: (?<bbb>[A-Z]{3}))?$/
const PIL = /^[A-Z][A-Z0-9]{3,5}$/
const ISSUE =
  /^(?<hour>\d{1,2}):?(?<minute>\d\d) (?<half>[AP])M (?<zone>[A-Z]{3,4}) [A-Z]{3} (?<month>[A-Z]{3}) (?<day>\d{1,2}) (?<year>\d{4})$/

const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ')

// AST is Atlantic time. An Alaskan office used it for −9 in 2006; the header's own time makes that harmless.
const ZONE_HOURS = new Map([
  ['AST', -4],
  ['EDT', -4],
  ['EST', -5],
  ['CDT', -5],
  ['CST', -6],
  ['MDT', -6],
  ['MST', -7],
  ['PDT', -7],
  ['PST', -8],
  ['AKDT', -8],
  ['AKST', -9],
  ['HST', -10],
  ['SST', -11],
  ['CHST', 10],
  ['GMT', 0],
  ['UTC', 0],
])

/** Reads the header of a product's upper-case lines; undefined when there is none. */
export function readHeader(lines: readonly string[]) {
  const headIndex = lines.findIndex((line, index) => index < HEADER_LINES_MAX && HEADER.test(collapse(line)))
  const fields = HEADER.exec(collapse(lines[headIndex] ?? ''))?.groups
  const pilIndex = lines.findIndex((line, index) => index > headIndex && line.trim() !== '')
  const pil = lines[pilIndex]?.trim() ?? ''
  if (fields === undefined || !PIL.test(pil)) return undefined
  const [day, hour, minute] = [Number(fields['day']), Number(fields['hour']), Number(fields['minute'])]
  if (day < 1 || day > 31 || hour > 23 || minute > 59) return undefined
  return {
    // Data designator, for example `CDUS41`. Some offices send four letters; the two digits missing are zeros by convention.
    ttaaii: (fields['ttaaii'] ?? '').padEnd(6, '0'),
    /** Issuing office, for example `KOKX`. */
    office: fields['office'] ?? '',
    day,
    hour,
    minute,
    /** `CCA` (correction), `RRA` (retransmission) and so on, or null. */
    bbb: fields['bbb'] ?? null,
    /** Product line, for example `CLINYC`, and its index. */
    pil,
    pilIndex,
  }
}

/** Reads a local issue line, for example `242 AM EDT SUN AUG 30 2026`; undefined when the line is another one or states a time that does not exist. */
export function readIssueLine(line: string) {
  const fields = ISSUE.exec(collapse(line))?.groups
  if (fields === undefined) return undefined
  const [hour12, minute] = [Number(fields['hour']), Number(fields['minute'])]
  const date = calendarDate(fields['year'] ?? '', fields['month'] ?? '', fields['day'] ?? '')
  if (date === undefined || hour12 < 1 || hour12 > 12 || minute > 59) return undefined
  const hour = (hour12 % 12) + (fields['half'] === 'P' ? 12 : 0)
  /** Daylight saving included; undefined when the zone is not known. */
  const zoneHours = ZONE_HOURS.get(fields['zone'] ?? '')
  const localMs = Date.parse(`${date}T00:00:00Z`) + hour * MS_PER_HOUR + minute * MS_PER_MINUTE
  /** The instant by the line's zone; by UTC when the zone is not known. */
  return { instantMs: localMs - (zoneHours ?? 0) * MS_PER_HOUR, zoneHours }
}

/**
 * The header's instant in the month that brings it nearest to `nearMs`, in milliseconds. Undefined if none of the three months
 * around has the header's day, which takes a day 30 or 31 and a distant `nearMs`.
 */
export function headerInstantMs(header: WmoHeader, nearMs: number): number | undefined {
  const near = new Date(nearMs)
  let best: number | undefined
  for (const months of [-1, 0, 1]) {
    const instant = new Date(
      Date.UTC(near.getUTCFullYear(), near.getUTCMonth() + months, header.day, header.hour, header.minute),
    )
    if (instant.getUTCDate() !== header.day) continue
    if (best === undefined || Math.abs(instant.getTime() - nearMs) < Math.abs(best - nearMs)) {
      best = instant.getTime()
    }
  }
  return best
}

/** `YYYYMMDDHHMM-office-ttaaii-pil[-bbb]`, the form the IEM gives its product ids. */
export function productIdOf(header: WmoHeader, instantMs: number): string {
  const time = new Date(instantMs).toISOString().replaceAll(/[-:T]/g, '').slice(0, 12)
  const parts = [time, header.office, header.ttaaii, header.pil]
  return (header.bbb === null ? parts : [...parts, header.bbb]).join('-')
}

/** `YYYY-MM-DD` of a year, a month name (three letters or more) and a day; undefined when there is no such date. */
export function calendarDate(year: string, monthName: string, day: string): string | undefined {
  const month = MONTHS.indexOf(monthName.slice(0, 3)) + 1
  if (month === 0) return undefined
  const date = `${year}-${String(month).padStart(2, '0')}-${day.padStart(2, '0')}`
  return utcDateStartMs(date) === undefined ? undefined : date
}

/** Collapses blanks to one, because the parsers compare words, not columns. */
export function collapse(line: string): string {
  return line.trim().replaceAll(/\s+/g, ' ')
}
