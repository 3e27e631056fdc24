// Generated observations in which every field is sometimes null, and their distribution over lake and store.

import { join } from 'node:path'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { registerPartition } from '../../server/storage/manifest-store.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { recordFileName } from '../../shared/lake-layout.ts'
import { OBSERVATION_FIELDS } from '../../shared/observation.ts'
import { STORED_OBSERVATION_COLUMNS, type StoredObservation } from '../../shared/sql/observation-queries.ts'
import { writeParquet } from './record-server.ts'

const MINUTE = 60_000

const TEXTS: Readonly<Record<string, readonly string[]>> = {
  raw_metar: ['KNYC 010051Z "AUTO", 10SM', 'METAR KMDW 010053Z\nRMK', 'é', ''],
  weather_codes: ['-RA BR', '+TSRA'],
}

/** Two stations around the turn of a year; sometimes a special report accompanies a routine one. */
export function observationSet(seed: number, fromMs: number, count: number): StoredObservation[] {
  const random = new SeededRandom(seed, 'observation-set')
  const observations: StoredObservation[] = []
  for (let hour = 0; hour < count; hour++) {
    for (const station of ['NYC', 'MDW']) {
      const observedMs = fromMs + hour * 60 * MINUTE + random.below(3) * MINUTE
      observations.push(randomObservation(random, station, observedMs, 'METAR'))
      if (random.isWithin(0.3)) observations.push(randomObservation(random, station, observedMs, 'SPECI'))
    }
  }
  return observations
}

function randomObservation(
  random: SeededRandom,
  station: string,
  observedMs: number,
  type: 'METAR' | 'SPECI',
): StoredObservation {
  const values = Object.fromEntries(
    OBSERVATION_FIELDS.map((field) => {
      if (field.nullable && random.isWithin(0.3)) return [field.name, null]
      if (field.type === 'string')
        return [field.name, random.pick(pickable(TEXTS[field.name] ?? ['CLR', 'OVC']))]
      if (field.type === 'instant') return [field.name, observedMs - random.below(50) * MINUTE]
      if (field.type === 'integer') return [field.name, random.below(36) * 10]
      return [field.name, (random.below(20_000) - 4_000) / 100]
    }),
  )
  return {
    ...(values as unknown as StoredObservation),
    station_code: station,
    observed_at: observedMs,
    received_at: random.isWithin(0.5) ? null : observedMs + 90_000,
    observation_type: type,
    source: random.pick(['awc', 'iem', 'ncei']),
  }
}

function pickable(texts: readonly string[]): readonly [string, ...string[]] {
  return texts as readonly [string, ...string[]]
}

const SQL_TYPES = { text: 'VARCHAR', timestamptz: 'TIMESTAMPTZ', float8: 'DOUBLE', int4: 'INTEGER' } as const

/** Rows before the cut-over of their station and year go to the lake, the others to the store. */
export async function distributeObservations(
  observations: readonly StoredObservation[],
  cutOverOf: (station: string, year: number) => number,
  { lake, postgres }: { readonly lake: string; readonly postgres: Postgres },
): Promise<void> {
  const isCold = (row: StoredObservation): boolean =>
    row.observed_at < cutOverOf(row.station_code, new Date(row.observed_at).getUTCFullYear())
  const groups = new Map<string, StoredObservation[]>()
  for (const row of observations.filter(isCold)) {
    const key = `${row.station_code} ${new Date(row.observed_at).getUTCFullYear()}`
    groups.set(key, [...(groups.get(key) ?? []), row])
  }
  await postgres.transaction(async (transaction) => {
    await transaction.run({
      text: "DELETE FROM lake_manifest WHERE dataset = 'observations'",
      parameters: [],
    })
    await transaction.run({ text: 'DELETE FROM observations', parameters: [] })
    await writeObservations(
      transaction,
      observations.filter((row) => !isCold(row)).map((observation) => ({ observation, filled: {} })),
      (_, incoming) => incoming,
    )
  })
  for (const [key, rows] of groups) {
    const [station = '', year = ''] = key.split(' ')
    const path = recordFileName('observations', station, year)
    await writeObservationFile(join(lake, path), rows)
    const [from, to] = [Date.UTC(Number(year), 0), Date.UTC(Number(year) + 1, 0)]
    await postgres.transaction((transaction) =>
      registerPartition(transaction, {
        dataset: 'observations',
        scope: station,
        period_start: from,
        period_end: to,
        cut_over: Math.min(Math.max(cutOverOf(station, Number(year)), from), to),
        path,
        rows: BigInt(rows.length),
        size_bytes: 1n,
        sha256: '',
      }),
    )
  }
}

async function writeObservationFile(path: string, rows: readonly StoredObservation[]): Promise<void> {
  const columns = Object.entries(STORED_OBSERVATION_COLUMNS)
  const tuples = rows.map((row) => {
    const values = columns.map(([name, type]) => {
      const value = row[name as keyof StoredObservation]
      if (value === null) return 'NULL'
      if (type === 'timestamptz') return `make_timestamptz(${Number(value) * 1000})`
      return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value)
    })
    return `(${values.join(',')})`
  })
  const declared = columns.map(([name, type]) => `${name} ${SQL_TYPES[type]}`).join(', ')
  await writeParquet(path, declared, tuples, 'observed_at', 'observations.v1')
}
