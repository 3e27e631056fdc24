// The report text that an archive stores beside its own columns. It is used only if it belongs to the row: archives merge sources,
// and the text of another station or time would bring wrong values.

import type { Station } from '../../../shared/stations.ts'
import { type DecodedMetar, decodeMetar, MetarError } from './decode-metar.ts'

const TIME_DIFFERENCE_MS_MAX = 10 * 60 * 1000

export interface ArchivedReport {
  /** The text, even if it cannot be read; null if the row has none of its own. */
  readonly text: string | null
  readonly decoded: DecodedMetar | null
}

export function readArchivedReport(
  text: string | null,
  station: Station,
  observedAtMs: number,
): ArchivedReport {
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
