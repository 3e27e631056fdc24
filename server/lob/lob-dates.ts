// The dates of a series or an event with order books, and what their files hold, from their names and footers alone.

import { stat } from 'node:fs/promises'
import { ApiError } from '../../shared/errors.ts'
import { isErrno } from '../../shared/errno.ts'
import { dateOfDirectoryName, lobFilePath, lobSeriesDirectory } from '../../shared/lake-layout.ts'
import { lobSourceNames, type LobSource } from '../../shared/lob-sources.ts'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { openFromDate } from '../lake/lake-versions.ts'
import { directoryNames } from '../lake/series-dates.ts'

export interface DatesAsked {
  readonly source: LobSource
  /** A series or an event. */
  readonly series: string
  /** UTC dates, both inclusive; undefined for no bound. */
  readonly from: string | undefined
  readonly to: string | undefined
  readonly limit: number
  readonly offset: number
}

/** One date with an order-book file. */
export interface LobDate {
  readonly date: string
  /** `open`: recordings may still be added. `invalid`: the file's footer cannot be read. */
  readonly state: 'closed' | 'open' | 'invalid'
  /** Bytes of the date's file, including markets that are not asked for; 0 if its size cannot be read. */
  readonly bytes: number
  /** Events in the file, of the event's markets alone if an event is named; null if the footer lists no markets. */
  readonly rows: number | null
}

export interface LobDates {
  readonly dates: readonly LobDate[]
  readonly hasMore: boolean
}

/** Ascending dates. @throws {ApiError} `unknown_series` if the lake has no file of the series or the event */
export async function lobDates(lake: string, asked: DatesAsked): Promise<LobDates> {
  const { source, series: name, from = '', to = '9999-12-31', limit, offset } = asked
  const own = await filesOf(lake, source, name)
  const isInRange = ({ date }: { readonly date: string }): boolean => from <= date && date <= to
  const page = { start: offset, end: offset + limit }
  if (own.length > 0) {
    const files = own.filter(isInRange)
    const found = await readDates(files.slice(page.start, page.end), '')
    return { dates: found, hasMore: files.length > page.end }
  }
  const all = await readDates(await filesOf(lake, source, lobSourceNames(source).seriesOf(name)), `${name}-`)
  if (all.length === 0)
    throw new ApiError('unknown_series', `The lake has no order books of ${source} series or event ${name}.`)
  const found = all.filter(isInRange)
  return { dates: found.slice(page.start, page.end), hasMore: found.length > page.end }
}

interface DateFile {
  readonly date: string
  readonly path: string
  readonly bytes: number
}

async function filesOf(lake: string, source: LobSource, series: string): Promise<DateFile[]> {
  const names = await directoryNames(lobSeriesDirectory(lake, source, series))
  const dates = names.map(dateOfDirectoryName).filter((date) => date !== undefined)
  const files = dates.map(async (date) => {
    const path = lobFilePath(lake, source, series, date)
    // A directory may exist without its file, or with something else in its place.
    const bytes = await stat(path).then(
      (info) => (info.isFile() ? info.size : undefined),
      (error: unknown) => (isErrno(error, 'ENOENT') || isErrno(error, 'ENOTDIR') ? undefined : 0),
    )
    return bytes === undefined ? [] : [{ date, path, bytes }]
  })
  return (await Promise.all(files)).flat()
}

/** The dates whose file has a market with such an id, or does not list its markets. */
async function readDates(files: readonly DateFile[], prefix: string): Promise<LobDate[]> {
  const openFrom = openFromDate()
  const found: LobDate[] = []
  for (const { date, path, bytes } of files) {
    const facts = await lakeFileFacts(path).catch(() => undefined)
    const markets = [...(facts?.coverage?.markets ?? [])].filter(([id]) => id.startsWith(prefix))
    if (markets.length === 0 && (facts?.coverage?.markets.size ?? 0) > 0) continue
    const state = facts === undefined ? 'invalid' : date >= openFrom ? 'open' : 'closed'
    const rows = facts?.coverage ? markets.reduce((sum, [, count]) => sum + count, 0) : null
    found.push({ date, state, bytes, rows })
  }
  return found
}
