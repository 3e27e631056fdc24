// Three curl commands for data that the served lake really has, so that a new user sees rows at once. Finding them lists
// directories and reads one footer.

import { lobSources } from '../../shared/lob-sources.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { MS_PER_HOUR, NS_PER_MS, utcDateStartMs } from '../../shared/utc-date.ts'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { seriesDates } from '../lake/series-dates.ts'

// Temperature markets trade most in the American afternoon, so this UTC hour is the most likely to have data.
const BUSY_UTC_HOUR = 18

/** The latest date of the first series that has one. */
async function findLakeDay(lake: string) {
  for await (const { source, series, dates } of seriesDates(lake))
    return { source, series, date: dates.at(-1)! }
  return undefined
}

/** The hour and interval of ticks that the file has: the busy hour, or the last hour that the file covers. */
async function coveredTicks(path: string, date: string): Promise<string> {
  const coverage = (await lakeFileFacts(path).catch(() => undefined))?.coverage
  const hourOf = (ts: bigint): number =>
    Math.floor((Number(ts / NS_PER_MS) - (utcDateStartMs(date) ?? 0)) / MS_PER_HOUR)
  if (!coverage || (hourOf(coverage.fromTs) < BUSY_UTC_HOUR && hourOf(coverage.toTs) > BUSY_UTC_HOUR))
    return `hour=${BUSY_UTC_HOUR}&interval=300`
  return `hour=${Math.min(Math.max(hourOf(coverage.toTs), 0), 23)}&interval=60`
}

/**
 * Three command lines for which the server at `baseUrl` returns data; none if the lake has no order books yet.
 * @param needsKey whether the commands send the key in the shell variable `BOOKCAST_API_KEY`
 */
export async function exampleRequests(lake: string, baseUrl: string, needsKey: boolean): Promise<string[]> {
  const day = await findLakeDay(lake).catch(() => undefined)
  if (day === undefined) return []
  const { source, series, date } = day
  const ticks = await coveredTicks(lobFilePath(lake, source, series, date), date)
  const curl = needsKey ? 'curl -H "X-API-Key: $BOOKCAST_API_KEY"' : 'curl'
  const selection = source === lobSources()[0] ? `series=${series}` : `source=${source}&series=${series}`
  const url = `${baseUrl}/api/v1/lob?${selection}&date=${date}`
  return [
    `${curl} '${url}&${ticks}&levels=3'`,
    `${curl} '${url}&format=ndjson'`,
    `${curl} '${url}&format=parquet' --output ${series}_${date}.parquet`,
  ]
}
