// A year of reports of four stations, one every six minutes, as lake files for the export benchmark: every column, with as many
// nulls as the archives have.

import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { recordFileName } from '../shared/lake-layout.ts'

export const OBSERVATION_YEAR = '2025'
const STATIONS = ['NYC', 'ORD', 'MIA', 'LAX'] as const
const REPORT_MS = 360_000

/** The second number: reports of every hundred that lack the value. */
const NUMBERS = [
  ['temp_f', 2, 800, 10],
  ['dewpoint_f', 2, 700, 10],
  ['wind_speed_kt', 1, 40, 1],
  ['altimeter_inhg', 1, 3100, 100],
  ['visibility_miles', 1, 11, 1],
  ['relative_humidity', 2, 1000, 10],
  ['wind_gust_kt', 85, 50, 1],
  ['sea_level_pressure_mb', 5, 10_300, 10],
  ['precip_1hr_inches', 80, 100, 100],
  ['snow_depth_inches', 98, 10, 1],
  ['peak_wind_speed_kt', 95, 60, 1],
  ['feels_like_f', 2, 900, 10],
  ['max_temp_6hr_f', 92, 900, 10],
  ['min_temp_6hr_f', 92, 900, 10],
  ['max_temp_24hr_f', 98, 900, 10],
  ['min_temp_24hr_f', 98, 900, 10],
] as const
const INTEGERS = [
  ['wind_dir_degrees', 10, 36, 10],
  ['sky_base_1_ft', 30, 120, 100],
  ['sky_base_2_ft', 60, 120, 100],
  ['sky_base_3_ft', 80, 120, 100],
  ['sky_base_4_ft', 99, 120, 100],
  ['peak_wind_dir_degrees', 95, 36, 10],
] as const
const TEXTS = [
  ['sky_cover_1', 2, ['CLR', 'FEW', 'SCT', 'BKN', 'OVC']],
  ['sky_cover_2', 60, ['SCT', 'BKN', 'OVC']],
  ['sky_cover_3', 80, ['BKN', 'OVC']],
  ['sky_cover_4', 99, ['OVC']],
  ['weather_codes', 80, ['RA', '-RA', 'BR', 'SN', '-SN BR', 'TSRA']],
] as const

/** Writes the files, sorted as in lake.md, and returns the number of reports. */
export async function writeObservationYear(lake: string, reportsPerStation: number): Promise<number> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  for (const station of STATIONS) {
    const path = join(lake, recordFileName('observations', station, OBSERVATION_YEAR))
    await mkdir(dirname(path), { recursive: true })
    await connection.run(
      `COPY (SELECT ${columnsSql(station)} FROM range(0, ${reportsPerStation}) reports(n)
        ORDER BY observed_at, observation_type) TO '${path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20480)`,
    )
  }
  connection.closeSync()
  instance.closeSync()
  return STATIONS.length * reportsPerStation
}

/** A pseudo-random number below `bound` that depends on report, station and use. */
function some(station: string, use: string, bound: number): string {
  return `(hash(n, '${station}', '${use}') % ${bound})::INTEGER`
}

function columnsSql(station: string): string {
  const mostly = (name: string, nullPercent: number, valueSql: string, type: string): string =>
    `CASE WHEN ${some(station, `${name} null`, 100)} < ${nullPercent} THEN NULL ELSE ${valueSql} END::${type} AS ${name}`
  const instantSql = `make_timestamptz(${Date.UTC(Number(OBSERVATION_YEAR), 0)}000 + n * ${REPORT_MS}000)`
  const digits = (use: string, bound: number): string => some(station, use, bound)
  return [
    `'${station}' AS station_code`,
    `${instantSql} AS observed_at`,
    `${instantSql} AS received_at`,
    `'METAR' AS observation_type`,
    `(['iem', 'ncei'])[1 + ${some(station, 'source', 2)}] AS source`,
    `'K${station} ' || n || 'Z ' || ${digits('wind', 36)} || '0' || ${digits('speed', 40)} || 'KT 10SM FEW0' ||
      ${digits('base', 90)} || ' ' || ${digits('t', 30)} || '/' || ${digits('d', 20)} || ' A29' ||
      ${digits('a', 99)} || ' RMK AO2 SLP' || ${digits('p', 999)} || ' T' || ${digits('tenths', 99_999_999)} AS raw_metar`,
    ...NUMBERS.map(([name, nulls, bound, perUnit]) =>
      mostly(name, nulls, `${some(station, name, bound)} / ${perUnit}.0`, 'DOUBLE'),
    ),
    ...INTEGERS.map(([name, nulls, bound, factor]) =>
      mostly(name, nulls, `${some(station, name, bound)} * ${factor}`, 'INTEGER'),
    ),
    ...TEXTS.map(([name, nulls, texts]) =>
      mostly(
        name,
        nulls,
        `([${texts.map((text) => `'${text}'`).join(',')}])[1 + ${some(station, name, texts.length)}]`,
        'VARCHAR',
      ),
    ),
    mostly('peak_wind_time', 95, `${instantSql} - INTERVAL 10 MINUTES`, 'TIMESTAMPTZ'),
  ].join(', ')
}
