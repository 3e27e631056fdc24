// The highest (or lowest) temperature of a climate day so far. The extremum of the day settles its markets. The climate day
// runs from midnight to midnight in local standard time.

import type { ClimateDay } from '../shared/climate-day.ts'

export type ExtremumKind = 'high' | 'low'

export interface Temperature {
  readonly ms: number
  readonly tempF: number | null
}

/**
 * @param temperatures by time
 * @returns for each temperature the extremum since the start of the day; null outside of the day and before its first value
 */
export function runningExtremum(
  temperatures: readonly Temperature[],
  day: ClimateDay,
  kind: ExtremumKind,
): (number | null)[] {
  let extremum: number | null = null
  return temperatures.map(({ ms, tempF }) => {
    if (ms < day.fromMs || ms >= day.toMs) return null
    if (tempF !== null && (extremum === null || (kind === 'high' ? tempF > extremum : tempF < extremum)))
      extremum = tempF
    return extremum
  })
}
