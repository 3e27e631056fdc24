// NCEI's archive of hourly observations (GHCNh): one file per station and year, replaced as a whole on each update, so requests are
// conditional.

import { NCEI_BODY_BYTES_MAX } from '../../../shared/limits.ts'
import type { Station } from '../../../shared/stations.ts'
import { collectRows, type ValidatedRows } from '../observation-fetch.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import { type ClientOptions, UpstreamHttp, type Validators } from '../../upstream/upstream-http.ts'
import { NCEI, parseGhcnh } from './parse.ts'

/** The archive documents no limit; one request a second is common practice. */
const RATE = { burst: 1, intervalMs: 1000 } as const

export class NceiClient extends UpstreamHttp {
  constructor(options: ClientOptions) {
    super({ bodyBytesMax: NCEI_BODY_BYTES_MAX, ...options, name: NCEI, rate: RATE })
  }

  /**
   * Every METAR and SPECI of one station and year; null if the file has not changed since the validators. Throws `UpstreamError`,
   * with status 404 if the file does not exist.
   */
  async file(
    station: Station,
    year: number,
    validators?: Validators,
    signal?: AbortSignal,
  ): Promise<ValidatedRows | null> {
    const answer = await this.fetch({
      path: `/oa/global-historical-climatology-network/hourly/access/by-year/${year}/psv/GHCNh_${station.ghcnId}_${year}.psv`,
      validators,
      signal,
    })
    if (answer === null) return null
    const text = answer.body.toString('utf8')
    if (endsWithinRow(text)) throw new UpstreamError(NCEI, 'truncated', 'the file ends within a row')
    const collected = await collectRows(NCEI, parseGhcnh(text, station))
    return { ...collected, validators: answer.validators }
  }
}

/** Whether the last row has no newline and too few values. Without a length header, this alone shows a truncated transfer. */
function endsWithinRow(text: string): boolean {
  const last = text.slice(text.lastIndexOf('\n') + 1)
  return last !== '' && last.split('|').length < text.slice(0, text.indexOf('\n')).split('|').length
}
