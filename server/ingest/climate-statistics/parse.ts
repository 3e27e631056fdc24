// Responses of the regional climate centers' web service (ACIS StnData) → daily maximum and minimum. Values are strings with flags.
// Anything that is not one day's value of the requested station becomes null or an error, never a number.

import { isJsonObject, type JsonObject } from '../../../shared/parsed-json.ts'
import { utcDateStartMs } from '../../../shared/utc-date.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'

/** One day, degrees F; null if the service has no value for that day alone. */
export interface DailyExtremes {
  readonly date: string
  readonly maxTempF: number | null
  readonly minTempF: number | null
}

export interface StationRange {
  /** The requested station identifier, for example `KNYC`. */
  readonly sid: string
  /** First and last date, both included. */
  readonly from: string
  readonly to: string
}

/** No air temperature is outside this range; some services write 999 for a missing value. */
const TEMP_F_ABS_MAX = 150
const NUMBER = /^-?\d{1,3}(?:\.\d+)?$/
/**
 * M: missing. S: contained in a later day's value. A behind a number: accumulated over several days, so a maximum of
 * more than this one. T: trace, which only precipitation can have.
 */
const NO_VALUE = /^(?:M|S|T|-?\d{1,3}(?:\.\d+)?A)$/

/**
 * Reads a response for the elements maxt and mint with `meta: sids`. Throws `UpstreamError` under the given name, also if no row can
 * be read.
 */
export function parseDailyExtremes(answer: JsonObject, range: StationRange, upstream: string) {
  const malformed = (detail: string): UpstreamError => new UpstreamError(upstream, 'malformed', detail)
  const { error, meta, data } = answer
  // Refusals come with status 200 too.
  if (error !== undefined) {
    throw new UpstreamError(upstream, 'rejected', `${range.sid}: ${JSON.stringify(error).slice(0, 200)}`)
  }
  const { sids } = isJsonObject(meta) ? meta : {}
  if (!Array.isArray(sids) || !sids.some((sid) => String(sid).split(' ')[0] === range.sid)) {
    throw malformed(`the answer is not of station ${range.sid}`)
  }
  if (!Array.isArray(data)) throw malformed('the answer has no data')
  let previous = ''
  /** In date order, possibly fewer than requested. */
  const days: DailyExtremes[] = []
  /** One for each row that cannot be read and is left out. */
  const problems: string[] = []
  for (const row of data as unknown[]) {
    const [date, max, min] = Array.isArray(row) && row.length === 3 ? (row as unknown[]) : []
    if (typeof date !== 'string' || utcDateStartMs(date) === undefined) {
      problems.push(`a row cannot be read: ${quote(row)}`)
      continue
    }
    if (date <= previous || date < range.from || date > range.to) {
      throw malformed(`${date} is out of order or not in ${range.from} to ${range.to}`)
    }
    previous = date
    const [maxTempF, minTempF] = [readValue(max), readValue(min)]
    if (maxTempF === undefined || minTempF === undefined) problems.push(`unknown value in ${quote(row)}`)
    else days.push({ date, maxTempF, minTempF })
  }
  if (days.length === 0 && problems[0] !== undefined) throw malformed(problems[0])
  return { days, problems }
}

/** Undefined if the value has no known form. */
function readValue(value: unknown): number | null | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  if (NO_VALUE.test(text)) return null
  return NUMBER.test(text) && Math.abs(Number(text)) <= TEMP_F_ABS_MAX ? Number(text) : undefined
}

function quote(value: unknown): string {
  return JSON.stringify(value).slice(0, 80)
}
