// The task of a record worker (candles, observations, climate, trades, coverage), and the head of its answer. The protocol is in
// stream-task.ts. Queries are validated; instants are milliseconds since the epoch, `fromMs` inclusive and `toMs` exclusive.

import type { CandleInterval } from './candle.ts'
import type { SeenFile } from './file-identity.ts'
import type { CoveragePeriod } from './coverage.ts'
import type { FormatName } from './formats.ts'
import type { LobSource } from './lob-sources.ts'
import type { LobCatalogueEntry } from './lob-task.ts'
import type { ObservationType } from './observation.ts'
import type { StoreAddress } from './sql/store-address.ts'
import type { StreamHead, StreamTask } from './stream-task.ts'

export const UNIT_SYSTEMS = ['raw', 'metric', 'imperial'] as const
export type UnitSystem = (typeof UNIT_SYSTEMS)[number]

/** The parameters of every query: format, columns and page. */
interface RecordPage {
  readonly format: FormatName
  /** In the requested order. */
  readonly columns: readonly string[]
  readonly limit: number
  readonly offset: number
}

export interface CandleQuery extends RecordPage {
  readonly kind: 'candles'
  readonly market: string | null
  readonly event: string | null
  /** A station code. */
  readonly station: string | null
  /** A series, or an event of one. */
  readonly series: string | null
  readonly fromMs: number
  readonly toMs: number
  readonly interval: CandleInterval
  /** Minutes, a multiple of the interval. */
  readonly aggregate: number | null
  readonly fill: boolean
  /** `station` or an IANA name. */
  readonly tz: string
}

export interface ObservationQuery extends RecordPage {
  readonly kind: 'observations'
  readonly station: string | null
  readonly fromMs: number
  readonly toMs: number
  readonly type: ObservationType | null
  readonly units: UnitSystem
  readonly tz: string
}

export interface ClimateQuery extends RecordPage {
  readonly kind: 'climate'
  readonly station: string | null
  /** First and last date, `YYYY-MM-DD`. */
  readonly from: string | null
  readonly to: string | null
  readonly units: UnitSystem
  readonly revisions: boolean
}

export interface ClimateGapsQuery extends RecordPage {
  readonly kind: 'climate-gaps'
  readonly station: string
  readonly from: string
  readonly to: string
  readonly official: boolean
  readonly nowMs: number
}

/** At least one of market, event and series is given; a trade must match all that are given. */
export interface TradeQuery extends RecordPage {
  readonly kind: 'trades'
  readonly source: LobSource
  readonly market: string | null
  readonly event: string | null
  /** A series, or an event of one. */
  readonly series: string | null
  /** The range in milliseconds that includes the range in ns. */
  readonly fromMs: number
  readonly toMs: number
  /** The range in ns, inclusive and exclusive; as text, because queries are written as JSON. */
  readonly fromNs: string
  readonly toNs: string
}

/** Exactly one of market and series is given. */
export interface CoverageQuery extends RecordPage {
  readonly kind: 'coverage' | 'gaps'
  readonly source: LobSource
  readonly market: string | null
  /** A series, or an event of one. */
  readonly series: string | null
  /** First and last UTC date; null for no bound. */
  readonly from: string | null
  readonly to: string | null
  readonly by: CoveragePeriod
  /** The first open date: recordings may still be added to it and to later ones. */
  readonly openFrom: string
  readonly catalogue: LobCatalogueEntry | null
  /** Set for a warm-up: the thread caches the footers of the series and compiles the code. The rows are discarded. */
  readonly isAhead?: true
}

export type RecordQuery =
  | CandleQuery
  | ObservationQuery
  | ClimateQuery
  | ClimateGapsQuery
  | TradeQuery
  | CoverageQuery

/** Determines whether a client already holds the answer. */
export interface RecordValidation {
  /** The versions of the program and of the store's datasets, part of the identity of an answer. */
  readonly seed: string
  /** The same for an answer from lake files alone: the version of the program. */
  readonly lakeSeed: string
  /** Identities of answers that the client holds; `*` stands for any. */
  readonly held: readonly string[]
  /** Identities of answers that the server has cached; unlike a client's claims, they are reliable. */
  readonly kept: readonly string[]
}

/** Versions of the store's datasets that threads cache; null if unknown. */
export interface RememberedVersions {
  readonly series: string | null
  readonly manifest: string | null
}

export interface RecordTask extends StreamTask {
  /** Null if only the lake is read. */
  readonly store: StoreAddress | null
  readonly query: RecordQuery
  /** Null for an answer without an identity: its range moves with the clock, or the store is unavailable. */
  readonly validation: RecordValidation | null
  readonly versions: RememberedVersions
  /** False if the thread must not answer a request that reads much, but report it as misplaced (`isMisplaced`). */
  readonly isBulk: boolean
}

/** The Piscina task that probes the thread's DuckDB. It fails if the result is wrong. */
export interface RecordProbeTask {
  readonly probe: true
}

/** The head of a record answer. */
export interface RecordHead extends StreamHead {
  /** The offset of the next page; null for the last page. */
  readonly nextOffset: number | null
  /** Identifies the query, the files, the state of the store and everything else that the bytes depend on; null without a name. */
  readonly identity: string | null
  /** The lake files that the plan reads, below the lake's root. */
  readonly files: readonly string[]
  /** `identityOf` each of the files. */
  readonly stamps: readonly string[]
  /** For trades: the series whose files of the range belong to the answer; null for all of the source. */
  readonly series: readonly string[] | null
  /** The files and directories of an answer from lake files alone: the answer is right while they are unchanged. Else null. */
  readonly seenFiles: readonly SeenFile[] | null
  /** The client or the server holds this answer: no chunk follows. */
  readonly isHeld: boolean
  /** The request reads too much for this thread: nothing follows. */
  readonly isMisplaced: boolean
}
