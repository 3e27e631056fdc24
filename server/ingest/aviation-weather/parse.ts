// JSON of the aviation weather feed (aviationweather.gov/api/data/metar?format=json) → observations. The weather is decoded from
// the report's text: the feed's own fields round the altimeter to 0.1 hPa and do not show which groups were reported. Station,
// time, type and receive time come from the fields, in the forms used before and after September 2025.

import { METAR_TEXT_CHARACTERS_MAX } from '../../../shared/limits.ts'
import type { Observation, ObservationType } from '../../../shared/observation.ts'
import { isJsonObject } from '../../../shared/parsed-json.ts'
import type { Station } from '../../../shared/stations.ts'
import { readStationReport } from '../metar/station-report.ts'
import { MALFORMED, type ParsedRow } from '../observation-fetch.ts'

export const AWC = 'awc'

/** Decodes entries one by one; `stations` are the requested ones. */
export function* parseEntries(
  entries: readonly unknown[],
  stations: readonly Station[],
): Generator<ParsedRow, void, void> {
  const byIcao = new Map(stations.map((station) => [station.icao, station]))
  for (const entry of entries) yield parseEntry(entry, byIcao)
}

function parseEntry(entry: unknown, stations: ReadonlyMap<string, Station>): ParsedRow {
  const { icaoId, obsTime, metarType, receiptTime, rawOb } = isJsonObject(entry) ? entry : {}
  if (typeof icaoId !== 'string' || typeof rawOb !== 'string' || !isUnixSeconds(obsTime)) return MALFORMED
  const station = stations.get(icaoId)
  if (station === undefined) return { kind: 'rejected', reason: 'other_station' }
  const text = rawOb
    .slice(0, METAR_TEXT_CHARACTERS_MAX + 1)
    .trim()
    .replaceAll(/\s+/g, ' ')
  const { decoded } = readStationReport(text, station, obsTime * 1000)
  const type = isObservationType(metarType) ? metarType : decoded?.type
  if (decoded === null || !type) return MALFORMED
  const observation: Observation = {
    station_code: station.code,
    observed_at: decoded.observedAtMs,
    observation_type: type,
    source: AWC,
    raw_metar: text,
    received_at: readReceiptTime(receiptTime),
    ...decoded.weather,
  }
  return { kind: 'row', observation }
}

function isUnixSeconds(value: unknown): value is number {
  // A value in milliseconds would be a year after 33,000, which is not a valid date.
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value < 8.64e12 / 1000
}

function isObservationType(value: unknown): value is ObservationType {
  return value === 'METAR' || value === 'SPECI'
}

/** `2026-01-19T18:58:16.068Z`, or before September 2025 `2023-10-27 15:25:34`, both UTC. */
function readReceiptTime(value: unknown): number | null {
  if (typeof value !== 'string') return null
  const match = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2}(?:\.\d{1,3})?)Z?$/.exec(value)
  const ms = match === null ? Number.NaN : Date.parse(`${match[1]}T${match[2]}Z`)
  return Number.isNaN(ms) ? null : ms
}
