// The aviation weather feed: live METAR and SPECI reports, one batched conditional request for all stations. The feed allows 100
// requests a minute and 400 entries a response, wants a custom User-Agent and has 15 days of history.
// Documentation: https://aviationweather.gov/data/api/

import { AWC_ENTRIES_MAX } from '../../../shared/limits.ts'
import type { Station } from '../../../shared/stations.ts'
import { collectRows, type ValidatedRows } from '../observation-fetch.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import { type ClientOptions, UpstreamHttp, type Validators } from '../../upstream/upstream-http.ts'
import { AWC, parseEntries } from './parse.ts'

/** 100 requests a minute. */
const RATE = { burst: 1, intervalMs: 600 } as const

export class AviationWeatherClient extends UpstreamHttp {
  constructor(options: ClientOptions) {
    super({ ...options, name: AWC, rate: RATE })
  }

  /**
   * The reports of the last hours, so few that the response has less than AWC_ENTRIES_MAX entries; null if nothing has changed since
   * the validators, which are of a response to the same request. Throws `UpstreamError`.
   */
  async reports(
    stations: readonly Station[],
    hours: number,
    validators?: Validators,
    signal?: AbortSignal,
  ): Promise<ValidatedRows | null> {
    const ids = stations.map(({ icao }) => icao).join(',')
    const path = `/api/data/metar?ids=${ids}&format=json&taf=false&hours=${hours}`
    const answer = await this.fetch({ path, validators, signal })
    if (answer === null) return null
    // The feed answers 204 if there are no reports.
    const entries = answer.status === 204 ? [] : this.readJson(answer.body)
    if (!Array.isArray(entries)) throw this.malformed('the answer is no JSON array')
    const collected = await collectRows(AWC, parseEntries(entries, stations))
    if (entries.length >= AWC_ENTRIES_MAX) {
      throw new UpstreamError(AWC, 'too_large', `an answer has ${AWC_ENTRIES_MAX} entries and may be cut`)
    }
    return { ...collected, validators: answer.validators }
  }
}
