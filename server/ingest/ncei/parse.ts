// NCEI's Global Historical Climatology Network hourly (GHCNh), one station's year as pipe-separated text → observations. The
// columns have passed NCEI's quality control, so they decide. If the report's text (in the remarks column) agrees, its exact value
// is used. Values without a column come from the text. Only METAR and SPECI values are taken: a row may hold values of several
// report types.
// Documentation: https://www.ncei.noaa.gov/oa/global-historical-climatology-network/hourly/doc/ghcnh_DOCUMENTATION.pdf

import {
  type Observation,
  type ObservationType,
  TRACE_INCHES,
  type Weather,
} from '../../../shared/observation.ts'
import type { Station } from '../../../shared/stations.ts'
import {
  fahrenheitOf,
  HPA_PER_INHG,
  METRES_PER_FOOT,
  METRES_PER_SECOND_PER_KNOT,
  METRES_PER_STATUTE_MILE,
  MM_PER_INCH,
  roundTo,
} from '../../../shared/unit-factors.ts'
import { type ArchiveRow, readArchiveTable, readNumber, readUtcMinute } from '../archive-table.ts'
import { readStationReport } from '../metar/station-report.ts'
import type { DecodedMetar } from '../metar/decode-metar.ts'
import { feelsLikeF, relativeHumidity } from '../metar/derived.ts'
import { type SkyFields, skyFieldsOf, type SkyLayer } from '../metar/report-text.ts'
import { MALFORMED, type ParsedRow } from '../observation-fetch.ts'

export const NCEI = 'ncei'

/** Column names of the 2024 and the 2025 format. */
const STATION_COLUMNS = ['STATION', 'Station_ID'] as const
const REMARK_COLUMNS = ['REM', 'remarks'] as const
const REQUIRED_COLUMNS = [
  ...['Year', 'Month', 'Day', 'Hour', 'Minute'].map((name) => [name]),
  ...['temperature', 'wind_speed', 'altimeter'].map((name) => [name]),
  STATION_COLUMNS,
  REMARK_COLUMNS,
]

/**
 * Quality codes of usable values (GHCNh documentation, table 3): blank (no flag), 0 and 4 passed the gross limits check, 1 and 5
 * passed all checks, 9 passed the limits check if present. Dropped are 2 and 6 (suspect), 3 and 7 (erroneous) and every letter:
 * those of GHCNh's own checks mean failures, and an unknown code is not trusted.
 */
const GOOD_QUALITY = /^[01459]?$/

/** `FM15` (2025) and `FM15-METAR` (2024): routine; `FM16`: special. Anything else is not METAR or SPECI. */
const REPORT_TYPE = /^FM1([56])(?:-|$)/

/** Decodes the rows one by one. Throws `UpstreamError` if the text is not such a table. */
export function* parseGhcnh(text: string, station: Station): Generator<ParsedRow, void, void> {
  for (const row of readArchiveTable(NCEI, text, '|', REQUIRED_COLUMNS))
    yield row === null ? MALFORMED : parseRow(row, station)
}

function parseRow(row: ArchiveRow, station: Station): ParsedRow {
  const observedAtMs = readTime(row)
  if (observedAtMs === null) return MALFORMED
  if (firstOf(row, STATION_COLUMNS) !== station.ghcnId) return { kind: 'rejected', reason: 'other_station' }
  const reportType = readReportType(row)
  if (reportType === null) return { kind: 'rejected', reason: 'other_report' }
  const { text, decoded } = readStationReport(readText(row), station, observedAtMs)
  const observation: Observation = {
    station_code: station.code,
    observed_at: observedAtMs,
    observation_type: decoded?.type ?? reportType,
    source: NCEI,
    raw_metar: text,
    received_at: null,
    ...weatherOf(row, decoded),
  }
  return { kind: 'row', observation }
}

function readTime(row: ArchiveRow): number | null {
  const [year, month, day, hour, minute] = ['Year', 'Month', 'Day', 'Hour', 'Minute'].map((column) =>
    (row(column) ?? '').padStart(2, '0'),
  )
  return readUtcMinute(`${year}-${month}-${day} ${hour}:${minute}`)
}

/** The row's type is that of its temperature or, without one, of the first element that is METAR or SPECI. */
function readReportType(row: ArchiveRow): ObservationType | null {
  for (const element of ['temperature', 'wind_speed', 'visibility', 'altimeter', 'dew_point_temperature']) {
    const match = REPORT_TYPE.exec(row(`${element}_Report_Type`) ?? '')
    if (match !== null) return match[1] === '5' ? 'METAR' : 'SPECI'
  }
  return null
}

/**
 * What may follow a report: the observer's initials in parentheses (reports have none), an end mark, another report, and further
 * sections of the remarks, each a code and a length or, for edited values, a number.
 */
const REPORT_TAIL =
  / ?\(.*$|=.*$| (?:METAR|SPECI) .*$| ?(?:SYN|MET|AWY|SOD|SOM|SMC|OBS)\d{3}.*$| ?EQD ?[QPRCDN]\d{2}.*$/

/**
 * `MET11512/31/24 19:51:03 METAR KJFK 010051Z … (RR)SYN086…`: length, local time, the report, the observer's initials, the
 * next section. Only the report is kept.
 */
function readText(row: ArchiveRow): string | null {
  const match = /(?:METAR|SPECI) .*/.exec(firstOf(row, REMARK_COLUMNS) ?? '')
  const text = match?.[0].replace(REPORT_TAIL, '').trim()
  return text === undefined || text === '' ? null : text
}

function firstOf(row: ArchiveRow, columns: readonly string[]): string | undefined {
  return columns.map((column) => row(column)).find((value) => value !== undefined)
}

/** `rejected`: quality control found the value wrong, so the text's value must not be used either. */
type Reading = number | 'absent' | 'rejected'

function readElement(row: ArchiveRow, element: string): Reading {
  const value = readNumber(row(element))
  if (value === null || !REPORT_TYPE.test(row(`${element}_Report_Type`) ?? '')) return 'absent'
  return GOOD_QUALITY.test(row(`${element}_Quality_Code`) ?? '') ? value : 'rejected'
}

/**
 * The column's value after conversion, or the text's value if they agree within `tolerance`: the archive has converted and rounded
 * the value that the text states exactly.
 */
function settle(
  reading: Reading,
  fromText: number | null | undefined,
  tolerance: number,
  convert: (value: number) => number,
): number | null {
  if (reading === 'rejected') return null
  if (reading === 'absent') return fromText ?? null
  const value = convert(reading)
  const isSame = fromText !== null && fromText !== undefined && Math.abs(value - fromText) <= tolerance
  return isSame ? fromText : value
}

function weatherOf(row: ArchiveRow, decoded: DecodedMetar | null): Weather {
  const text = decoded?.weather
  const temperature = settleTemperature(row, 'temperature', decoded?.temperatureC, text?.temp_f)
  const dewpoint = settleTemperature(row, 'dew_point_temperature', decoded?.dewpointC, text?.dewpoint_f)
  const wind = settleWind(row, text)
  const humidity = relativeHumidity(temperature.celsius, dewpoint.celsius)
  return {
    temp_f: temperature.fahrenheit,
    dewpoint_f: dewpoint.fahrenheit,
    altimeter_inhg: settle(readElement(row, 'altimeter'), text?.altimeter_inhg, 0.011, (hpa) =>
      roundTo(hpa / HPA_PER_INHG, 2),
    ),
    visibility_miles: settle(readElement(row, 'visibility'), text?.visibility_miles, 0.01, milesOf),
    relative_humidity: humidity,
    ...wind,
    sea_level_pressure_mb: settle(
      readElement(row, 'sea_level_pressure'),
      text?.sea_level_pressure_mb,
      0.05,
      (hpa) => hpa,
    ),
    weather_codes: text?.weather_codes ?? null,
    ...settleSky(row, decoded?.skyLayers ?? []),
    precip_1hr_inches: settlePrecipitation(row, text?.precip_1hr_inches),
    snow_depth_inches: settle(readElement(row, 'snow_depth'), text?.snow_depth_inches, 0.6, (mm) =>
      roundTo(mm / MM_PER_INCH, 1),
    ),
    peak_wind_speed_kt: text?.peak_wind_speed_kt ?? null,
    peak_wind_dir_degrees: text?.peak_wind_dir_degrees ?? null,
    peak_wind_time: text?.peak_wind_time ?? null,
    feels_like_f: feelsLikeF(temperature.fahrenheit, humidity, wind.wind_speed_kt),
    max_temp_6hr_f: text?.max_temp_6hr_f ?? null,
    min_temp_6hr_f: text?.min_temp_6hr_f ?? null,
    max_temp_24hr_f: text?.max_temp_24hr_f ?? null,
    min_temp_24hr_f: text?.min_temp_24hr_f ?? null,
  }
}

function settleTemperature(
  row: ArchiveRow,
  element: string,
  textC: number | null | undefined,
  textF: number | null | undefined,
) {
  const celsius = settle(readElement(row, element), textC, 0.051, (value) => value)
  if (celsius === null) return { celsius: null, fahrenheit: null }
  // If the text's value was used, take its °F: the text shows whether the station measures whole °F.
  return { celsius, fahrenheit: celsius === textC ? (textF ?? null) : fahrenheitOf(celsius) }
}

type WindFields = Pick<Weather, 'wind_speed_kt' | 'wind_dir_degrees' | 'wind_gust_kt'>

/** Knots are reported whole; the archive's tenths of m/s are finer than half a knot, so rounding restores them. */
function settleWind(row: ArchiveRow, text: Weather | undefined): WindFields {
  const speed = settle(readElement(row, 'wind_speed'), text?.wind_speed_kt, 0, knotsOf)
  const gust = settle(readElement(row, 'wind_gust'), text?.wind_gust_kt, 0, knotsOf)
  const direction = readElement(row, 'wind_direction')
  // A variable wind has no direction, even if the column has one.
  const isVariable =
    (row('wind_direction_Measurement_Code') ?? '').startsWith('V') ||
    (text !== undefined && text.wind_speed_kt !== null && text.wind_dir_degrees === null)
  const isUsable = speed !== null && !isVariable && (typeof direction !== 'number' || direction <= 360)
  // A calm is reported as 00000KT.
  if (speed === 0) return { wind_speed_kt: 0, wind_dir_degrees: 0, wind_gust_kt: gust }
  return {
    wind_speed_kt: speed,
    wind_dir_degrees: isUsable ? settle(direction, text?.wind_dir_degrees, 0, (degrees) => degrees) : null,
    wind_gust_kt: speed === null ? null : gust,
  }
}

function knotsOf(metresPerSecond: number): number {
  return Math.round(metresPerSecond / METRES_PER_SECOND_PER_KNOT)
}

/** Reports state whole miles and sixteenths. The archive's whole metres are precise enough to restore them. */
function milesOf(kilometres: number): number {
  const miles = (kilometres * 1000) / METRES_PER_STATUTE_MILE
  const sixteenths = Math.round(miles * 16) / 16
  return Math.abs(miles - sixteenths) <= 0.002 ? sixteenths : roundTo(miles, 2)
}

/** `T` (2025) or `2-Trace` (2024) beside 0.0 mm. */
function settlePrecipitation(row: ArchiveRow, fromText: number | null | undefined): number | null {
  const isTrace = /^(T|2-Trace)$/.test(row('precipitation_Measurement_Code') ?? '')
  return settle(readElement(row, 'precipitation'), fromText, 0.006, (mm) =>
    isTrace && mm === 0 ? TRACE_INCHES : roundTo(mm / MM_PER_INCH, 2),
  )
}

/**
 * The sky from the text; from the columns (`SCT:04;`, metres) if they have more layers, since the text is from the first
 * transmission; no layers at all if one is bad.
 */
function settleSky(row: ArchiveRow, textLayers: readonly SkyLayer[]): SkyFields {
  const layers = [1, 2, 3, 4].map((number) => readLayer(row, number)).filter((layer) => layer !== null)
  if (layers.some((layer) => layer.isBad)) return skyFieldsOf([])
  return skyFieldsOf(textLayers.length >= layers.length ? textLayers : layers)
}

function readLayer(row: ArchiveRow, number: number) {
  // The 2025 format renamed the columns of 2024 and does not reuse their names.
  const isNew = row(`sky_cover_summation_${number}`) !== undefined
  const prefix = isNew ? 'sky_cover_summation' : 'sky_cover'
  const name = `${prefix}_${number}`
  const cover = /^([A-Z]{2,3}):/.exec(row(name) ?? '')?.[1]
  if (cover === undefined || !REPORT_TYPE.test(row(`${name}_Report_Type`) ?? '')) return null
  const metres = readElement(row, `${prefix}_baseht_${number}`)
  return {
    cover,
    // Bases are reported in hundreds of feet.
    baseFt: typeof metres === 'number' ? Math.round(metres / METRES_PER_FOOT / 100) * 100 : null,
    isBad: metres === 'rejected' || !GOOD_QUALITY.test(row(`${name}_Quality_Code`) ?? ''),
  }
}
