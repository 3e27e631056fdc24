// Where a dataset's file lies below the lake's root. Rule: contract.md 32.

import { join } from 'node:path'
import { lobSources } from './lob-sources.ts'
import type { LobSource } from './lob-sources.ts'
import { isSeriesName } from './series-name.ts'

/** The directory of one series' order-book files. */
export function lobSeriesDirectory(lake: string, source: LobSource, series: string): string {
  return join(lake, 'lob', `source=${source}`, `series=${series}`)
}

/** The directory that holds a source's series. */
export function lobSourceDirectory(lake: string, source: LobSource): string {
  return join(lake, 'lob', `source=${source}`)
}

/** The order-book file of one series and UTC date. */
export function lobFilePath(lake: string, source: LobSource, series: string, date: string): string {
  return join(lobSeriesDirectory(lake, source, series), `date=${date}.parquet`)
}

/** The UTC date of a lake file's name (`date=2026-07-01.parquet`), or `undefined` for any other name. */
export function dateOfLakeFileName(name: string): string | undefined {
  return /^date=(\d{4}-\d{2}-\d{2})\.parquet$/.exec(name)?.[1]
}

/** What an order-book file's key (its path below the lake, with forward slashes) names; `undefined` for any other key. */
export function lobFileOfKey(
  key: string,
): { readonly source: LobSource; readonly series: string; readonly date: string } | undefined {
  const [root, sourcePart, seriesPart, name, ...rest] = key.split('/')
  const source = lobSources().find((known) => sourcePart === `source=${known}`)
  const series = /^series=(.+)$/.exec(seriesPart ?? '')?.[1]
  const date = dateOfLakeFileName(name ?? '')
  if (root !== 'lob' || rest.length > 0 || source === undefined || date === undefined) return undefined
  return series === undefined || !isSeriesName(series) ? undefined : { source, series, date }
}

/** The datasets of records and how their files are cut: one per series and month, one per station and year (UTC). */
export const RECORD_PARTITIONS = {
  candles: { scope: 'series', period: 'month', periodPattern: /^month=(\d{4}-\d{2})\.parquet$/ },
  observations: { scope: 'station', period: 'year', periodPattern: /^year=(\d{4})\.parquet$/ },
} as const

export type RecordDataset = keyof typeof RECORD_PARTITIONS

/** The file of one period (`2026-07`, or `2026`) of a series or station, below the lake's root with forward slashes. */
export function recordFileName(dataset: RecordDataset, scope: string, period: string): string {
  const { scope: scopeName, period: periodName } = RECORD_PARTITIONS[dataset]
  return `${dataset}/${scopeName}=${scope}/${periodName}=${period}.parquet`
}

/** The instants of a month or year (`2026-07`, `2026`), the second one exclusive. */
export function periodInstants(period: string): { readonly fromMs: number; readonly toMs: number } {
  const [year = 0, month] = period.split('-').map(Number)
  return month === undefined
    ? { fromMs: Date.UTC(year, 0), toMs: Date.UTC(year + 1, 0) }
    : { fromMs: Date.UTC(year, month - 1), toMs: Date.UTC(year, month) }
}
