// Reads from a report's text the groups that metar-taf-parser 9.1.3 misreads in US reports: header, wind of 100 kt and more,
// visibility in sixteenths (it rounds fractions to hundredths), clear sky (it does not know CLR), cloud bases of 000. The library
// reads everything else.
// Grammar: Federal Meteorological Handbook No. 1 (FCM-H1), chapter 12.

import type { ObservationType, Weather } from '../../../shared/observation.ts'
import { METRES_PER_SECOND_PER_KNOT, METRES_PER_STATUTE_MILE, roundTo } from '../../../shared/unit-factors.ts'

export type ReportText = NonNullable<ReturnType<typeof splitReport>>

const HEADER = /^(?:(METAR|SPECI) )?(COR )?([A-Z][A-Z0-9]{3}) (COR )?(\d{2})(\d{2})(\d{2})Z(?: |$)/
const TREND = /^(TEMPO|BECMG|INTER|NOSIG)$/

/** Splits a report into header, body and remarks; `undefined` if the text does not start like a report. */
export function splitReport(text: string) {
  const line = text
    .trim()
    .replaceAll(/\s+/g, ' ')
    .replace(/[ $=]+$/, '')
  const match = HEADER.exec(line)
  if (match === null) return undefined
  const [head, type, corBefore, icao = '', corAfter, day, hour, minute] = match
  const keyword: ObservationType | null = type === 'METAR' || type === 'SPECI' ? type : null
  const [bodyText = '', ...remarks] = line.slice(head.length).split(/(?:^| )RMK(?: |$)/)
  const groups = bodyText.split(' ').filter((group) => group !== '')
  const trendIndex = groups.findIndex((group) => TREND.test(group))
  const current = trendIndex === -1 ? groups : groups.slice(0, trendIndex)
  return {
    header: {
      type: keyword,
      icao,
      day: Number(day),
      hour: Number(hour),
      minute: Number(minute),
      /** COR before or after station and time; CCA … in the Canadian form. */
      isCorrection: corBefore !== undefined || corAfter !== undefined || current.some(isCorrectionFlag),
    },
    /** Body groups, without the correction flag and the trend. */
    body: current.filter((group) => !isCorrectionFlag(group)),
    remarks: remarks.join(' '),
  }
}

/** Whether a report's text is marked as a correction. */
export function isCorrectedReport(text: string): boolean {
  return splitReport(text)?.header.isCorrection ?? false
}

function isCorrectionFlag(group: string): boolean {
  return /^(COR|CC[A-Z])$/.test(group)
}

/** The wind group; null if it is absent or slashed out: a missing wind is not a calm. */
export function readWind(body: readonly string[]) {
  for (const group of body) {
    const match = /^(VRB|\d{3})(\d{2,3})(?:G(\d{2,3}))?(KTS?|MPS|KMH)$/.exec(group)
    if (match === null) continue
    const [, direction, speed, gust, unit] = match
    /** Null when variable. */
    const directionDegrees = direction === 'VRB' ? null : Number(direction)
    if (directionDegrees !== null && directionDegrees > 360) return null
    return {
      directionDegrees,
      speedKt: knotsOf(Number(speed), unit),
      gustKt: gust === undefined ? null : knotsOf(Number(gust), unit),
    }
  }
  return null
}

function knotsOf(speed: number, unit: string | undefined): number {
  if (unit === 'KT' || unit === 'KTS') return speed
  const metresPerSecond = unit === 'MPS' ? speed : speed / 3.6
  return Math.round(metresPerSecond / METRES_PER_SECOND_PER_KNOT)
}

/** Statute miles. `M1/4SM` and `P6SM` give the bound itself, as the aviation weather feed does. */
export function readVisibilityMiles(body: readonly string[]): number | null {
  for (const [index, group] of body.entries()) {
    if (group === 'CAVOK') return milesOfMetres(9999)
    const metres = /^(\d{4})(?:NDV)?$/.exec(group)
    if (metres !== null) return milesOfMetres(Number(metres[1]))
    const match = /^[MP]?(?:(\d{1,2})\/(\d{1,2})|(\d{1,3}))SM$/.exec(group)
    if (match === null) continue
    const [, top, bottom, whole] = match
    if (whole !== undefined) return Number(whole)
    const fraction = Number(top) / Number(bottom)
    if (!Number.isFinite(fraction)) return null
    const before = body[index - 1] ?? ''
    return /^[MP]?\d{1,2}$/.test(before) ? Number(before.replace(/^[MP]/, '')) + fraction : fraction
  }
  return null
}

function milesOfMetres(metres: number): number {
  return roundTo(metres / METRES_PER_STATUTE_MILE, 2)
}

export interface SkyLayer {
  readonly cover: string
  /** Feet above ground; null for a clear sky or a base that was not measured. */
  readonly baseFt: number | null
}

/** Every sky-cover group in order; vertical visibility (`VV005`) counts as a layer, as in both archives. */
export function readSkyLayers(body: readonly string[]): SkyLayer[] {
  const layers: SkyLayer[] = []
  for (const group of body) {
    const match =
      /^(FEW|SCT|BKN|OVC|VV)(\d{3}|\/\/\/)(?:CB|TCU|ACC|\/\/\/)?$/.exec(group) ??
      /^(CLR|SKC|NSC|NCD)$/.exec(group)
    if (match === null) continue
    const [, cover = '', base = '///'] = match
    layers.push({ cover, baseFt: base === '///' ? null : Number(base) * 100 })
  }
  return layers
}

export type SkyFields = Pick<Weather, Extract<keyof Weather, `sky_${string}`>>

/** The first four layers as fields of an observation. */
export function skyFieldsOf(layers: readonly SkyLayer[]): SkyFields {
  const [first, second, third, fourth] = layers
  return {
    sky_cover_1: first?.cover ?? null,
    sky_base_1_ft: first?.baseFt ?? null,
    sky_cover_2: second?.cover ?? null,
    sky_base_2_ft: second?.baseFt ?? null,
    sky_cover_3: third?.cover ?? null,
    sky_base_3_ft: third?.baseFt ?? null,
    sky_cover_4: fourth?.cover ?? null,
    sky_base_4_ft: fourth?.baseFt ?? null,
  }
}
