// The state that a record thread keeps from request to request: DuckDB, its connections to the relational store, and its caches
// of files, manifests and the catalogue. The first request creates it, for one lake and one store.

import { BoundedMap } from '../../shared/bounded-map.ts'
import {
  STORE_CONNECT_TIMEOUT_MS_DEFAULT,
  STORE_STATEMENT_TIMEOUT_MS_DEFAULT,
  ZONES_CACHED_MAX,
} from '../../shared/limits.ts'
import { STATIONS, type Station } from '../../shared/stations.ts'
import type { RememberedVersions } from '../../shared/record-task.ts'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import type { RunStatement } from '../../shared/sql/statement.ts'
import { StatementRunner } from '../../shared/sql/statement-runner.ts'
import type { PinnedFiles } from '../lake/pinned-files.ts'
import type { AnswerIdentity } from './answer-identity.ts'
import { CandleIndex } from './candle-index.ts'
import { CandleLake } from './candle-lake.ts'
import { DuckLake } from './duck-lake.ts'
import { FileChecks } from './file-checks.ts'
import { ManifestCache } from './manifest-cache.ts'
import { ObservationLake } from './observation-lake.ts'
import { SeriesStations } from './series-stations.ts'
import { TimeZone } from '../../shared/time-zone.ts'

/** Connections of one record thread to the relational store. */
export const RECORD_STORE_CONNECTIONS = 2

export class RecordContext {
  readonly lake: string
  readonly candleIndex: CandleIndex
  readonly candleLake: CandleLake
  readonly observationLake: ObservationLake
  readonly duck: DuckLake
  readonly checks = new FileChecks()
  readonly candleManifest = new ManifestCache('candles')
  readonly observationManifest = new ManifestCache('observations')
  readonly seriesStations = new SeriesStations()
  readonly #store: StatementRunner | null
  readonly #zones = new BoundedMap<TimeZone>(ZONES_CACHED_MAX)

  /** Without a store (null), only the lake is read: every statement returns no rows. */
  constructor(lake: string, store: StoreAddress | null, duck = new DuckLake()) {
    this.lake = lake
    this.candleIndex = new CandleIndex(duck, this.checks)
    this.candleLake = new CandleLake(duck)
    this.observationLake = new ObservationLake(duck, this.checks)
    this.duck = duck
    this.#store =
      store &&
      new StatementRunner({
        address: store,
        applicationName: 'bookcast records',
        connections: RECORD_STORE_CONNECTIONS,
        statementTimeoutMs: STORE_STATEMENT_TIMEOUT_MS_DEFAULT,
        connectTimeoutMs: STORE_CONNECT_TIMEOUT_MS_DEFAULT,
      })
  }

  get hasStore(): boolean {
    return this.#store !== null
  }

  reader(signal: AbortSignal): RunStatement {
    return this.#store?.reader(signal) ?? (async () => [])
  }

  zone(name: string): TimeZone {
    let zone = this.#zones.get(name)
    if (zone === undefined) {
      zone = new TimeZone(name)
      this.#zones.set(name, zone)
    }
    return zone
  }

  /** The zone of a station, `undefined` for a code that the station table does not have. */
  stationZone(code: string): TimeZone | undefined {
    const station: Station | undefined = STATIONS.find((candidate) => candidate.code === code)
    return station === undefined ? undefined : this.zone(station.timeZone)
  }
}

export interface RecordRequest {
  readonly context: RecordContext
  readonly run: RunStatement
  readonly signal: AbortSignal
  readonly identity: AnswerIdentity
  readonly versions: RememberedVersions
  /** The files of the version that the request is pinned to. */
  readonly pinned?: PinnedFiles | undefined
  /** The thread serves small requests only; larger ones go to a bulk thread (request-cost.ts). */
  readonly isSmallExpected?: boolean
}
