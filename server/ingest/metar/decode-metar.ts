// One METAR or SPECI text → the observation's weather in raw units. metar-taf-parser reads present weather, altimeter and remarks;
// report-text.ts reads what that library gets wrong in US reports; this file decides when two groups contradict each other. Nothing
// is guessed: a value that a report does not state is null.

import { AltimeterUnit, type IMetar, parseMetar, type Remark, RemarkType } from 'metar-taf-parser'
import { METAR_TEXT_CHARACTERS_MAX } from '../../../shared/limits.ts'
import { TRACE_INCHES, type Weather } from '../../../shared/observation.ts'
import { fahrenheitOf, HPA_PER_INHG, roundTo } from '../../../shared/unit-factors.ts'
import { feelsLikeF, relativeHumidity } from './derived.ts'
import {
  readSkyLayers,
  readVisibilityMiles,
  readWind,
  type ReportText,
  skyFieldsOf,
  splitReport,
} from './report-text.ts'
import { resolvePeakTime, resolveReportTime } from './report-time.ts'

/** The text is not a report: garbage, a NIL report, an impossible time. */
export class MetarError extends Error {
  constructor(detail: string, cause?: unknown) {
    super(detail, cause === undefined ? undefined : { cause })
    this.name = 'MetarError'
  }
}

export type DecodedMetar = ReturnType<typeof decodeMetar>

/**
 * Decodes a report. `referenceMs` (its receive time, or its known time) supplies the month, which the text lacks. Throws
 * `MetarError`.
 */
export function decodeMetar(text: string, referenceMs: number) {
  if (text.length > METAR_TEXT_CHARACTERS_MAX) {
    throw new MetarError(`a report of ${text.length} characters is no report`)
  }
  const report = splitReport(text)
  if (report === undefined) throw new MetarError(`not a report: ${text.slice(0, 40)}`)
  if (report.body.includes('NIL')) throw new MetarError('a NIL report')
  const { day, hour, minute } = report.header
  const observedAtMs = resolveReportTime(day, hour, minute, referenceMs)
  if (observedAtMs === undefined) throw new MetarError(`no such time: ${text.slice(0, 40)}`)
  const parsed = parseWithLibrary(report)
  const temperatures = readTemperatures(report, parsed.remarks)
  return {
    icao: report.header.icao,
    /** Null when the text has no keyword, as in the archives and in the feed before 2025. */
    type: report.header.type,
    observedAtMs,
    isCorrection: report.header.isCorrection,
    /** The values behind `temp_f` and `dewpoint_f`, in °C as reported. */
    temperatureC: temperatures.temperatureC,
    dewpointC: temperatures.dewpointC,
    /** All layers; `weather` has the first four. */
    skyLayers: readSkyLayers(report.body),
    weather: weatherOf(report, parsed, temperatures, observedAtMs),
  }
}

/**
 * The remarks that are served. The library must not see others: it takes any word after `CIG 029` or `VIS 2` for a place, so `CIG
 * 029 SLP106` would lose its pressure.
 */
const SERVED_REMARKS =
  /PK WND \S+|(?<!\S)(?:SLP\d{3}|T[01]\d{3}(?:[01]\d{3}|\/{4})?|P\d{4}|[12][01]\d{3}|4[01]\d{3}[01]\d{3}|4\/\d{3})(?!\S)/g

/**
 * Groups that the library must not see: it fails on a variable wind direction without a wind and on a sector visibility. Neither is
 * served, and report-text.ts reads wind, visibility and sky.
 */
const OWN_GROUPS =
  /^(\d{3}V\d{3}|\d{4}[NESW]{1,2}|\S*\d(KTS?|MPS|KMH|SM)|(FEW|SCT|BKN|OVC|VV)[\d/]\S*|CLR|SKC)$/

function parseWithLibrary({ header, body, remarks }: ReportText): IMetar {
  const groups = body.filter((group) => !OWN_GROUPS.test(group))
  const time = [header.day, header.hour, header.minute].map((part) => String(part).padStart(2, '0')).join('')
  const served = remarks.match(SERVED_REMARKS) ?? []
  try {
    return parseMetar([header.icao, `${time}Z`, ...groups, 'RMK', ...served].join(' '))
  } catch (error) {
    throw new MetarError('metar-taf-parser rejects the report', error)
  }
}

/** A T-group that differs by more from the body (°C) is a typing error: the body counts, as in the feed's decoder. */
const T_GROUP_DIFFERENCE_C_MAX = 1

function readTemperatures({ body, remarks }: ReportText, parsedRemarks: readonly Remark[]) {
  // `05/` has a temperature but no dewpoint; the library drops both.
  const match = body
    .map((group) => /^(M?\d{2})\/(M?\d{2}|\/\/|XX)?$/.exec(group))
    .find((found) => found !== null)
  const bodyTemperatureC = celsiusOf(match?.[1])
  const bodyDewpointC = celsiusOf(match?.[2])
  const tenths = findRemark(parsedRemarks, RemarkType.HourlyTemperatureDewPoint)
  const temperatureC = preferTenths(tenths?.temperature, bodyTemperatureC)
  const dewpointC = preferTenths(tenths?.dewPoint, bodyDewpointC)
  /** Whether this station measures whole °F (ASOS, remark AO2), so that its tenths of a °C are a converted integer °F. */
  const isWholeFahrenheit = /(^| )A[O0]2A?( |$)/.test(remarks)
  return {
    temperatureC,
    dewpointC,
    temp_f: fahrenheit(temperatureC, isWholeFahrenheit && temperatureC === tenths?.temperature),
    dewpoint_f: fahrenheit(dewpointC, isWholeFahrenheit && dewpointC === tenths?.dewPoint),
    isWholeFahrenheit,
  }
}

function celsiusOf(group: string | undefined): number | null {
  if (group === undefined || !/\d/.test(group)) return null
  return (group.startsWith('M') ? -Number(group.slice(1)) : Number(group)) + 0
}

function preferTenths(tenthsC: number | undefined, bodyC: number | null): number | null {
  if (tenthsC === undefined) return bodyC
  return bodyC !== null && Math.abs(tenthsC - bodyC) > T_GROUP_DIFFERENCE_C_MAX ? bodyC : tenthsC + 0
}

function fahrenheit(celsius: number | null, isWhole: boolean): number | null {
  if (celsius === null) return null
  return isWhole ? Math.round(fahrenheitOf(celsius)) + 0 : fahrenheitOf(celsius)
}

function weatherOf(
  report: ReportText,
  parsed: IMetar,
  temperatures: ReturnType<typeof readTemperatures>,
  observedAtMs: number,
): Weather {
  const { temperatureC, dewpointC, temp_f, dewpoint_f, isWholeFahrenheit } = temperatures
  const wind = readWind(report.body)
  const altimeterInhg = readAltimeterInhg(parsed)
  const humidity = relativeHumidity(temperatureC, dewpointC)
  return {
    temp_f,
    dewpoint_f,
    wind_speed_kt: wind?.speedKt ?? null,
    altimeter_inhg: altimeterInhg,
    visibility_miles: readVisibilityMiles(report.body),
    relative_humidity: humidity,
    wind_dir_degrees: wind?.directionDegrees ?? null,
    wind_gust_kt: wind?.gustKt ?? null,
    sea_level_pressure_mb: readSeaLevelPressure(parsed.remarks, altimeterInhg),
    weather_codes: readWeatherCodes(parsed),
    ...skyFieldsOf(readSkyLayers(report.body)),
    ...remarkFields(parsed.remarks, isWholeFahrenheit, observedAtMs),
    feels_like_f: feelsLikeF(temp_f, humidity, wind?.speedKt ?? null),
  }
}

function readAltimeterInhg({ altimeter }: IMetar): number | null {
  if (altimeter === undefined) return null
  return altimeter.unit === AltimeterUnit.InHg ? altimeter.value : roundTo(altimeter.value / HPA_PER_INHG, 2)
}

/** A value outside this range comes from a broken sensor (the records are 26.3 and 31.9 inHg). */
const PLAUSIBLE_ALTIMETER_INHG = { min: 26, max: 32 } as const
/** The expected pressure if there is no usable altimeter setting. Results are then 955.0 … 1054.9 hPa, as in the feed. */
const USUAL_PRESSURE_HPA = 1004.95

/**
 * `SLP164` is 1016.4 or 916.4 hPa. The library decides by the first digit, which turns 986 hPa (SLP860) into 1086. The candidate
 * nearer to the altimeter setting is right: the two quantities never differ by 50 hPa.
 */
function readSeaLevelPressure(remarks: readonly Remark[], altimeterInhg: number | null): number | null {
  const raw = findRemark(remarks, RemarkType.SeaLevelPressure)?.raw
  if (raw === undefined) return null
  const tenths = Number(raw.slice('SLP'.length))
  const isUsable =
    altimeterInhg !== null &&
    altimeterInhg >= PLAUSIBLE_ALTIMETER_INHG.min &&
    altimeterInhg <= PLAUSIBLE_ALTIMETER_INHG.max
  const expectedHpa = isUsable ? altimeterInhg * HPA_PER_INHG : USUAL_PRESSURE_HPA
  const [low, high] = [900 + tenths / 10, 1000 + tenths / 10]
  return roundTo(expectedHpa - low <= high - expectedHpa ? low : high, 1)
}

function readWeatherCodes({ weatherConditions }: IMetar): string | null {
  const codes = weatherConditions.map(
    ({ intensity = '', descriptive = '', phenomenons }) =>
      `${intensity}${descriptive}${phenomenons.join('')}`,
  )
  return codes.length === 0 ? null : codes.join(' ')
}

type RemarkFields = Pick<
  Weather,
  | 'precip_1hr_inches'
  | 'snow_depth_inches'
  | 'max_temp_6hr_f'
  | 'min_temp_6hr_f'
  | 'max_temp_24hr_f'
  | 'min_temp_24hr_f'
  | Extract<keyof Weather, `peak_${string}`>
>

function remarkFields(remarks: readonly Remark[], isWhole: boolean, observedAtMs: number): RemarkFields {
  const inches = findRemark(remarks, RemarkType.HourlyPrecipitationAmount)?.amount
  const daily = findRemark(remarks, RemarkType.HourlyMaximumMinimumTemperature)
  const peak = findRemark(remarks, RemarkType.WindPeak)
  const peakTimeMs =
    peak === undefined ? undefined : resolvePeakTime(peak.startHour, peak.startMinute, observedAtMs)
  return {
    // P0000 means that it rained or snowed, but less than 0.01 inch.
    precip_1hr_inches: inches === 0 ? TRACE_INCHES : (inches ?? null),
    snow_depth_inches: findRemark(remarks, RemarkType.SnowDepth)?.depth ?? null,
    peak_wind_speed_kt: peak?.speed ?? null,
    peak_wind_dir_degrees: peak?.degrees ?? null,
    peak_wind_time: peakTimeMs ?? null,
    max_temp_6hr_f: fahrenheit(
      findRemark(remarks, RemarkType.HourlyMaximumTemperature)?.max ?? null,
      isWhole,
    ),
    min_temp_6hr_f: fahrenheit(
      findRemark(remarks, RemarkType.HourlyMinimumTemperature)?.min ?? null,
      isWhole,
    ),
    max_temp_24hr_f: fahrenheit(daily?.max ?? null, isWhole),
    min_temp_24hr_f: fahrenheit(daily?.min ?? null, isWhole),
  }
}

/** The first remark of a type. */
function findRemark<T extends Remark['type']>(
  remarks: readonly Remark[],
  type: T,
): Extract<Remark, { type: T }> | undefined {
  return remarks.find((remark): remark is Extract<Remark, { type: T }> => remark.type === type)
}
