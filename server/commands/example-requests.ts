// Three curl lines for what the served lake really holds, so that a new user sees an answer at once. Only directories
// are listed: no file is opened.

import { readdir } from 'node:fs/promises'
import { lobSources, type LobSource } from '../../shared/lob-sources.ts'
import { seriesDates } from '../lake/series-dates.ts'

// Temperature markets trade busily in the American afternoon: this UTC hour is the likeliest to hold something.
const BUSY_UTC_HOUR = 18

interface LakeDay {
  readonly source: LobSource
  readonly series: string
  readonly date: string
}

/** The names in a directory, sorted; none when it does not exist. */
async function listNames(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).toSorted()
  } catch {
    return []
  }
}

/** The latest date of the first series that has one. */
async function findLakeDay(lake: string): Promise<LakeDay | undefined> {
  for await (const { source, series, dates } of seriesDates(lake, listNames))
    return { source, series, date: dates.at(-1)! }
  return undefined
}

/** Three command lines that the server at `baseUrl` answers with data, or none when the lake has no order books yet. */
export async function exampleRequests(lake: string, baseUrl: string): Promise<string[]> {
  const day = await findLakeDay(lake)
  if (day === undefined) return []
  const { source, series, date } = day
  const selection = source === lobSources()[0] ? `series=${series}` : `source=${source}&series=${series}`
  const url = `${baseUrl}/api/v1/lob?${selection}&date=${date}`
  return [
    `curl '${url}&hour=${BUSY_UTC_HOUR}&interval=300&levels=3'`,
    `curl '${url}&format=ndjson'`,
    `curl '${url}&format=parquet' --output ${series}_${date}.parquet`,
  ]
}
