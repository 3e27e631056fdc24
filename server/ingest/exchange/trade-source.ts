// The past trades of an exchange, as raw segments of a lake: series by series, and UTC date by date if requests can be bounded in
// time. The cursor state records what is complete. Where the lake's order books name the markets, it also records which markets a
// date had: a date that has others is requested again. A run ends with a fold of the dates that have new segments.

import { contentIdentity } from '../../../shared/content-identity.ts'
import { groupedBy } from '../../../shared/grouped-by.ts'
import { FETCHED } from '../../../shared/lake-layout.ts'
import { INGEST_ARCHIVE_SETTLE_MS } from '../../../shared/limits.ts'
import { LOB_SOURCES } from '../../../shared/lob-sources.ts'
import { MS_PER_DAY, NS_PER_MS, utcDateOf, utcDatesBetween } from '../../../shared/utc-date.ts'
import { exchangeOf } from '../../exchanges/registry.ts'
import type { TradeArchive, TradeRow } from '../../exchanges/trade-archive.ts'
import { BadLineError } from '../../feed/bad-line.ts'
import { foldInThread } from '../../fold/fold-client.ts'
import type { Folding } from '../../fold/fold-order.ts'
import { rebuildDates, rebuildPlan } from '../../fold/lake-rebuild.ts'
import { ClosedDateError, dateRules } from '../../import/date-rules.ts'
import { marketsInLake, MarketsOfOthers } from '../../lake/lake-markets.ts'
import { asLakeWriteError } from '../../lake/lake-write-error.ts'
import { seriesDates } from '../../lake/series-dates.ts'
import { isSealed, readManifest } from '../../raw/date-manifest.ts'
import { restText } from '../../raw/segment-lines.ts'
import { SegmentWriter } from '../../raw/segment-writer.ts'
import {
  type CursorName,
  missingWindows,
  readCursorState,
  type TimeWindow,
  writeCursorState,
} from '../../storage/cursor-store.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import { daysOf, settledPart, windowTitle } from '../archive-windows.ts'
import { type FetchedRows, type IngestSource, type SourceContext, tradesSourceName } from '../source.ts'
import type { TradesSource } from './trades-sources.ts'
import { candleMarkets } from './candle-markets.ts'
import { knownSeries, missingCatalogue } from './catalogue-source.ts'

/** The hours of the segments. The fold of a neighbouring date reads the first and the last one. */
const [FIRST_HOUR, NOON, LAST_HOUR] = [0, 12, 23]
/** Rows that may wait to be written as segments, beside those of one step. */
const WAITING_ROWS_MAX = 200_000
const OF_ONE_BATCH: ReadonlySet<string> = new Set(['rejected', 'malformed', 'too_large'])

export interface TradeSourceOptions {
  readonly source: TradesSource
  readonly archive: TradeArchive
  readonly lake: string
  readonly folding?: Folding | undefined
}

export function tradeSource(options: TradeSourceOptions): IngestSource {
  const { source, archive, lake } = options
  const name = tradesSourceName(source)
  const catalogued = async (context: SourceContext): Promise<readonly string[]> =>
    LOB_SOURCES[source].isCatalogued ? await knownSeries(context, null) : []
  return {
    name,
    intervalMs: MS_PER_DAY,
    async *poll() {},
    history: {
      async scopes(context) {
        const names = new Set(await catalogued(context))
        for await (const one of seriesDates(lake)) if (one.source === source) names.add(one.series)
        return [...names].toSorted()
      },
      // One step a date: a request for a few more minutes costs less than another request.
      async missing(scope, span, context) {
        const cursor = { source: name, scope }
        const parts = await missingWindows(context.postgres, cursor, span, context.clock.nowMs())
        if (!(await catalogued(context)).includes(scope)) {
          const { markets: known } = await readCursorState<TradesState>(context.postgres, cursor)
          const isMissing = ({ fromMs, toMs }: TimeWindow): boolean =>
            parts.some((part) => part.fromMs < toMs && part.toMs > fromMs)
          for (const day of daysOf(span).filter((each) => !isMissing(each))) {
            const date = utcDateOf(day.fromMs)
            const markets = await marketsInLake(lake, source, scope, [date, date])
            // Without any, the order books have been pruned since.
            if (markets.length === 0 || contentIdentity(markets) === known?.[date]) continue
            const manifest = await readManifest(lake, source, date)
            // Otherwise nothing can have been added.
            if (manifest !== undefined && !isSealed(manifest)) parts.push(day)
          }
        }
        const days = parts.flatMap((part) => daysOf(part)).toSorted((a, b) => a.fromMs - b.fromMs)
        const sealed = archive.isByTime ? [] : await sealedBetween(options, days)
        const groups = groupedBy(days, ({ fromMs }) => {
          const date = utcDateOf(fromMs)
          return archive.isByTime ? date : String(sealed.findLastIndex((one) => one < date))
        })
        return [...groups.values()].map((group) => ({
          fromMs: group[0].fromMs,
          toMs: Math.max(...group.map(({ toMs }) => toMs)),
        }))
      },
      windows: (window) => [window],
      step: (scope, window, context) => ({
        scope,
        title: `${scope} ${windowTitle(window)}`,
        async fetch() {
          if ((await catalogued(context)).includes(scope))
            return await fetchTrades(options, scope, window, undefined, context)
          const markets = await marketsByDate(options, scope, window)
          const fetched = await fetchTrades(options, scope, window, markets, context)
          return await notingMarkets(fetched, { source: name, scope }, markets, context)
        },
      }),
      last: (span, { signal }) => foldNew(options, span, signal),
    },
    close: () => archive.close(),
  }
}

/** The sealed dates between days to request. A step with one of them would not complete, since it accepts no rows. */
async function sealedBetween(
  { lake, source }: TradeSourceOptions,
  days: readonly TimeWindow[],
): Promise<readonly string[]> {
  const asked = days.map(({ fromMs }) => utcDateOf(fromMs))
  const [first, last] = [asked[0], asked.at(-1)]
  if (first === undefined || last === undefined) return []
  const sealed: string[] = []
  for (const date of utcDatesBetween(first, last).filter((one) => !asked.includes(one))) {
    const manifest = await readManifest(lake, source, date)
    if (isSealed(manifest)) sealed.push(date)
  }
  return sealed
}

/** Folds the dates of a span that have segments not read by any fold. */
async function foldNew(
  { lake, source, folding = foldInThread }: TradeSourceOptions,
  { fromMs, toMs }: TimeWindow,
  signal: AbortSignal,
): Promise<void> {
  const flags = { isDryRun: false, withoutDamaged: false, from: undefined, to: undefined }
  const options = { ...flags, lake, source, folding, listeners: {}, signal }
  const { dates } = await rebuildPlan(options)
  const [first, last] = [utcDateOf(fromMs), utcDateOf(toMs - 1)]
  const wanted = dates.filter((date) => date >= first && date <= last)
  try {
    for await (const _ of rebuildDates(options, wanted));
  } catch (error) {
    throw asLakeWriteError(error, lake)
  }
}

async function fetchTrades(
  options: TradeSourceOptions,
  scope: string,
  window: TimeWindow,
  byDate: MarketsByDate | undefined,
  context: SourceContext,
): Promise<FetchedRows> {
  const { source, archive, lake } = options
  const isCatalogued = byDate === undefined
  const settled = settledPart(window, INGEST_ARCHIVE_SETTLE_MS, context.clock.nowMs())
  const unknown = settled === null || !isCatalogued ? [] : await missingCatalogue(context, scope, settled)
  const markets = isCatalogued
    ? (await candleMarkets(context, window, scope)).map(({ ticker }) => ticker)
    : [...new Set([...byDate.values()].flat())].toSorted()
  const problems = unknown.map(
    (part) =>
      `not every market is known of ${windowTitle(part)}: run exchange-catalogue over these dates too`,
  )
  const rows: (TradeRow & Place)[] = []
  // A series may get another name: the rows of a market are those of the series that has its order books of the date.
  const others = new MarketsOfOthers(lake, source, scope)
  let [rowCount, isRefused] = [0, false]
  const write = async (): Promise<void> => {
    rowCount += rows.length
    for (const group of groupedBy(rows.splice(0), ({ date, hour }) => `${date} ${hour}`).values()) {
      const { date } = group[0]
      try {
        await dateRules({ lake, source, replace: false }, [{ date, name: '' }])
        await writeSegment(options, scope, group)
      } catch (error) {
        if (!(error instanceof ClosedDateError)) throw asLakeWriteError(error, lake)
        problems.push(error.message)
        isRefused = true
      }
    }
  }
  // If requests cannot be bounded in time, a run continues where the last run with the same windows was interrupted. In a window
  // that is not settled, a finished walk does not have everything.
  const cursor = { source: tradesSourceName(source), scope }
  const asked =
    archive.isByTime || settled === null ? undefined : `${windowTitle(window)}, ${windowTitle(settled)}`
  const state = await readCursorState<TradesState>(context.postgres, cursor)
  const known = asked !== undefined && state.asked === asked ? (state.known ?? {}) : {}
  for (const batch of archive.batches(markets)) {
    const key = batch.join()
    const from = known[key]
    if (from === null) continue
    const problemCount = problems.length
    try {
      for await (const { rows: found, next } of archive.steps(batch, window, context.signal, from)) {
        for (const row of found) {
          const place = placeIn(row, options, window, problems)
          if (place !== undefined && !(await others.has(place))) rows.push({ ...row, ...place })
        }
        if (problems.length === problemCount) known[key] = next
        if (next === null && rows.length <= WAITING_ROWS_MAX) continue
        await write()
        if (asked !== undefined && !isRefused)
          await context.postgres.transaction((transaction) =>
            writeCursorState(transaction, cursor, { ...state, asked, known }),
          )
      }
    } catch (error) {
      // An error of one batch must not stop the others.
      if (!(error instanceof UpstreamError) || !OF_ONE_BATCH.has(error.failure)) throw error
      problems.push(`${batch[0]}: ${error.message}`)
    }
  }
  await write()
  // Without markets of a catalogue, some may not have been requested.
  const isWhole = problems.length === 0 && (isCatalogued || markets.length > 0)
  return { write: async () => rowCount, problems, completed: isWhole ? settled : null }
}

type MarketsByDate = ReadonlyMap<string, readonly string[]>

/** Records the markets of the dates that are complete now. */
async function notingMarkets(
  fetched: FetchedRows,
  cursor: CursorName,
  byDate: MarketsByDate,
  { postgres }: SourceContext,
): Promise<FetchedRows> {
  const { completed } = fetched
  if (!completed) return fetched
  const state = await readCursorState<TradesState>(postgres, cursor)
  const whole = daysOf(completed).filter(({ fromMs, toMs }) => toMs - fromMs === MS_PER_DAY)
  const dates = whole.map(({ fromMs }) => utcDateOf(fromMs))
  const digests = dates.map((date) => [date, contentIdentity(byDate.get(date) ?? [])] as const)
  const markets = { ...state.markets, ...Object.fromEntries(digests) }
  return {
    ...fetched,
    async write(transaction) {
      await writeCursorState(transaction, cursor, { ...state, markets })
      return await fetched.write(transaction)
    },
  }
}

/** The ids of a series' markets in the lake's order books of each date. */
async function marketsByDate(
  { lake, source }: TradeSourceOptions,
  scope: string,
  { fromMs, toMs }: TimeWindow,
): Promise<MarketsByDate> {
  const byDate = new Map<string, readonly string[]>()
  for (const date of utcDatesBetween(utcDateOf(fromMs), utcDateOf(toMs - 1)))
    byDate.set(date, await marketsInLake(lake, source, scope, [date, date]))
  return byDate
}

interface TradesState {
  /** The windows of the walks. */
  readonly asked?: string | undefined
  /** By batch: the cursor where a walk continues, null at its end. */
  readonly known?: Record<string, string | null>
  /** By date: a digest of the markets whose trades are complete. Only of series whose markets the lake names. */
  readonly markets?: Readonly<Record<string, string>>
}

interface Place {
  readonly marketId: string
  readonly date: string
  readonly hour: number
}

/** The market, date and segment hour of a row; undefined if it is outside the window. */
function placeIn(
  { row }: TradeRow,
  { source }: TradeSourceOptions,
  { fromMs, toMs }: TimeWindow,
  problems: string[],
): Place | undefined {
  try {
    const { marketId, ts } = exchangeOf(source).trades!.ofRow(row)
    const ms = Number(ts / NS_PER_MS)
    if (ms < fromMs || ms >= toMs) return undefined
    const hour = new Date(ms).getUTCHours()
    return { marketId, date: utcDateOf(ms), hour: hour === FIRST_HOUR || hour === LAST_HOUR ? hour : NOON }
  } catch (error) {
    if (!(error instanceof BadLineError)) throw error
    problems.push(error.message)
    return undefined
  }
}

async function writeSegment(
  { lake, source }: TradeSourceOptions,
  scope: string,
  rows: readonly [TradeRow & Place, ...(TradeRow & Place)[]],
): Promise<void> {
  const series = LOB_SOURCES[source].isSeriesInId ? undefined : scope
  const reading = { series, sequence: 'strict', useYesPrice: false } as const
  const [{ date, hour }] = rows
  const place = { date, hour, recorder: FETCHED }
  await SegmentWriter.write(lake, { source, reading }, place, async (writer) => {
    for (const { recvTs, request, row } of rows) {
      writer.add(restText(recvTs, request, row), recvTs)
      if (writer.isFull) await writer.drained()
    }
  })
}
