// The text of NWS daily climate reports (CLI products) → what each report says. Pure; it never throws, but returns a sentence for what
// cannot be read, beside the reports. The kind comes from the text, not from the time stamp, because Western preliminary reports carry
// the next day's UTC date. Stations, sources and the comparison with earlier reports: station-reports.ts.

import { addDays, MS_PER_HOUR } from '../../../shared/utc-date.ts'
import type { ClimateReportRow } from '../../storage/climate-store.ts'
import { type ProductText, splitProducts } from './product-text.ts'
import { readTemperatureBlock } from './temperature-block.ts'
import {
  calendarDate,
  collapse,
  headerInstantMs,
  productIdOf,
  readHeader,
  readIssueLine,
  type WmoHeader,
} from './wmo-header.ts'

/** Characters of one climate report; the longest real one (six stations) has 26,363. */
const CLI_PRODUCT_CHARACTERS_MAX = 256 * 1024
/** Days a climate report may come after its date. A longer delay means a wrong year. */
const CLI_LATENESS_DAYS_MAX = 180

/**
 * What one product says about one station. `report_type` is `preliminary` or `final`. `is_correction`: header, title or headline call
 * it a correction; a preliminary report can be one too.
 */
export interface ClimateReport extends Omit<ClimateReportRow, 'station_code' | 'source'> {
  readonly pil: string
  /** The name in the report's headline, for example `CENTRAL PARK NY`. */
  readonly stationName: string
}

export interface ParsedClimateText {
  /** In the order of the text. */
  readonly reports: readonly ClimateReport[]
  /** What cannot be read: the product (its id or, without a readable header, its ordinal in the text), the line in it, from 1, and why. */
  readonly errors: readonly string[]
}

/** A product with its header read; `fail` makes an error of it. */
type Product = Exclude<ReturnType<typeof readProduct>, string>
type Headline = Exclude<ReturnType<typeof headlineOf>, string>

const CLIMATE_PIL = /^CLI[A-Z0-9]{1,3}$/
const TEST_LINE = /^\W*TEST\b|\bTHIS IS (?:ONLY )?A TEST\b|\bTEST (?:MESSAGE|PRODUCT|ONLY)\b/
const CORRECTION_BBB = /^(?:CC[A-Z]|COR)$/
const CORRECTION_TITLE = /\bCORRECT(?:ED|ION)\b/
const HEADLINE =
  /^\.*\s?(?:THE )?(?<name>(?:(?!\.\.).){1,80}?) CLIMATE SUMMARY (?:FOR|FROM|OF) (?<month>[A-Z]{3,9})\.? (?<day>\d{1,2}),? (?<year>\d{4})(?<tail>.{0,40})/
const VALID_AS_OF = /^VALID (?:[A-Z]+ )?AS OF \d{1,2}:?\d\d ?[AP]\.?M\b/

/** No local standard time is further from UTC. */
const UTC_OFFSET_MS_MAX = 14 * MS_PER_HOUR

/** Reads one product, or many that are wrapped in SOH … ETX. */
export function parseClimateText(text: string): ParsedClimateText {
  const reports: ClimateReport[] = []
  const errors: string[] = []
  for (const productText of splitProducts(text)) {
    const product = readProduct(productText)
    for (const result of typeof product === 'string' ? [product] : readReports(product)) {
      if (typeof result === 'string') errors.push(result)
      else reports.push(result)
    }
  }
  return { reports, errors }
}

function readProduct({ ordinal, lines, characters, isWhole }: ProductText) {
  const ordinalName = `#${ordinal}`
  if (characters > CLI_PRODUCT_CHARACTERS_MAX) {
    const detail = `${characters} characters, at most ${CLI_PRODUCT_CHARACTERS_MAX} are read`
    return problem(ordinalName, 0, detail)
  }
  const header = readHeader(lines)
  if (header === undefined) {
    const first = lines.findIndex((line) => line.trim() !== '')
    const detail = `no WMO header and product line: ${quote(lines[first] ?? '')}`
    return problem(ordinalName, Math.max(first, 0), detail)
  }
  const name = `${header.pil} ${header.office} ${pad2(header.day)}${pad2(header.hour)}${pad2(header.minute)}`
  const fail = (lineIndex: number, detail: string): string => problem(name, lineIndex, detail)
  if (!isWhole) return fail(lines.length - 1, 'the product is cut off')
  if (!CLIMATE_PIL.test(header.pil)) {
    return fail(header.pilIndex, `${header.pil} is no daily climate report`)
  }
  const head = headOf(lines, header)
  const testIndex = head.findIndex((line) => TEST_LINE.test(line))
  if (testIndex >= 0) {
    return fail(header.pilIndex + 1 + testIndex, `a test: ${quote(head[testIndex] ?? '')}`)
  }
  return {
    lines,
    header,
    issueLine: head.map((line) => readIssueLine(line)).find((line) => line !== undefined),
    isCorrection: CORRECTION_BBB.test(header.bbb ?? '') || head.some((line) => CORRECTION_TITLE.test(line)),
    fail,
  }
}

function problem(product: string, lineIndex: number, detail: string): string {
  return `climate report ${product}, line ${lineIndex + 1}: ${detail}`
}

/** The lines between product line and first headline: title, office, issue time. */
function headOf(lines: readonly string[], header: WmoHeader): readonly string[] {
  const headline = lines.findIndex((line) => line.includes('CLIMATE SUMMARY'))
  return lines.slice(header.pilIndex + 1, headline < 0 ? undefined : headline)
}

function readReports(product: Product): (ClimateReport | string)[] {
  const headlines = readHeadlines(product)
  if (headlines.length === 0) {
    return [product.fail(product.header.pilIndex, 'no climate summary headline')]
  }
  return headlines.map(({ index, headline }, i) =>
    typeof headline === 'string'
      ? product.fail(index, headline)
      : readReport(product, headline, index, product.lines.slice(index, headlines[i + 1]?.index)),
  )
}

/** Every line that carries a headline, which may run on into the next line. The headline, or why it cannot be read. */
function readHeadlines({ lines, header }: Product) {
  const headlines: { readonly index: number; readonly headline: Headline | string }[] = []
  let taken = header.pilIndex
  lines.forEach((line, index) => {
    const joined = collapse(`${line} ${lines[index + 1] ?? ''}`)
    const position = joined.indexOf('CLIMATE SUMMARY')
    // A match that lies wholly in the next line belongs to that line.
    if (index <= taken || position < 0 || position >= collapse(line).length) return
    const beginsAbove = !line.trim().startsWith('..') && /^\s*\.{2,}\s*\S/.test(lines[index - 1] ?? '')
    const text = beginsAbove ? collapse(`${lines[index - 1]} ${joined}`) : joined
    const fields = HEADLINE.exec(text)?.groups
    taken = index
    headlines.push({ index, headline: headlineOf(fields, line) })
  })
  return headlines
}

function headlineOf(fields: Readonly<Record<string, string>> | undefined, line: string) {
  if (fields === undefined) return `unreadable headline ${quote(line)}`
  const climateDate = calendarDate(fields['year'] ?? '', fields['month'] ?? '', fields['day'] ?? '')
  if (climateDate === undefined) return `no such date in ${quote(line)}`
  const isCorrection = /^\W{0,3}CORRECT(?:ION|ED)\b/.test(fields['tail'] ?? '')
  return { stationName: fields['name'] ?? '', climateDate, isCorrection }
}

function readReport(
  product: Product,
  headline: Headline,
  start: number,
  lines: readonly string[],
): ClimateReport | string {
  const failAt = (index: number, detail: string): string => product.fail(start + index, detail)
  const time = issueTime(product, headline.climateDate)
  if (time === undefined) return failAt(0, `${headline.climateDate} does not fit the issue time`)
  const block = readTemperatureBlock(lines)
  if (block.detail !== undefined) return failAt(block.index, `${headline.stationName}: ${block.detail}`)
  const hasValidAsOf = lines.some((line) => VALID_AS_OF.test(collapse(line)))
  if (!hasValidAsOf && block.label === undefined) {
    return failAt(block.index, 'neither TODAY, YESTERDAY nor VALID AS OF')
  }
  const type = !hasValidAsOf && block.label === 'YESTERDAY' ? 'final' : 'preliminary'
  if (type === 'final' && time.issuedMs < dayEndMs(product, headline.climateDate)) {
    return failAt(0, `a final report of ${headline.climateDate}, which was not over`)
  }
  return {
    pil: product.header.pil,
    stationName: headline.stationName,
    observation_date: headline.climateDate,
    high_temp_f: block.highTempF,
    low_temp_f: block.lowTempF,
    report_type: type,
    is_correction: product.isCorrection || headline.isCorrection,
    product_id: time.productId,
    issued_at: time.issuedMs,
  }
}

/** The date's midnight on the office's clock; in the easternmost zone if the office's zone is unknown. */
function dayEndMs({ issueLine }: Product, climateDate: string): number {
  const offsetMs = issueLine?.zoneHours === undefined ? UTC_OFFSET_MS_MAX : issueLine.zoneHours * MS_PER_HOUR
  return Date.parse(`${addDays(climateDate, 1)}T00:00:00Z`) - offsetMs
}

/**
 * The product's id and issue time. Month and year are those that bring the WMO header nearest to the local issue line; without such
 * a line, the first that follow the start of the climate date. The WMO time is the issue time, unless it is before the climate
 * date: hand-typed headers can be wrong (Pago Pago, 2020-12-28, six days early). Then the local line counts. Undefined if neither
 * fits, or if the report is later than reports are.
 */
function issueTime(
  { header, issueLine }: Product,
  climateDate: string,
): { issuedMs: number; productId: string } | undefined {
  const earliestMs = Date.parse(`${climateDate}T00:00:00Z`) - UTC_OFFSET_MS_MAX
  const latestMs = Date.parse(`${addDays(climateDate, CLI_LATENESS_DAYS_MAX)}T00:00:00Z`)
  const fits = (ms: number): boolean => ms >= earliestMs && ms <= latestMs
  // Half a month after the start: the nearest matching day is then the first one after the start.
  const anchorMs = issueLine?.instantMs ?? earliestMs + 15 * 24 * MS_PER_HOUR
  const wmoMs = headerInstantMs(header, anchorMs)
  if (wmoMs === undefined) return undefined
  const productId = productIdOf(header, wmoMs)
  if (fits(wmoMs)) return { issuedMs: wmoMs, productId }
  if (issueLine?.zoneHours === undefined || !fits(issueLine.instantMs)) return undefined
  return { issuedMs: issueLine.instantMs, productId }
}

function pad2(value: number): string {
  return String(value).padStart(2, '0')
}

function quote(line: string): string {
  return JSON.stringify(collapse(line).slice(0, 80))
}
