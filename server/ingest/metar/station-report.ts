// The report text that a source states beside its own fields. It is used only if it belongs to them: archives merge sources, the text
// of another station or time would bring wrong values, and a field may change its meaning.

import type { Station } from '../../../shared/stations.ts'
import { decodeMetar, MetarError } from './decode-metar.ts'

const TIME_DIFFERENCE_MS_MAX = 10 * 60 * 1000

/** The text, even if it cannot be read; null if there is none of its own. */
export function readStationReport(text: string | null, station: Station, observedAtMs: number) {
  if (text === null) return { text: null, decoded: null }
  try {
    const decoded = decodeMetar(text, observedAtMs)
    const belongs =
      decoded.icao === station.icao && Math.abs(decoded.observedAtMs - observedAtMs) <= TIME_DIFFERENCE_MS_MAX
    return belongs ? { text, decoded } : { text: null, decoded: null }
  } catch (error) {
    if (error instanceof MetarError) return { text, decoded: null }
    throw error
  }
}
