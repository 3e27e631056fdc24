// The interface between a data source and its runner. A source defines steps (one request or a few, and the rows they return).
// Running, writing, recording completed windows, counting and backing off are the same for all sources (run-source.ts,
// schedule.ts).

import type { Station } from '../../shared/stations.ts'
import type { TimeWindow } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import type { StoreTransaction } from '../storage/store-transaction.ts'
import type { Clock } from '../tasks/clock.ts'
import { TRADES_SOURCES, type TradesSource } from './exchange/trades-sources.ts'

/** In the order in which a backfill needs them: candles are requested for known markets. */
export const RECORD_SOURCES = [
  'exchange-catalogue',
  'exchange-candles',
  'aviation-weather',
  'iem',
  'ncei',
  'climate-nws',
  'climate-afos',
  'climate-statistics',
] as const
/** Past trades of an exchange, written to a lake. */
type TradesSourceName = `${TradesSource}-trades`
export type RecordSourceName = (typeof RECORD_SOURCES)[number]
export type SourceName = RecordSourceName | TradesSourceName
export const SOURCE_NAMES: readonly SourceName[] = [
  ...RECORD_SOURCES,
  ...TRADES_SOURCES.map(tradesSourceName),
]

export function tradesSourceName(source: TradesSource): TradesSourceName {
  return `${source}-trades`
}

export function isTradesSource(name: SourceName): boolean {
  return name.endsWith('-trades')
}

export interface SourceContext {
  readonly postgres: Postgres
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** The result of a step. Nothing is stored before all of it is fetched. */
export interface FetchedRows {
  /** Writes the rows and returns how many are new or changed. Runs again if the transaction is retried. */
  write(transaction: StoreTransaction): Promise<number>
  /** The window that is complete once the rows are written; none if more data can arrive in it. */
  readonly completed?: TimeWindow | null
  /** Entries that could not be read and were left out. */
  readonly problems: readonly string[]
  /** Called after the commit. */
  committed?(): void
}

/** The parts of a source of station reports. */
export interface StationSourceOptions<Client> {
  readonly client: Client
  readonly stations: readonly Station[]
  readonly intervalMs: number
}

export interface IngestStep {
  /** The key of the step's progress: a station, a series, or `live`. */
  readonly scope: string
  /** A description of the request, for users. */
  readonly title: string
  /** Throws `UpstreamError`, or the reason of the context's signal on abort. */
  fetch(): Promise<FetchedRows>
}

/** The past of a source, in windows that can be requested one by one. */
export interface SourceHistory {
  /** A step that runs before the others of a span, because it finds the scopes; null if it is not due. */
  first?(span: TimeWindow, context: SourceContext): Promise<IngestStep | null>
  scopes(context: SourceContext): Promise<readonly string[]>
  /** The parts of a span that are still to be requested for a scope; by default those that no step completed. */
  missing?(scope: string, span: TimeWindow, context: SourceContext): Promise<readonly TimeWindow[]>
  /** Splits a span into the windows of one step each, always at the same instants. */
  windows(span: TimeWindow): readonly TimeWindow[]
  step(scope: string, window: TimeWindow, context: SourceContext): IngestStep
  /** Runs after the steps of a span, even if some failed. */
  last?(span: TimeWindow, context: SourceContext): Promise<void>
}

export interface IngestSource {
  readonly name: SourceName
  /** Time between the starts of two polls, milliseconds. */
  readonly intervalMs: number
  /** Requests new data, step by step. A step may depend on rows that the step before wrote. */
  poll(context: SourceContext): AsyncIterable<IngestStep>
  /** Null if the upstream has no past. */
  readonly history: SourceHistory | null
  /** Closes the connections. */
  close(): Promise<void>
}
