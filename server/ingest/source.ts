// The contract between a source of data and what runs it. A source says which steps there are (one request or a few,
// and the rows they bring); running them, writing, remembering completed windows, counting and backing off are the
// same for all of them (run-source.ts, schedule.ts).

import type { Station } from '../../shared/stations.ts'
import type { TimeWindow } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import type { StoreTransaction } from '../storage/store-transaction.ts'
import type { Clock } from '../tasks/clock.ts'
import { TRADES_SOURCES, type TradesSource } from './exchange/trades-sources.ts'

/** In the order in which a backfill needs them: candles are asked for markets that are known. */
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
/** Past trades of an exchange, which go to a lake. */
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

/** What a step fetched. Nothing is stored before all of it is there. */
export interface FetchedRows {
  /** Writes the rows and returns how many are new or changed. May run again when the transaction is repeated. */
  write(transaction: StoreTransaction): Promise<number>
  /** The window that is complete once the rows are written; none when more can still arrive in it. */
  readonly completed?: TimeWindow | null
  /** Entries that could not be read and are left out. */
  readonly problems: readonly string[]
  /** Called after the commit. */
  committed?(): void
}

/** What a source of reports of stations is made of. */
export interface StationSourceOptions<Client> {
  readonly client: Client
  readonly stations: readonly Station[]
  readonly intervalMs: number
}

export interface IngestStep {
  /** What the step's progress is remembered under: a station, a series, or `live`. */
  readonly scope: string
  /** For people: what is asked for. */
  readonly title: string
  /** Throws `UpstreamError`, or the reason of the context's signal on abort. */
  fetch(): Promise<FetchedRows>
}

/** The past of a source, in windows that can be asked one by one. */
export interface SourceHistory {
  /** A step that goes before the others of a span, because the scopes follow from it; null where it is not due. */
  first?(span: TimeWindow, context: SourceContext): Promise<IngestStep | null>
  scopes(context: SourceContext): Promise<readonly string[]>
  /** The parts of a span that a scope has yet to be asked for; by default those that no step completed. */
  missing?(scope: string, span: TimeWindow, context: SourceContext): Promise<readonly TimeWindow[]>
  /** Cuts a span into the windows of one step each, always at the same instants. */
  windows(span: TimeWindow): readonly TimeWindow[]
  step(scope: string, window: TimeWindow, context: SourceContext): IngestStep
  /** What follows the steps of a span, also when some failed. */
  last?(span: TimeWindow, context: SourceContext): Promise<void>
}

export interface IngestSource {
  readonly name: SourceName
  /** Rest between the starts of two polls, milliseconds. */
  readonly intervalMs: number
  /** What is new, step by step. A step may depend on what the one before wrote. */
  poll(context: SourceContext): AsyncIterable<IngestStep>
  /** Null where the upstream has no past. */
  readonly history: SourceHistory | null
  /** Closes the connections. */
  close(): Promise<void>
}
