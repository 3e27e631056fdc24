// The aviation weather feed: live METAR and SPECI reports, one batched conditional request for all stations. The feed allows 100
// requests a minute and 400 entries a response, wants a custom User-Agent and has 15 days of history.
// Documentation: https://aviationweather.gov/data/api/

import { AWC_ENTRIES_MAX } from '../../../shared/limits.ts'
import type { Station } from '../../../shared/stations.ts'
import { collectRows, type ObservationRows } from '../observation-fetch.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import { type ClientOptions, UpstreamHttp, type Validators } from '../../upstream/upstream-http.ts'
import { AWC, parseEntries } from './parse.ts'

/** 100 requests a minute. */
const RATE = { burst: 1, intervalMs: 600 } as const

export interface AviationWeatherRequest {
  readonly stations: readonly Station[]
  /** Hours back from now, so few that the response has less than AWC_ENTRIES_MAX entries. */
  readonly hours: number
  readonly signal?: AbortSignal
}

export class AviationWeatherClient extends UpstreamHttp {
  /** The path and the validators of the last response that could be read. */
  #last: { readonly path: string; readonly validators: Validators } | undefined

  constructor(options: ClientOptions) {
    super({ ...options, name: AWC, rate: RATE })
  }

  /** The reports of the last hours; null if nothing has changed. Throws `UpstreamError`. */
  async reports({ stations, hours, signal }: AviationWeatherRequest): Promise<ObservationRows | null> {
    const ids = stations.map(({ icao }) => icao).join(',')
    const path = `/api/data/metar?ids=${ids}&format=json&taf=false&hours=${hours}`
    const answer = await this.fetch({
      path,
      validators: this.#last?.path === path ? this.#last.validators : undefined,
      signal,
    })
    if (answer.kind === 'not_modified') return null
    // The feed answers 204 if there are no reports.
    const entries = answer.status === 204 ? [] : this.readJson(answer.body)
    if (!Array.isArray(entries)) throw this.malformed('the answer is no JSON array')
    const collected = await collectRows(AWC, parseEntries(entries, stations))
    if (entries.length >= AWC_ENTRIES_MAX) {
      throw new UpstreamError(AWC, 'too_large', `an answer has ${AWC_ENTRIES_MAX} entries and may be cut`)
    }
    // Set only now: a response that could not be read must be fetched again in full.
    this.#last = { path, validators: answer.validators }
    return collected
  }

  /** Makes the next request unconditional. Call it if the rows of the last response were not stored. */
  forget(): void {
    this.#last = undefined
  }
}
