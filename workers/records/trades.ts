// GET /api/v1/trades: rows of the lake's trades files, sorted by ts, market_id, trade_id. DuckDB reads the files of the range, and
// skips row groups of other times and markets.

import type { DuckDBDataChunk } from '@duckdb/node-api'
import { join } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { dateOfDirectoryName, tradesKey } from '../../shared/lake-layout.ts'
import { lobSourceNames } from '../../shared/lob-sources.ts'
import { RECORD_LAKE_FILES_MAX, RECORD_STORE_BATCH_ROWS } from '../../shared/limits.ts'
import type { RecordField } from '../../shared/record-field.ts'
import { fieldsOf } from '../../shared/record-schema.ts'
import type { TradeQuery } from '../../shared/record-task.ts'
import { seriesOfTicker } from '../../shared/series-name.ts'
import { eventKnown, marketKnown, seriesKnown } from '../../shared/sql/name-queries.ts'
import { TRADES_SCHEMA } from '../../shared/trades-v1.ts'
import { addDays, NS_PER_MS, utcDateOf, utcDateStartMs } from '../../shared/utc-date.ts'
import type { PinnedFiles } from '../lake/pinned-files.ts'
import { isKnown } from './candle-selection.ts'
import { PageCut, pageOf } from './counted-page.ts'
import { readParquetSql, sqlText } from './duck-lake.ts'
import { copyNanoseconds, copyNumbers, TextVector } from './duck-vectors.ts'
import { checkUnchanged, inOrder, type LakePart, namesIn, partAt, scopesIn } from './lake-partitions.ts'
import { heldLakeChunks, lakeChunks, lakeRows } from './lake-query.ts'
import { isNumeric, NO_ROWS, type RecordAnswer, type RecordBatch } from './record-batch.ts'
import type { RecordRequest } from './record-context.ts'
import { assertInPlace } from './request-cost.ts'
import { withFreshPlan } from './stale-plan.ts'

const TRADES_FILE = {
  schema: TRADES_SCHEMA,
  columns: {
    ts: ['BIGINT'],
    recv_ts: ['BIGINT'],
    market_id: ['VARCHAR'],
    trade_id: ['VARCHAR'],
    price: ['INTEGER'],
    qty: ['BIGINT'],
    aggressor: ['VARCHAR'],
    block: ['BOOLEAN'],
    origin: ['VARCHAR'],
  },
}
/** SQL for the columns whose served unit differs from the stored one. */
const SERVED: Readonly<Record<string, string>> = {
  price: 'price / 100',
  qty: 'qty::DOUBLE / 1e6',
  block: 'block::INTEGER',
}
/** The order within a file, applied if the files are of several series. Rows with equal keys are interchangeable. */
const ORDER = 'ts, market_id, trade_id NULLS LAST, price, qty, aggressor, recv_ts'
const SERIES_PREFIX = 'series='
/** A plan is made from the lake's directories, which no cache holds. */
const NOTHING_TO_FORGET = (): void => undefined

/** Plans the answer, and reads it if it is short. Throws ApiError. */
export async function answerTrades(query: TradeQuery, request: RecordRequest): Promise<RecordAnswer> {
  return await withFreshPlan('Trades', NOTHING_TO_FORGET, async () => answerOnce(query, request))
}

async function answerOnce(query: TradeQuery, request: RecordRequest): Promise<RecordAnswer> {
  const { context, signal, identity, pinned } = request
  const selection = selectionOf(context.lake, query, pinned)
  const parts = inOrder(partsOf(context.lake, query, selection.series, pinned))
  const { series, named } = selection
  identity.settle({ parts, facts: series, seenFiles: null, series: named })
  assertInPlace(request, 0, parts.length)
  for (const part of parts) await context.checks.checkContract(context.duck, part, TRADES_FILE, signal)
  const answer = await readTrades(query, parts, selection.where, request)
  if (answer.rows === 0) await assertKnown(query, request)
  return answer
}

interface Selection {
  /** Series whose files are read. */
  readonly series: readonly string[]
  /** The series that the request names, also those without a file now; null if it may mean any series. */
  readonly named: readonly string[] | null
  readonly where: readonly string[]
}

function selectionOf(lake: string, query: TradeQuery, pinned: PinnedFiles | undefined): Selection {
  const { source, market, event, series } = query
  const names = lobSourceNames(source)
  const all = scopesIn(lake, `trades/source=${source}`, SERIES_PREFIX, pinned)
  const where: string[] = []
  if (market !== null) where.push(marketSql(market, market.includes(':') || names.isSeriesInId))
  if (event !== null) where.push(eventSql(event))
  if (series !== null) {
    const base = names.isSeriesInId ? seriesOfTicker(series) : ''
    if (all.includes(series)) return { series: [series], named: [series], where }
    const named = [...new Set([series, base])]
    return { series: all.filter((name) => name === base), named, where: [...where, eventSql(series)] }
  }
  const likely = names.isSeriesInId ? seriesOfTicker(market ?? event ?? '') : ''
  if (all.includes(likely)) return { series: [likely], named: [likely], where }
  return { series: all, named: null, where }
}

function marketSql(market: string, isWhole: boolean): string {
  return isWhole ? `market_id = ${sqlText(market)}` : `starts_with(market_id, ${sqlText(`${market}:`)})`
}

/** An event is a market's ticker up to its last dash. */
function eventSql(event: string): string {
  return `starts_with(market_id, ${sqlText(`${event}-`)}) AND NOT contains(substr(market_id, ${event.length + 2}), '-')`
}

/** The files of the range, by series and date. */
function partsOf(
  lake: string,
  { source, fromMs, toMs }: TradeQuery,
  series: readonly string[],
  pinned: PinnedFiles | undefined,
): LakePart[] {
  const [first, last] = [utcDateOf(fromMs), utcDateOf(toMs - 1)]
  const parts: LakePart[] = []
  for (const scope of series) {
    const ofSeries = `trades/source=${source}/${SERIES_PREFIX}${scope}`
    for (const directory of pinned?.namesIn(ofSeries) ?? namesIn(join(lake, ofSeries))) {
      const date = dateOfDirectoryName(directory)
      if (date === undefined || date < first || date > last) continue
      const name = tradesKey(source, scope, date)
      const span = { fromMs: utcDateStartMs(date) ?? 0, toMs: utcDateStartMs(addDays(date, 1)) ?? 0 }
      const part = partAt(lake, name, { scope, ...span, isRegistered: true, revisionMin: 0n }, pinned)
      if (part !== undefined) parts.push(part)
    }
  }
  return parts
}

/** Reads a short page whole. The rows of a long one are counted here, and read while they are sent. */
async function readTrades(
  query: TradeQuery,
  parts: readonly LakePart[],
  where: readonly string[],
  { context: { duck }, signal }: RecordRequest,
): Promise<RecordAnswer> {
  if (parts.length === 0) return NO_ROWS
  const { offset, limit, format } = query
  const fields = fieldsOf('trades', query.columns)
  const conditions = [`ts >= ${query.fromNs}`, `ts < ${query.toNs}`, ...where]
  const source = `${readParquetSql(parts.map(({ path }) => path))} WHERE ${conditions.join(' AND ')}`
  const columns = [...fields.map(({ name }) => SERVED[name] ?? name), 'ts']
  // The files of one series, in the order of their dates, are sorted. Sorting takes several times as long as reading.
  const hasOneSeries = new Set(parts.map(({ scope }) => scope)).size === 1
  const order = hasOneSeries ? '' : `ORDER BY ${ORDER}`
  const pageSql = (rows: number): string =>
    `SELECT ${columns.join(', ')} FROM ${source} ${order} LIMIT ${rows} OFFSET ${offset}`
  if (offset + limit < RECORD_STORE_BATCH_ROWS) {
    // One row more, to know whether another page follows.
    const chunks = [...(await heldLakeChunks(duck, parts, pageSql(limit + 1), signal))]
    const page = new PageCut(0, limit)
    const batches = chunks
      .map((chunk) => ({ chunk, rows: page.next(chunk.rowCount).to }))
      .filter(({ rows }) => rows > 0)
      .map(({ chunk, rows }) => ({ ...rowsOf(chunk, fields, false), rows }))
    checkUnchanged(parts)
    const hasMore = chunks.reduce((sum, { rowCount }) => sum + rowCount, 0) > limit
    return { rows: page.taken, hasMore, batches: () => batches }
  }
  const countSql = `SELECT count(*)::DOUBLE FROM (SELECT 1 FROM ${source} LIMIT ${offset + limit + 1})`
  const [row] = await lakeRows(duck, parts, countSql, signal)
  checkUnchanged(parts)
  const counted = pageOf(Number(row?.[0] ?? 0), query)
  async function* stream(): AsyncGenerator<RecordBatch, void, void> {
    if (counted.rows === 0) return
    for await (const chunk of lakeChunks(duck, parts, pageSql(counted.rows), signal))
      yield rowsOf(chunk, fields, format === 'parquet')
    checkUnchanged(parts)
  }
  return { ...counted, batches: stream }
}

/** @throws {ApiError} 404 for a name that neither the lake nor the catalogue has, each by itself */
async function assertKnown(query: TradeQuery, request: RecordRequest): Promise<void> {
  const { source, market, event, series } = query
  const { context, run } = request
  const { isCatalogued } = lobSourceNames(source)
  const hasBooks =
    series !== null && scopesIn(context.lake, `lob/source=${source}`, SERIES_PREFIX).includes(series)
  for (const [noun, name, statements] of [
    ['market', market, [marketKnown]],
    ['event', event, [eventKnown]],
    ['series', hasBooks ? null : series, [seriesKnown, eventKnown]],
  ] as const) {
    const alone = { ...query, market: null, event: null, series: null, [noun]: name }
    if (name === null || (await hasTrades(alone, request))) continue
    const known = isCatalogued ? statements.map((statement) => isKnown(run, statement(name))) : []
    if (!(await Promise.all(known)).includes(true))
      throw new ApiError(`unknown_${noun}`, `The lake has no trades of ${source} ${noun} ${name}.`)
  }
}

/** Whether the lake has trades of a name, of any time. */
async function hasTrades(
  query: TradeQuery,
  { context: { lake, duck }, signal, pinned }: RecordRequest,
): Promise<boolean> {
  const { series, where } = selectionOf(lake, query, pinned)
  // The newest ones, if there are too many.
  const parts = partsOf(lake, { ...query, fromMs: 0, toMs: Date.UTC(2200, 0) }, series, pinned)
    .toSorted((a, b) => a.fromMs - b.fromMs)
    .slice(-RECORD_LAKE_FILES_MAX)
  if (parts.length === 0 || where.length === 0) return series.includes(query.series ?? '')
  const sql = `SELECT 1 FROM ${readParquetSql(parts.map(({ path }) => path))} WHERE ${where.join(' AND ')} LIMIT 1`
  return (await lakeRows(duck, parts, sql, signal)).length > 0
}

/** `isPacked`: texts stay in the chunk's vectors, and are valid until the next chunk is read. */
function rowsOf(chunk: DuckDBDataChunk, fields: readonly RecordField[], isPacked: boolean): RecordBatch {
  const rows = chunk.rowCount
  const columns = fields.map((field, index) => {
    const vector = chunk.getColumnVector(index)
    if (!isNumeric(field))
      return isPacked ? new TextVector(vector) : (chunk.getColumnValues(index) as (string | null)[])
    if (field.isBig === true) return copyNanoseconds(vector, new BigInt64Array(rows))
    const numbers = new Float64Array(rows)
    copyNumbers(vector, numbers, 0)
    return numbers
  })
  const times = chunk.getColumnVector(fields.length)
  const [firstMs, lastMs] = [0, rows - 1].map((row) => msOf(times.getItem(row) as bigint)) as [number, number]
  return { rows, columns, span: { firstMs, lastMs } }
}

function msOf(ns: bigint): number {
  return Number(ns / NS_PER_MS)
}
