// The complete service for the conformance tests: a real server with real workers over a copy of the sample lake and a relational
// store with the sample records. It also has what a contract test needs beside them: lists longer than every default limit, and
// values that the sample never has.

import assert from 'node:assert/strict'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { storeServices } from '../../server/catalogue/store-services.ts'
import type { ServeConfig } from '../../server/service/config.ts'
import type { RunningServer } from '../../server/service/server.ts'
import {
  type MarketRecord,
  type SeriesRecord,
  writeMarkets,
  writeSeries,
} from '../../server/storage/catalogue-store.ts'
import { writeClimateEstimates } from '../../server/storage/climate-store.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { OBSERVATION_FIELDS } from '../../shared/observation.ts'
import type { StoredObservation } from '../../shared/sql/observation-queries.ts'
import { addDays } from '../../shared/utc-date.ts'
import { startColdServer } from './cold-workers.ts'
import { makeSampleStore } from './postgres.ts'
import { SAMPLE_LAKE } from './sample-server.ts'
import { SharedByFiles } from './shared-by-files.ts'
import { TEST_CONFIG } from './test-server.ts'

export type JsonRecord = Readonly<Record<string, unknown>>

/** Entries of a list, more than its default limit of 1,000. */
const LONG_LIST = 1_010
/** A station with many meaningless records. */
export const LONG_STATION = 'SEA'
export const LONG_FROM = '2020-01-01'

export class ConformanceService {
  readonly server: RunningServer
  readonly url: string
  readonly lake: string
  readonly postgres: Postgres

  constructor(server: RunningServer, lake: string, postgres: Postgres) {
    this.server = server
    this.url = `http://127.0.0.1:${server.port}`
    this.lake = lake
    this.postgres = postgres
  }

  readonly get = (target: string, init?: RequestInit): Promise<Response> => fetch(this.url + target, init)

  /** The text of a response, which must have status 200. */
  readonly text = async (target: string): Promise<string> => {
    const response = await this.get(target)
    const text = await response.text()
    assert.equal(response.status, 200, `${target}: ${text.slice(0, 500)}`)
    return text
  }

  /** The records of a JSON list. */
  readonly rows = async (target: string): Promise<readonly JsonRecord[]> => {
    const rows: unknown = JSON.parse(await this.text(target))
    assert.ok(Array.isArray(rows), target)
    return rows
  }

  /** One JSON object. */
  readonly one = async (target: string): Promise<JsonRecord> => JSON.parse(await this.text(target))

  /** The body as bytes, whatever its type. */
  readonly bytes = async (target: string): Promise<Uint8Array> => {
    const response = await this.get(target)
    assert.equal(response.status, 200, target)
    return new Uint8Array(await response.arrayBuffer())
  }
}

export interface ServiceOptions {
  /** Adds to the lake and the store before the server starts. */
  readonly prepare?: (lake: string, postgres: Postgres) => Promise<void>
  readonly config?: Partial<ServeConfig>
}

/** Services by their `prepare`: files of one process that need the same one share it. */
const SERVICES = new Map<ServiceOptions['prepare'], SharedByFiles<ConformanceService>>()

/** The service of this test file, started before its first test and closed after its last. Call it at top level. */
export function serviceOfThisFile(options: ServiceOptions = {}): { readonly service: ConformanceService } {
  let shared = options.config === undefined ? SERVICES.get(options.prepare) : undefined
  shared ??= new SharedByFiles(() => startService(options))
  if (options.config === undefined) SERVICES.set(options.prepare, shared)
  const service = shared.ofThisFile()
  return {
    get service() {
      return service()
    },
  }
}

async function startService(
  options: ServiceOptions,
): Promise<{ readonly value: ConformanceService; readonly end: () => Promise<void> }> {
  const endings: (() => Promise<void>)[] = []
  const place = await makeSampleStore()
  endings.push(place.remove)
  const store = await openRelationalStore(place)
  endings.push(() => store.close())
  await store.migrate()
  const lake = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
  endings.push(() => rm(lake, { recursive: true, force: true }))
  await cp(SAMPLE_LAKE, lake, { recursive: true })
  await options.prepare?.(lake, store.postgres)
  const server = await startColdServer(
    { ...TEST_CONFIG, lake, ...options.config },
    {
      logger: pino({ level: process.env['TEST_LOG'] ?? 'silent' }),
      store: storeServices(store.postgres),
      storeAddress: store.postgres.address,
    },
  )
  endings.push(() => server.close())
  return {
    value: new ConformanceService(server, lake, store.postgres),
    async end() {
      for (const end of endings.toReversed()) await end()
    },
  }
}

/** An observation that reports only what is in `values`. */
export function bareObservation(
  values: Partial<StoredObservation> & Pick<StoredObservation, 'station_code' | 'observed_at'>,
): StoredObservation {
  const nothing = Object.fromEntries(OBSERVATION_FIELDS.map(({ name }) => [name, null]))
  return {
    ...(nothing as Partial<StoredObservation>),
    observation_type: 'METAR',
    source: 'iem',
    received_at: null,
    ...values,
  } as StoredObservation
}

export async function putObservations(
  postgres: Postgres,
  observations: readonly StoredObservation[],
): Promise<void> {
  const records = observations.map((observation) => ({ observation, filled: {} }))
  await postgres.transaction((transaction) =>
    writeObservations(transaction, records, (_, incoming) => incoming),
  )
}

export function seriesRecord(ticker: string, values: Partial<SeriesRecord> = {}): SeriesRecord {
  return {
    ticker,
    measure_type: 'high',
    title: ticker,
    station_code: null,
    category: 'Climate and Weather',
    frequency: 'daily',
    tags: [],
    active: false,
    settlement_sources: [],
    contract_url: null,
    fee_type: null,
    fee_multiplier: null,
    last_seen_at: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    ...values,
  }
}

export function marketRecord(ticker: string, values: Partial<MarketRecord> = {}): MarketRecord {
  const [series = ''] = ticker.split('-')
  return {
    ticker,
    event_ticker: ticker.slice(0, ticker.lastIndexOf('-')),
    series_ticker: series,
    station_code: null,
    status: 'finalized',
    result: 'no',
    title: null,
    open_time: null,
    close_time: Date.UTC(2020, 0, 1),
    market_type: 'binary',
    yes_sub_title: null,
    no_sub_title: null,
    strike_type: null,
    floor_strike: null,
    cap_strike: null,
    created_time: null,
    updated_time: null,
    expected_expiration_time: null,
    latest_expiration_time: null,
    settlement_timer_seconds: null,
    settlement_value: null,
    settlement_ts: null,
    expiration_value: null,
    can_close_early: null,
    price_level_structure: null,
    price_ranges: null,
    rules_primary: null,
    rules_secondary: null,
    volume: null,
    last_seen_at: Date.UTC(2026, 0, 1),
    ...values,
  }
}

/** A `prepare` for services: files that use it share a service. */
export async function prepareLongLists(_lake: string, postgres: Postgres): Promise<void> {
  await putLongLists(postgres)
}

/** More series, markets, observations and climate records than the default limits. */
export async function putLongLists(postgres: Postgres): Promise<void> {
  const numbers = Array.from({ length: LONG_LIST }, (_, index) => index)
  const tickers = numbers.map((number) => `ZZ${String(number).padStart(4, '0')}`)
  const fromMs = Date.parse(`${LONG_FROM}T00:00:00Z`)
  await postgres.transaction(async (transaction) => {
    await writeSeries(
      transaction,
      tickers.map((ticker) => seriesRecord(ticker)),
    )
    await writeMarkets(
      transaction,
      tickers.map((ticker) => marketRecord(`${ticker}-20JAN01-T1`)),
    )
    await writeClimateEstimates(
      transaction,
      numbers.map((number) => ({
        station_code: LONG_STATION,
        observation_date: addDays(LONG_FROM, number),
        high_temp_f: 60,
        low_temp_f: 40,
        received_at: fromMs,
      })),
    )
  })
  await putObservations(
    postgres,
    numbers.map((number) =>
      bareObservation({ station_code: LONG_STATION, observed_at: fromMs + number * 60_000 }),
    ),
  )
}
