// CSV of the Iowa Environmental Mesonet's asos.py → observations. The report's text is decoded as for the live feed, so that both
// sources give equal values. The archive's columns fill in what the text leaves out (for example 0.00 inch of precipitation if the
// report has no P group). Rows that the archive made from other data are dropped.
// Documentation: https://mesonet.agron.iastate.edu/cgi-bin/request/asos.py?help

import {
  type Observation,
  type ObservationType,
  TRACE_INCHES,
  type Weather,
} from '../../../shared/observation.ts'
import type { Station } from '../../../shared/stations.ts'
import { type ArchiveRow, readArchiveTable, readNumber, readUtcMinute } from '../archive-table.ts'
import { readStationReport } from '../metar/station-report.ts'
import { relativeHumidity } from '../metar/derived.ts'
import { MALFORMED, type ParsedRow } from '../observation-fetch.ts'
import { fillGroups } from '../observation-precedence.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'

export const IEM = 'iem'

/** What a full answer must have: without one of these the archive has changed its format. */
// oxfmt-ignore
export const IEM_COLUMNS = [
  'station', 'valid', 'tmpf', 'dwpf', 'drct', 'sknt', 'p01i', 'alti', 'mslp', 'vsby', 'gust',
  'skyc1', 'skyc2', 'skyc3', 'skyc4', 'skyl1', 'skyl2', 'skyl3', 'skyl4', 'wxcodes',
  'peak_wind_gust', 'peak_wind_drct', 'peak_wind_time', 'metar', 'snowdepth',
] as const

/** Texts that the archive composed from NCEI's GHCNh and from the 5-minute data relayed by MADIS. */
const SYNTHETIC_TEXT = /IEM_GHCNH$|MADISHF/

/**
 * Decodes the rows of one report type one by one: the archive's texts have no keyword. Throws `UpstreamError` if the text is not such a
 * table or ends within a line.
 */
export function* parseAsosCsv(
  text: string,
  station: Station,
  type: ObservationType,
  required: readonly string[] = IEM_COLUMNS,
): Generator<ParsedRow, void, void> {
  const rows = readArchiveTable(
    IEM,
    text,
    ',',
    required.map((column) => [column]),
  )
  if (!text.endsWith('\n')) throw new UpstreamError(IEM, 'truncated', 'the table ends within a line')
  for (const row of rows) yield row === null ? MALFORMED : parseRow(row, station, type)
}

function parseRow(row: ArchiveRow, station: Station, type: ObservationType): ParsedRow {
  const observedAtMs = readUtcMinute(row('valid'))
  if (observedAtMs === null) return MALFORMED
  if (row('station') !== station.code) return { kind: 'rejected', reason: 'other_station' }
  const text = readText(row('metar'))
  if (text !== null && SYNTHETIC_TEXT.test(text)) return { kind: 'rejected', reason: 'synthetic' }
  const columns = weatherOfColumns(row)
  const report = readStationReport(text, station, observedAtMs)
  const observation: Observation = {
    station_code: station.code,
    observed_at: observedAtMs,
    observation_type: type,
    source: IEM,
    raw_metar: report.text,
    received_at: null,
    ...(report.decoded === null ? columns : fillGroups(report.decoded.weather, columns)),
  }
  return { kind: 'row', observation }
}

function readText(value: string | undefined): string | null {
  const text = (value ?? '').trim()
  return text === '' || text === 'M' || text === 'null' ? null : text
}

function weatherOfColumns(row: ArchiveRow): Weather {
  const [temp_f, dewpoint_f] = [readNumber(row('tmpf')), readNumber(row('dwpf'))]
  const columns: Weather = {
    temp_f,
    dewpoint_f,
    wind_speed_kt: readNumber(row('sknt')),
    altimeter_inhg: readNumber(row('alti')),
    visibility_miles: readNumber(row('vsby')),
    relative_humidity: relativeHumidity(celsiusOf(temp_f), celsiusOf(dewpoint_f)),
    wind_dir_degrees: readNumber(row('drct')),
    wind_gust_kt: readNumber(row('gust')),
    sea_level_pressure_mb: readNumber(row('mslp')),
    weather_codes: readText(row('wxcodes')),
    sky_cover_1: readText(row('skyc1')),
    sky_base_1_ft: readNumber(row('skyl1')),
    sky_cover_2: readText(row('skyc2')),
    sky_base_2_ft: readNumber(row('skyl2')),
    sky_cover_3: readText(row('skyc3')),
    sky_base_3_ft: readNumber(row('skyl3')),
    sky_cover_4: readText(row('skyc4')),
    sky_base_4_ft: readNumber(row('skyl4')),
    // The request says trace=T. The archive's default for a trace is 0.0001.
    precip_1hr_inches: row('p01i') === 'T' ? TRACE_INCHES : readNumber(row('p01i')),
    snow_depth_inches: readNumber(row('snowdepth')),
    peak_wind_speed_kt: readNumber(row('peak_wind_gust')),
    peak_wind_dir_degrees: readNumber(row('peak_wind_drct')),
    peak_wind_time: readUtcMinute(row('peak_wind_time')),
    feels_like_f: null,
    max_temp_6hr_f: null,
    min_temp_6hr_f: null,
    max_temp_24hr_f: null,
    min_temp_24hr_f: null,
  }
  // Fills no gaps, but computes the derived values (feels like) as for other sources.
  return fillGroups(columns, columns)
}

function celsiusOf(fahrenheit: number | null): number | null {
  return fahrenheit === null ? null : (fahrenheit - 32) / 1.8
}
