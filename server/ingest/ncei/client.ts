// NCEI's archive of hourly observations (GHCNh): one file per station and year, replaced as a whole when it is updated,
// so it is asked for conditionally.

import { NCEI_BODY_BYTES_MAX } from '../../../shared/limits.ts'
import type { Station } from '../../../shared/stations.ts'
import { collectRows, type ObservationRows } from '../observation-fetch.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import { type ClientOptions, UpstreamHttp, type Validators } from '../../upstream/upstream-http.ts'
import { NCEI, parseGhcnh } from './parse.ts'

/** The archive states no limit; one request a second is what its users practise. */
const RATE = { burst: 1, intervalMs: 1000 } as const

export interface NceiRequest {
  readonly station: Station
  readonly year: number
  /** Of the last answer for the same station and year. */
  readonly validators?: Validators | undefined
  readonly signal?: AbortSignal
}

export interface NceiFile extends ObservationRows {
  /** Make the next request of the same file conditional. */
  readonly validators: Validators
}

export class NceiClient extends UpstreamHttp {
  constructor(options: ClientOptions) {
    super({ bodyBytesMax: NCEI_BODY_BYTES_MAX, ...options, name: NCEI, rate: RATE })
  }

  /**
   * Every METAR and SPECI of one station and year; null when the file has not changed. Throws `UpstreamError`, with
   * status 404 for a file that does not exist.
   */
  async file({ station, year, validators, signal }: NceiRequest): Promise<NceiFile | null> {
    const answer = await this.fetch({
      path: `/oa/global-historical-climatology-network/hourly/access/by-year/${year}/psv/GHCNh_${station.ghcnId}_${year}.psv`,
      validators,
      signal,
    })
    if (answer.kind === 'not_modified') return null
    const text = answer.body.toString('utf8')
    if (endsWithinRow(text)) throw new UpstreamError(NCEI, 'truncated', 'the file ends within a row')
    const collected = await collectRows(NCEI, parseGhcnh(text, station))
    return { ...collected, validators: answer.validators }
  }
}

/** A last row without a newline and with too few values: without a length, a cut transfer shows no other sign. */
function endsWithinRow(text: string): boolean {
  const last = text.slice(text.lastIndexOf('\n') + 1)
  return last !== '' && last.split('|').length < text.slice(0, text.indexOf('\n')).split('|').length
}
