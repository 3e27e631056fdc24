// What the server asks of a record worker (candles, observations, climate records, climate gaps), and what the head of
// the answer says besides the protocol of stream-task.ts. Queries are validated; instants are milliseconds since the
// epoch, `fromMs` inclusive and `toMs` exclusive.

import type { CandleInterval } from './candle.ts'
import type { SeenFile } from './file-identity.ts'
import type { CoveragePeriod } from './coverage.ts'
import type { LakePin } from './lake-pin.ts'
import type { FormatName } from './formats.ts'
import type { LobSource } from './lob-sources.ts'
import type { LobCatalogueEntry } from './lob-task.ts'
import type { ObservationType } from './observation.ts'
import type { StoreAddress } from './sql/store-address.ts'
import type { StreamHead } from './stream-task.ts'

export const UNIT_SYSTEMS = ['raw', 'metric', 'imperial'] as const
export type UnitSystem = (typeof UNIT_SYSTEMS)[number]

/** What every query has: the form of the answer and its page. */
interface RecordPage {
  readonly format: FormatName
  /** In the order asked. */
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

/** At least one of market, event and series is given, and all that are given must hold. */
export interface TradeQuery extends RecordPage {
  readonly kind: 'trades'
  readonly source: LobSource
  readonly market: string | null
  readonly event: string | null
  /** A series, or an event of one. */
  readonly series: string | null
  /** The milliseconds that have the range of ns. */
  readonly fromMs: number
  readonly toMs: number
  /** ns, the first included and the last not; as text, because a query is JSON too. */
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
  /** The first date to which recordings may still be added. */
  readonly openFrom: string
  readonly catalogue: LobCatalogueEntry | null
  /** The thread remembers what the footers of the series say, and compiles its code. Nobody reads the rows. */
  readonly isAhead?: true
}

export type RecordQuery =
  | CandleQuery
  | ObservationQuery
  | ClimateQuery
  | ClimateGapsQuery
  | TradeQuery
  | CoverageQuery

/** What decides whether a client holds the answer already. */
export interface RecordValidation {
  /** Goes into the identity of an answer: the version of the program and those of the store's datasets. */
  readonly seed: string
  /** The same for an answer that is made of lake files alone: the version of the program. */
  readonly lakeSeed: string
  /** Identities of answers that the client holds; `*` stands for any. */
  readonly held: readonly string[]
  /** Identities of answers that the server itself has kept: unlike a client it does not claim what it has not. */
  readonly kept: readonly string[]
}

/** Versions of datasets in the store that threads remember something of; null for one that is not known. */
export interface RememberedVersions {
  readonly series: string | null
  readonly manifest: string | null
}

/** The Piscina task. `port` is transferred. With `headOnly` the answer is planned and checked but no chunk is sent. */
export interface RecordTask {
  readonly lake: string
  /** Null where the lake alone is read. */
  readonly store: StoreAddress | null
  readonly query: RecordQuery
  readonly headOnly: boolean
  /** Null for an answer that cannot be named: its range moves with the clock, or the store is away. */
  readonly validation: RecordValidation | null
  readonly versions: RememberedVersions
  /** The version of the lake whose files alone are read; left out: both stores. */
  readonly pin?: LakePin | undefined
  /** False where a request that reads much is not to be answered but moved (`isMisplaced`). */
  readonly isBulk: boolean
  /** Where the thread says which file it waits for (file-watch.ts). */
  readonly watch: SharedArrayBuffer
  /** Files for which threads wait that were given up. */
  readonly silentFiles: readonly string[]
  readonly port: import('node:worker_threads').MessagePort
}

/** The Piscina task that makes a thread load and open what a request needs. */
export interface RecordWarmTask {
  readonly warm: true
}

/** The Piscina task that asks the thread's DuckDB a question, and fails when the answer is not right. */
export interface RecordProbeTask {
  readonly probe: true
}

/** The head of a record answer. */
export interface RecordHead extends StreamHead {
  /** Where the next page begins; null when this is the last one. */
  readonly nextOffset: number | null
  /** Names the query, the files, the state of the store and whatever else the bytes depend on; null without a name. */
  readonly identity: string | null
  /** The lake files that the plan reads, below the lake's root. */
  readonly files: readonly string[]
  /** `identityOf` each of the files. */
  readonly stamps: readonly string[]
  /** What an answer that is made of lake files alone was made of: as long as it is there it is right. Else null. */
  readonly seenFiles: readonly SeenFile[] | null
  /** The client or the server holds this very answer: no chunk follows. */
  readonly isHeld: boolean
  /** The request reads more than this thread is for: nothing follows. */
  readonly isMisplaced: boolean
}
