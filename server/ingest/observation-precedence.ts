// Which report counts when several describe the same station, time and type. The rule, in this order:
//   1. A corrected report (COR) replaces an uncorrected one entirely; nothing is filled in from what it corrects.
//   2. Otherwise group by group (a wind, a sky, a temperature belong together): a group that says something before one
//      that says nothing, then the source by the table below, then the fuller group, then the later received.
// The result does not depend on the order in which reports arrive: merging is commutative, associative and idempotent.
// For that a merged record remembers from where its filled-in groups came.

import assert from 'node:assert/strict'
import type { Observation, ObservationSource, Weather } from '../../shared/observation.ts'
import { feelsLikeF } from './metar/derived.ts'
import { isCorrectedReport } from './metar/report-text.ts'

/** Higher wins: the live feed relays reports as sent, IEM archives the same texts, NCEI edits and delays them. */
const SOURCE_PRECEDENCE: Readonly<Record<ObservationSource, number>> = { awc: 3, iem: 2, ncei: 1 }

/** Fields that are taken from one report together. `feels_like_f` is in none: it follows from the merged fields. */
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
/** Is `never`, so that nothing can be merged, as soon as a field of `Weather` is in no group. */
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
 * What one report says twice: `primary` with those groups of `secondary` that it leaves out. For archives that give
 * decoded columns beside the text.
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

/** Positive when `a` gives the record its text, source and receive time. */
function compareReports(a: Observation, b: Observation): number {
  return (
    SOURCE_PRECEDENCE[a.source] - SOURCE_PRECEDENCE[b.source] ||
    Number(a.raw_metar !== null) - Number(b.raw_metar !== null) ||
    compareReceived(a.received_at, b.received_at) ||
    compareText(a.raw_metar ?? '', b.raw_metar ?? '')
  )
}

/** Positive when the group of `a` counts. Ends with the values themselves, so that ties are decided alike everywhere. */
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
