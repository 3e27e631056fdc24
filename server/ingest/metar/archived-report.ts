// The report text that an archive keeps beside its own columns. It is used only when it belongs to the row: archives
// merge sources, and a text of another station or time would bring its values along.

import type { Station } from '../../../shared/stations.ts'
import { type DecodedMetar, decodeMetar, MetarError } from './decode-metar.ts'

const TIME_DIFFERENCE_MS_MAX = 10 * 60 * 1000

export interface ArchivedReport {
  /** The text, also when it cannot be read; null when there is none that belongs to the row. */
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
