// What every client of observations returns, and the step from parsed rows to that result: counting what was rejected
// and noticing that an upstream has changed its format. Rows are decoded for a few milliseconds at a time,
// because decoding a station's year takes seconds and the event loop also serves requests.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Observation } from '../../shared/observation.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'

/** Rows of an upstream are decoded for so long in one turn of the event loop. */
export const PARSE_TURN_MS_MAX = 4

/**
 * Why a row was left out. `malformed`: it is not what the upstream documents. The others are expected: `synthetic` rows
 * were invented by the archive, `other_report` rows are no METAR or SPECI, `other_station` was not asked for.
 */
type Rejection = 'malformed' | 'synthetic' | 'other_report' | 'other_station'

export type ParsedRow =
  | { readonly kind: 'row'; readonly observation: Observation }
  | { readonly kind: 'rejected'; readonly reason: Rejection }

export interface ObservationRows {
  readonly rows: readonly Observation[]
  readonly rejected: Readonly<Record<Rejection, number>>
}

/** Throws `UpstreamError` when the format has changed. */
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
  // One bad report among hundreds is its station's fault; a majority of them, or not one usable row, means that the
  // format has changed. Synthetic rows alone are a station's quiet hour.
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
