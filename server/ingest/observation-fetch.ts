// The result of every client of observations. collectRows makes it from parsed rows: it counts rejected rows and notices when an
// upstream has changed its format. It yields to the event loop every few milliseconds, because decoding a station's year takes
// seconds and the event loop also serves requests.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Observation } from '../../shared/observation.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'
import type { Validators } from '../upstream/upstream-http.ts'

/** The longest time for decoding rows in one turn of the event loop. */
export const PARSE_TURN_MS_MAX = 4

/**
 * Why a row was left out. `malformed`: it does not match the upstream's documentation. The others are expected: `synthetic` rows
 * were made up by the archive, `other_report` rows are neither METAR nor SPECI, `other_station` was not requested.
 */
type Rejection = 'malformed' | 'synthetic' | 'other_report' | 'other_station'

export type ParsedRow =
  | { readonly kind: 'row'; readonly observation: Observation }
  | { readonly kind: 'rejected'; readonly reason: Rejection }

export const MALFORMED: ParsedRow = { kind: 'rejected', reason: 'malformed' }

export interface ObservationRows {
  readonly rows: readonly Observation[]
  readonly rejected: Readonly<Record<Rejection, number>>
}

/** The rows of a response, and its validators, which make the next request for the same conditional. */
export interface ValidatedRows extends ObservationRows {
  readonly validators: Validators
}

/** Throws `UpstreamError` if the format has changed. */
export async function collectRows(upstream: string, parsed: Iterable<ParsedRow>): Promise<ObservationRows> {
  const rows: Observation[] = []
  const rejected: Record<Rejection, number> = {
    malformed: 0,
    synthetic: 0,
    other_report: 0,
    other_station: 0,
  }
  let seen = 0
  let turnStartMs = performance.now()
  for (const row of parsed) {
    if (row.kind === 'row') rows.push(row.observation)
    else rejected[row.reason] += 1
    seen += 1
    if (performance.now() - turnStartMs > PARSE_TURN_MS_MAX) {
      await nextTurn()
      turnStartMs = performance.now()
    }
  }
  // One bad report among hundreds is the station's fault. A majority of bad reports, or no usable row, means that the format has
  // changed. Synthetic rows alone mean that the station sent nothing.
  const unusable = rejected.malformed + rejected.other_station + rejected.other_report
  if (rejected.malformed > rows.length || (rows.length === 0 && unusable > 0)) {
    const counts = JSON.stringify(rejected)
    throw new UpstreamError(
      upstream,
      'malformed',
      `${rows.length} of ${seen} rows can be used, rejected: ${counts}`,
    )
  }
  return { rows, rejected }
}
