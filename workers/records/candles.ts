// GET /api/v1/candles: plans the read of lake and store, merges both by (end, market), rolls up, fills, and cuts the page. The
// page is in memory before its head is sent, because the head says whether another page follows; `limit` bounds it. Long pages
// of candles as they are stored are streamed instead (candle-stream.ts).

import { storedIntervalOf } from '../../shared/candle.ts'
import { ApiError } from '../../shared/errors.ts'
import { seriesOfTicker } from '../../shared/series-name.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import type { TimeZone } from '../../shared/time-zone.ts'
import { MS_PER_MINUTE } from '../../shared/utc-date.ts'
import type { AnswerSources } from './answer-identity.ts'
import { CandleBuckets, type CandleFill, type CandleGrid } from './candle-buckets.ts'
import { findFill, mayAskStore, refuseOtherFill } from './candle-fill-bounds.ts'
import { countHotCandles, readHotCandles } from './candle-hot.ts'
import type { ColdCandles } from './candle-lake.ts'
import { mergedCandles } from './candle-merge.ts'
import { CandlePage } from './candle-page.ts'
import { type CandlePlan, coldCandles, makeCandlePlan, rowsRead } from './candle-plan.ts'
import { type CandleStretches, isStreamed, streamCandles } from './candle-stream.ts'
import { checkNames } from './candle-selection.ts'
import { checkUnchanged, type LakePart, seenFiles } from './lake-partitions.ts'
import { refuseNotPinnable } from './not-pinnable.ts'
import type { RecordRequest } from './record-context.ts'
import { assertInPlace } from './request-cost.ts'
import { isInTable } from './series-stations.ts'
import { withFreshPlan } from './stale-plan.ts'

export interface CandleAnswer extends CandleStretches {
  /** Minutes of the answer's candles. */
  readonly interval: number
  /** The zone of each market's labels. */
  readonly labelZone: (market: string) => TimeZone
}

export async function answerCandles(query: CandleQuery, request: RecordRequest): Promise<CandleAnswer> {
  const { candleManifest } = request.context
  return await withFreshPlan(
    'Candles',
    () => candleManifest.forget(),
    async () => answerOnce(query, request),
  )
}

async function answerOnce(query: CandleQuery, request: RecordRequest): Promise<CandleAnswer> {
  const { context } = request
  const interval = query.aggregate ?? query.interval
  const bucketMinutes =
    query.aggregate ?? (query.interval === storedIntervalOf(query.interval) ? null : query.interval)
  const plan = await makeCandlePlan(query, bucketMinutes, request)
  const { parts, selection } = plan
  const cold = coldCandles(plan)
  const { markets } = cold
  const isHot = plan.isHotIn(plan.readFromMs, query.toMs)
  // A name that has rows is known. Otherwise it is checked before a 304, since a client may claim to hold anything.
  const isLong = isStreamed(query, bucketMinutes)
  const areNamesChecked = markets.length === 0 && (!isHot || isLong || request.identity.mayBeHeld)
  if (areNamesChecked) await checkNames(query, parts, request)
  if (!selection.isEmpty) {
    const span = { fromMs: plan.readFromMs, toMs: query.toMs }
    const range = { dataset: 'candles', scopes: selection.scopes, ...span } as const
    const countOne = async () => countHotCandles(plan, 1, request)
    const indexed = async (part: LakePart) => context.candleIndex.of(part, request.signal)
    await refuseNotPinnable('Candles', plan, range, request, countOne, indexed)
  }
  request.identity.settle(candleSources(plan, cold, isHot, request))
  const rowsExpected = rowsRead(plan)
  assertInPlace(request, rowsExpected, cold.parts.length)
  const labelZone = await zonesOf(query, plan, request)
  if (isLong) return { ...(await streamCandles(plan, cold, isHot, request)), interval, labelZone }
  // Buckets of 5, 15 and 30 minutes begin in UTC, those of `aggregate` in the label's zone.
  const bucketZone = query.aggregate === null ? (): TimeZone => context.zone('UTC') : labelZone
  const grid = gridOf(query, bucketMinutes, bucketZone)
  const fill = query.fill ? await findFill(plan, request) : undefined
  if (fill !== undefined && request.pinned !== undefined)
    refuseOtherFill(plan, fill, await fillByNow(query, bucketMinutes, request), grid)
  const page = new CandlePage(query.limit, query.offset, rowsExpected)
  const isServedAsStored = bucketMinutes === null && fill === undefined
  const { fromMs, toMs } = query
  const buckets = isServedAsStored ? undefined : new CandleBuckets({ grid, fromMs, toMs, fill, page })
  const stage = buckets ?? page
  const rowsMax = bucketMinutes === null ? query.offset + query.limit + 1 : null
  const coldRows = context.candleLake.read(cold, rowsMax, request.signal)
  for await (const rows of mergedCandles(coldRows, readHotCandles(plan, rowsMax, request))) {
    stage.take(rows)
    if (page.hasMore) break
  }
  buckets?.finish()
  checkUnchanged(cold.parts)
  if (markets.length === 0 && !areNamesChecked && page.page.length === 0)
    await checkNames(query, parts, request)
  const sets = () => [{ rows: page.page, from: 0, to: page.page.length }]
  return { rows: page.page.length, hasMore: page.hasMore, sets, interval, labelZone }
}

/** What the answer depends on. An answer from lake files alone needs no names from the store: the lake has rows of its markets. */
function candleSources(
  plan: CandlePlan,
  { markets }: ColdCandles,
  isHot: boolean,
  request: RecordRequest,
): AnswerSources {
  const { query, selection, parts } = plan
  const { scopes } = selection
  const isLakeOnly =
    !isHot &&
    markets.length > 0 &&
    scopes !== null &&
    // The station of a series may come from the catalogue.
    query.station === null &&
    query.tz !== 'station' &&
    !(query.fill && mayAskStore(plan))
  return {
    parts,
    facts: [JSON.stringify([selection.stored, scopes])],
    seenFiles: isLakeOnly ? seenFiles(request, 'candles', scopes, parts) : undefined,
  }
}

/** The fill of the same request from the present lake and store. */
async function fillByNow(
  query: CandleQuery,
  bucketMinutes: number | null,
  request: RecordRequest,
): Promise<CandleFill> {
  const unpinned = { ...request, pinned: undefined }
  return await findFill(await makeCandlePlan(query, bucketMinutes, unpinned), unpinned)
}

function gridOf(
  { interval, fromMs }: CandleQuery,
  bucketMinutes: number | null,
  zoneOf: (market: string) => TimeZone,
): CandleGrid {
  if (bucketMinutes !== null) {
    const bucketEnd = (market: string, ms: number): number => zoneOf(market).bucketEnd(ms, bucketMinutes)
    return {
      endOf: (market, endMs) => bucketEnd(market, endMs - 1),
      endAfter: (market, endMs) => bucketEnd(market, Math.max(endMs, fromMs - 1)),
    }
  }
  const stepMs = interval * MS_PER_MINUTE
  return {
    endOf: (_, endMs) => endMs,
    endAfter: (_, endMs) => endMs + stepMs * Math.max(1, Math.ceil((fromMs - endMs) / stepMs)),
  }
}

/** The zone of each market's labels; with `tz=station`, the zone of the station of its series. */
async function zonesOf(
  query: CandleQuery,
  plan: CandlePlan,
  request: RecordRequest,
): Promise<(market: string) => TimeZone> {
  const { context } = request
  if (query.tz !== 'station') {
    const zone = context.zone(query.tz)
    return () => zone
  }
  const { seriesStations } = context
  const { scopes } = plan.selection
  const names = [...plan.parts.map(({ scope }) => scope), ...(scopes ?? [])]
  if (scopes === null || !names.every(isInTable)) await seriesStations.refresh(request)
  // One state for all rows, also if the catalogue is read again meanwhile.
  const { known } = seriesStations
  return (market) => {
    const name = seriesOfTicker(market)
    const station = known.get(name)
    const zone = station === undefined ? undefined : context.stationZone(station)
    if (zone !== undefined) return zone
    const detail = `tz=station needs a station, and none is known for series ${JSON.stringify(name)}.`
    throw new ApiError('invalid_parameter', detail, { errors: [{ parameter: 'tz', detail }] })
  }
}
