// The paths of the lake's files. Each partition is a directory (`date=2026-07-01/lob.parquet`), because other engines take
// partitions only from directory names. Rule: contract.md 32.

import { join } from 'node:path'
import { lobSources } from './lob-sources.ts'
import type { LobSource } from './lob-sources.ts'
import { isSeriesName } from './series-name.ts'
import { utcDateStartMs } from './utc-date.ts'

/** The datasets that are derived from raw segments: a file for each source, series and UTC date. */
export const DERIVED_DATASETS = ['lob', 'trades'] as const

export type DerivedDataset = (typeof DERIVED_DATASETS)[number]

/** The directory that holds the series of a source. */
export function derivedSourceDirectory(lake: string, dataset: DerivedDataset, source: LobSource): string {
  return join(lake, dataset, `source=${source}`)
}

/** The key of a derived file: its path below the lake, with forward slashes. */
export function derivedKey(dataset: DerivedDataset, source: LobSource, series: string, date: string): string {
  return `${dataset}/source=${source}/series=${series}/date=${date}/${dataset}.parquet`
}

/** The directory of one series' order-book files. */
export function lobSeriesDirectory(lake: string, source: LobSource, series: string): string {
  return join(lobSourceDirectory(lake, source), `series=${series}`)
}

/** The directory that holds a source's series. */
export function lobSourceDirectory(lake: string, source: LobSource): string {
  return derivedSourceDirectory(lake, 'lob', source)
}

/** The order-book file of one series and UTC date. */
export function lobFilePath(lake: string, source: LobSource, series: string, date: string): string {
  return join(lake, lobKey(source, series, date))
}

/** The key of the order-book file of one series and UTC date. */
export function lobKey(source: LobSource, series: string, date: string): string {
  return derivedKey('lob', source, series, date)
}

/** The directory that holds a source's trades, one directory per series. */
export function tradesSourceDirectory(lake: string, source: LobSource): string {
  return derivedSourceDirectory(lake, 'trades', source)
}

/** The key of the trades file of one series and UTC date. */
export function tradesKey(source: LobSource, series: string, date: string): string {
  return derivedKey('trades', source, series, date)
}

/** The UTC date of a directory of a lake (`date=2026-07-01`), or `undefined` for any other name. */
export function dateOfDirectoryName(name: string): string | undefined {
  const date = /^date=(\d{4}-\d{2}-\d{2})$/.exec(name)?.[1]
  return date === undefined || utcDateStartMs(date) === undefined ? undefined : date
}

export interface DerivedFile {
  readonly dataset: DerivedDataset
  readonly source: LobSource
  readonly series: string
  readonly date: string
}

/** Parses the key of a derived file; `undefined` for any other key. */
export function derivedFileOfKey(key: string): DerivedFile | undefined {
  const [root, sourcePart, seriesPart, datePart = ''] = key.split('/')
  const dataset = DERIVED_DATASETS.find((known) => root === known)
  const source = lobSources().find((known) => sourcePart === `source=${known}`)
  const series = /^series=(.+)$/.exec(seriesPart ?? '')?.[1]
  const date = dateOfDirectoryName(datePart)
  if (dataset === undefined || source === undefined || series === undefined || date === undefined)
    return undefined
  if (!isSeriesName(series) || key !== derivedKey(dataset, source, series, date)) return undefined
  return { dataset, source, series, date }
}

/** Parses the key of an order-book file; `undefined` for any other key. */
export function lobFileOfKey(key: string): DerivedFile | undefined {
  const file = derivedFileOfKey(key)
  return file?.dataset === 'lob' ? file : undefined
}

/** The directory that holds a source's raw segments, one directory per date. */
export function rawSourceDirectory(lake: string, source: LobSource): string {
  return join(lake, 'raw', `source=${source}`)
}

/** The directory of the raw segments of one UTC date, and of their manifest. */
export function rawDateDirectory(lake: string, source: LobSource, date: string): string {
  return join(rawSourceDirectory(lake, source), `date=${date}`)
}

/** The file name of a date's manifest. */
export const RAW_MANIFEST_NAME = 'manifest.json'

/** The parts of a raw segment's name. */
export interface RawSegmentName {
  /** The origin of the messages: a recorder's name, `import` or `rest`. */
  readonly recorder: string
  /** The UTC hour, 0 to 23. */
  readonly hour: number
  /** The first 32 hexadecimal digits of the SHA-256 of the uncompressed lines. */
  readonly digest: string
}

const RECORDER_NAME = /^[a-z0-9]{1,24}$/
const SEGMENT_NAME = /^([a-z0-9]{1,24})-([01]\d|2[0-3])-([0-9a-f]{32})\.ndjson\.gz$/

/** Stands in place of a recorder in the names of imported segments. */
export const IMPORTED = 'import'
/** Stands in place of a recorder in the names of segments with rows from REST. */
export const FETCHED = 'rest'

/** Whether a recorder wrote the segment, hour by hour. */
export function isOfRecorder({ recorder }: RawSegmentName): boolean {
  return recorder !== IMPORTED && recorder !== FETCHED
}

/** Whether the text is a valid recorder name. */
export function isRecorderName(text: string): boolean {
  return RECORDER_NAME.test(text)
}

/** The file name of a raw segment. */
export function rawSegmentName({ recorder, hour, digest }: RawSegmentName): string {
  return `${recorder}-${String(hour).padStart(2, '0')}-${digest}.ndjson.gz`
}

/** Parses the file name of a raw segment; `undefined` for any other name. */
export function rawSegmentOfName(name: string): RawSegmentName | undefined {
  const [, recorder, hour, digest] = SEGMENT_NAME.exec(name) ?? []
  if (recorder === undefined || hour === undefined || digest === undefined) return undefined
  return { recorder, hour: Number(hour), digest }
}

/** The parts of a raw file's key. */
export interface RawFile {
  readonly source: LobSource
  readonly date: string
  readonly name: string
  /** `undefined` for the date's manifest. */
  readonly segment: RawSegmentName | undefined
}

/** Parses the key of a raw file (its path below the lake, with forward slashes); `undefined` for any other key. */
export function rawFileOfKey(key: string): RawFile | undefined {
  const [root, sourcePart, datePart, name = '', ...rest] = key.split('/')
  const source = lobSources().find((known) => sourcePart === `source=${known}`)
  const date = dateOfDirectoryName(datePart ?? '')
  if (root !== 'raw' || rest.length > 0 || source === undefined || date === undefined) return undefined
  const segment = rawSegmentOfName(name)
  return segment === undefined && name !== RAW_MANIFEST_NAME ? undefined : { source, date, name, segment }
}

/** The key of a raw file. */
export function rawKey(source: LobSource, date: string, name: string): string {
  return `raw/source=${source}/date=${date}/${name}`
}

/** The datasets of records and their partitions: one file per series and month, one per station and year (UTC). */
export const RECORD_PARTITIONS = {
  candles: { scope: 'series', period: 'month', periodPattern: /^month=(\d{4}-\d{2})$/ },
  observations: { scope: 'station', period: 'year', periodPattern: /^year=(\d{4})$/ },
} as const

export type RecordDataset = keyof typeof RECORD_PARTITIONS

/** The file of one period (`2026-07`, or `2026`) of a series or station, below the lake's root with forward slashes. */
export function recordFileName(dataset: RecordDataset, scope: string, period: string): string {
  const { scope: scopeName, period: periodName } = RECORD_PARTITIONS[dataset]
  return `${dataset}/${scopeName}=${scope}/${periodName}=${period}/${dataset}.parquet`
}

/** The datasets of the lake, each with a directory of its own. */
export const LAKE_DATASETS = [...DERIVED_DATASETS, 'candles', 'observations'] as const

export type LakeDataset = (typeof LAKE_DATASETS)[number]

/** A file of a dataset: its series or station, and its date, month or year. */
export interface LakePartition {
  readonly dataset: LakeDataset
  readonly scope: string
  readonly period: string
}

/** Whether the dataset is derived from raw segments. */
export function isDerivedDataset(dataset: LakeDataset): dataset is DerivedDataset {
  return DERIVED_DATASETS.some((derived) => derived === dataset)
}

/** Parses the key of a dataset's file; `undefined` for any other key. */
export function lakePartitionOfKey(key: string): LakePartition | undefined {
  const derived = derivedFileOfKey(key)
  if (derived !== undefined) return { dataset: derived.dataset, scope: derived.series, period: derived.date }
  const [dataset, scopePart = '', periodPart = ''] = key.split('/')
  if (dataset !== 'candles' && dataset !== 'observations') return undefined
  const scope = scopePart.slice(scopePart.indexOf('=') + 1)
  const period = RECORD_PARTITIONS[dataset].periodPattern.exec(periodPart)?.[1]
  if (period === undefined || key !== recordFileName(dataset, scope, period)) return undefined
  return isSeriesName(scope) ? { dataset, scope, period } : undefined
}

const OLD_KEY = /^((lob|candles|observations)\/(?:[^/]+\/){1,2}(?:date|month|year)=[\d-]+)\.parquet$/

/**
 * The present key of a file of version 0.1, which had the partition in its name (`…/date=2026-07-01.parquet`); `undefined` for
 * any other key.
 */
export function migratedKey(key: string): string | undefined {
  const [, directory, dataset] = OLD_KEY.exec(key) ?? []
  return directory === undefined ? undefined : `${directory}/${dataset}.parquet`
}

/** The span of a month or year (`2026-07`, `2026`); `toMs` is exclusive. */
export function periodInstants(period: string): { readonly fromMs: number; readonly toMs: number } {
  const [year = 0, month] = period.split('-').map(Number)
  return month === undefined
    ? { fromMs: Date.UTC(year, 0), toMs: Date.UTC(year + 1, 0) }
    : { fromMs: Date.UTC(year, month - 1), toMs: Date.UTC(year, month) }
}
