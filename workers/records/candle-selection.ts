// Resolves the selectors of a candle request to series, event and market. A candle must match all of them. A name is known if
// the catalogue, the station table, the lake or a stored row has it; an unknown name is a 404.

import type { MarketSpan } from '../../shared/candle-spans.ts'
import { ApiError } from '../../shared/errors.ts'
import { seriesOfTicker } from '../../shared/series-name.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import type { CandleSelection } from '../../shared/sql/candle-queries.ts'
import { eventKnown, marketKnown, seriesKnown } from '../../shared/sql/name-queries.ts'
import type { RunStatement, SqlStatement } from '../../shared/sql/statement.ts'
import type { IndexedPart } from './candle-index.ts'
import { findParts, lakeScopes } from './lake-partitions.ts'
import type { RecordRequest } from './record-context.ts'
import { isInTable } from './series-stations.ts'

export interface ResolvedSelection {
  /** The selection for the relational store. */
  readonly stored: CandleSelection
  /** The series whose lake directories may have rows; null for all. */
  readonly scopes: readonly string[] | null
  /** True when the selectors contradict each other. */
  readonly isEmpty: boolean
  readonly matches: (span: MarketSpan) => boolean
}

/** @throws {ApiError} `unknown_station` (404) for a station that no series has */
export async function resolveSelection(
  query: CandleQuery,
  interval: CandleSelection['interval'],
  request: RecordRequest,
): Promise<ResolvedSelection> {
  const { market, station } = query
  const asSeries = query.series !== null && (await isSeries(query.series, request)) ? query.series : null
  const events = [query.event, asSeries === null ? query.series : null].filter((event) => event !== null)
  const wanted: (readonly string[])[] = []
  if (asSeries !== null) wanted.push([asSeries])
  if (station !== null) {
    const ofStation = await request.context.seriesStations.seriesOf(station, request)
    if (ofStation.length === 0)
      throw new ApiError('unknown_station', `No station is named ${JSON.stringify(station)}.`)
    wanted.push(ofStation)
  }
  // Candles of an event are found by its series, which is indexed.
  for (const event of events) wanted.push([seriesOfTicker(event)])
  const seriesTickers = intersection(wanted)
  if (market !== null) wanted.push([seriesOfTicker(market)])
  const [eventTicker = null, otherEvent = eventTicker] = events
  const shared = intersection(wanted)
  const isEmpty = shared?.length === 0 || eventTicker !== otherEvent
  return {
    stored: { interval, marketTicker: market, eventTicker, seriesTickers },
    // Two events of one series share its directory, but no rows.
    scopes: isEmpty ? [] : shared,
    isEmpty,
    matches: (span) =>
      !isEmpty &&
      span.interval === interval &&
      (market === null || span.market === market) &&
      (eventTicker === null || span.event === eventTicker),
  }
}

/**
 * Refuses unknown names. `indexed`: the parts whose index the request has read already.
 * @throws {ApiError} `unknown_market`, `unknown_event` or `unknown_series` (404)
 */
export async function checkNames(
  query: CandleQuery,
  indexed: readonly IndexedPart[],
  request: RecordRequest,
): Promise<void> {
  for (const [code, noun, name, known, kind] of [
    ['unknown_market', 'market', query.market, marketKnown, 'market'],
    ['unknown_event', 'event', query.event, eventKnown, 'event'],
    ['unknown_series', 'series or event', query.series, eventKnown, 'event'],
  ] as const) {
    if (name === null || (code === 'unknown_series' && (await isSeries(name, request)))) continue
    const isNamed = (span: MarketSpan): boolean => span[kind] === name
    if (indexed.some(({ spans }) => spans.some(isNamed))) continue
    if (await isKnown(request.run, known(name))) continue
    if (await isInLake(seriesOfTicker(name), isNamed, request)) continue
    throw new ApiError(code, `No ${noun} is named ${JSON.stringify(name)}.`)
  }
}

/** Whether a name is a series rather than an event of one. */
async function isSeries(name: string, { context, run, pinned }: RecordRequest): Promise<boolean> {
  const inLake = lakeScopes(context.lake, 'candles', pinned)
  if (isInTable(name) || inLake.includes(name)) return true
  const prefix = seriesOfTicker(name)
  if (prefix !== name && (isInTable(prefix) || inLake.includes(prefix))) return false
  return isKnown(run, seriesKnown(name))
}

/** Whether the relational store has a name. Without a store: false. */
export async function isKnown(run: RunStatement, statement: SqlStatement): Promise<boolean> {
  const [row] = await run<{ readonly known: boolean }>(statement)
  return row?.known === true
}

/** Searches all files of a series, including those outside the request's range. */
async function isInLake(
  series: string,
  isNamed: (span: MarketSpan) => boolean,
  { context, run, signal, versions, pinned }: RecordRequest,
): Promise<boolean> {
  const everything = { dataset: 'candles', scopes: [series], fromMs: -Infinity, toMs: Infinity } as const
  const manifest = await context.candleManifest.partitions(run, versions.manifest)
  for (const part of findParts(context.lake, everything, manifest, pinned).toReversed()) {
    const { spans } = await context.candleIndex.of(part, signal)
    if (spans.some(isNamed)) return true
  }
  return false
}

/** The names that all lists share, in the order of the first; null without a list. */
function intersection(lists: readonly (readonly string[])[]): readonly string[] | null {
  const [first, ...others] = lists
  if (first === undefined) return null
  return first.filter((name) => others.every((list) => list.includes(name)))
}
