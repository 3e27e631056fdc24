// Merges reports of the same station, time and type. The rules, in this order:
//   1. A corrected report (COR) replaces an uncorrected one entirely; nothing is filled in from the uncorrected one.
//   2. Otherwise each group (the fields of wind, sky, temperature …) is taken from one report: from one that has values, then by
//      the source precedence below, then the fuller group, then the one received later.
// The order of arrival does not matter: merging is commutative, associative and idempotent. For this, a merged record stores the
// origin of each group taken from another report.

import assert from 'node:assert/strict'
import type { Observation, ObservationSource, Weather } from '../../shared/observation.ts'
import { feelsLikeF } from './metar/derived.ts'
import { isCorrectedReport } from './metar/report-text.ts'

/** Higher wins: the live feed relays reports as sent, IEM archives the same texts, NCEI edits them and is late. */
const SOURCE_PRECEDENCE: Readonly<Record<ObservationSource, number>> = { awc: 3, iem: 2, ncei: 1 }

/** Fields that are taken from one report together. `feels_like_f` is in no group: it is computed from the merged fields. */
// oxfmt-ignore
const GROUPS = [
  { name: 'temperature', fields: ['temp_f', 'dewpoint_f', 'relative_humidity'] },
  { name: 'wind', fields: ['wind_speed_kt', 'wind_dir_degrees', 'wind_gust_kt'] },
  { name: 'altimeter', fields: ['altimeter_inhg'] },
  { name: 'visibility', fields: ['visibility_miles'] },
  { name: 'sea_level_pressure', fields: ['sea_level_pressure_mb'] },
  { name: 'weather', fields: ['weather_codes'] },
  { name: 'sky', fields: [
    'sky_cover_1', 'sky_base_1_ft', 'sky_cover_2', 'sky_base_2_ft',
    'sky_cover_3', 'sky_base_3_ft', 'sky_cover_4', 'sky_base_4_ft',
  ] },
  { name: 'precipitation', fields: ['precip_1hr_inches'] },
  { name: 'snow_depth', fields: ['snow_depth_inches'] },
  { name: 'peak_wind', fields: ['peak_wind_speed_kt', 'peak_wind_dir_degrees', 'peak_wind_time'] },
  { name: 'extremes_6hr', fields: ['max_temp_6hr_f', 'min_temp_6hr_f'] },
  { name: 'extremes_24hr', fields: ['max_temp_24hr_f', 'min_temp_24hr_f'] },
] as const satisfies readonly { name: string; fields: readonly (keyof Weather)[] }[]

type Group = (typeof GROUPS)[number]
type GroupName = Group['name']
/** Becomes `never`, so that merging does not compile, if a field of `Weather` is in no group. */
type Field =
  Exclude<keyof Weather, Group['fields'][number]> extends 'feels_like_f' ? Group['fields'][number] : never

/** Where a group of fields came from. */
interface Origin {
  readonly source: ObservationSource
  readonly receivedAtMs: number | null
}

/** A merged record. `filled` names the groups that came from another report than `source` and `received_at` say. */
export interface MergedObservation {
  readonly observation: Observation
  readonly filled: Readonly<Partial<Record<GroupName, Origin>>>
}

/** Observations with equal keys describe the same report. */
function observationKey(observation: Observation): string {
  return `${observation.station_code} ${observation.observed_at} ${observation.observation_type}`
}

/** Merges two records of one key. Either may be the result of earlier merges. */
export function mergeObservation(a: MergedObservation, b: MergedObservation): MergedObservation {
  assert.equal(observationKey(a.observation), observationKey(b.observation))
  const isCorrectedA = isCorrection(a.observation)
  if (isCorrectedA !== isCorrection(b.observation)) return isCorrectedA ? a : b
  const main = compareReports(a.observation, b.observation) >= 0 ? a.observation : b.observation
  const observation: Draft<Observation> = { ...main }
  const filled: Partial<Record<GroupName, Origin>> = {}
  for (const group of GROUPS) {
    const donor = compareGroups(group, a, b) >= 0 ? a : b
    copyGroup(group, donor.observation, observation)
    const origin = originOf(donor, group)
    const isOwn = origin.source === main.source && origin.receivedAtMs === main.received_at
    if (!isOwn && fullness(group, donor.observation) > 0) filled[group.name] = origin
  }
  return { observation: withFeelsLike(observation), filled }
}

/**
 * Merges the two forms of one report: `primary`, with groups it lacks taken from `secondary`. For archives that have decoded
 * columns beside the text.
 */
export function fillGroups(primary: Weather, secondary: Weather): Weather {
  const result: Draft<Weather> = { ...primary }
  for (const group of GROUPS) {
    if (fullness(group, primary) === 0) copyGroup(group, secondary, result)
  }
  return withFeelsLike(result)
}

type Draft<T> = { -readonly [K in keyof T]: T[K] }

function copyGroup({ fields }: Group, from: Weather, to: Draft<Weather>): void {
  for (const field of fields) copyField(field, from, to)
}

function copyField<F extends Field>(field: F, from: Pick<Weather, F>, to: Draft<Pick<Weather, F>>): void {
  to[field] = from[field]
}

function withFeelsLike<T extends Weather>(weather: T): T {
  const { temp_f, relative_humidity, wind_speed_kt } = weather
  return { ...weather, feels_like_f: feelsLikeF(temp_f, relative_humidity, wind_speed_kt) }
}

function isCorrection({ raw_metar }: Observation): boolean {
  return raw_metar !== null && isCorrectedReport(raw_metar)
}

function originOf({ observation, filled }: MergedObservation, { name }: Group): Origin {
  return filled[name] ?? { source: observation.source, receivedAtMs: observation.received_at }
}

/** Positive if the record takes text, source and receive time from `a`. */
function compareReports(a: Observation, b: Observation): number {
  return (
    SOURCE_PRECEDENCE[a.source] - SOURCE_PRECEDENCE[b.source] ||
    Number(a.raw_metar !== null) - Number(b.raw_metar !== null) ||
    compareReceived(a.received_at, b.received_at) ||
    compareText(a.raw_metar ?? '', b.raw_metar ?? '')
  )
}

/** Positive if the group of `a` wins. The values themselves break ties, so that the result is always the same. */
function compareGroups(group: Group, a: MergedObservation, b: MergedObservation): number {
  const [fullnessA, fullnessB] = [fullness(group, a.observation), fullness(group, b.observation)]
  if (fullnessA === 0 || fullnessB === 0) return fullnessA - fullnessB
  const [originA, originB] = [originOf(a, group), originOf(b, group)]
  return (
    SOURCE_PRECEDENCE[originA.source] - SOURCE_PRECEDENCE[originB.source] ||
    fullnessA - fullnessB ||
    compareReceived(originA.receivedAtMs, originB.receivedAtMs) ||
    compareText(groupText(group, a.observation), groupText(group, b.observation))
  )
}

function fullness({ fields }: Group, weather: Weather): number {
  let count = 0
  for (const field of fields) if (weather[field] !== null) count += 1
  return count
}

function groupText({ fields }: Group, weather: Weather): string {
  const values: unknown[] = []
  for (const field of fields) values.push(weather[field])
  return JSON.stringify(values)
}

function compareReceived(a: number | null, b: number | null): number {
  return (a ?? Number.MIN_SAFE_INTEGER) - (b ?? Number.MIN_SAFE_INTEGER)
}

function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a > b ? 1 : -1
}
