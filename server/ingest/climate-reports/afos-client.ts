// The IEM's archive of NWS text products, for climate reports: every product ever sent, by product identifier and issue time. One
// span is one request. The client fetches and parses; the caller stores the reports and the progress.

import { UpstreamError } from '../../upstream/upstream-error.ts'
import { type ClientOptions, UpstreamHttp } from '../../upstream/upstream-http.ts'
import { type ParsedClimateText, parseClimateText } from './parse.ts'

/** Products in one request: the archive's own limit. A month of one station has about 120. */
const AFOS_PRODUCTS_MAX = 9_999

const UPSTREAM = 'iem-afos'
// The archive asks for one request a second.
const RATE = { burst: 1, intervalMs: 1000 } as const
const NO_PRODUCTS = /^\s*ERROR: Could not Find/i
const SOH = '\u0001'
const ETX = '\u0003'

export class AfosClient extends UpstreamHttp {
  constructor(options: ClientOptions) {
    super({ ...options, name: UPSTREAM, rate: RATE })
  }

  /**
   * The reports of a product (`CLINYC`) issued on the UTC dates from `from` to before `to`. Throws `UpstreamError`; products that
   * cannot be read are in `errors`. The caller keeps spans to about a month, far below the archive's limit.
   */
  async products(pil: string, from: string, to: string, signal?: AbortSignal): Promise<ParsedClimateText> {
    const query = new URLSearchParams({
      pil,
      fmt: 'text',
      limit: String(AFOS_PRODUCTS_MAX),
      sdate: `${from}T00:00Z`,
      edate: `${to}T00:00Z`,
      order: 'asc',
    })
    const path = `/cgi-bin/afos/retrieve.py?${query.toString()}`
    const body = await this.fetchBody({ path, signal })
    return this.#read(pil, body.toString('latin1'))
  }

  #read(pil: string, text: string): ParsedClimateText {
    if (NO_PRODUCTS.test(text)) return { reports: [], errors: [] }
    if (!text.trimStart().startsWith(SOH)) {
      throw this.malformed(`no text products for ${pil}: ${JSON.stringify(text.slice(0, 80))}`)
    }
    if (!text.trimEnd().endsWith(ETX))
      throw new UpstreamError(UPSTREAM, 'truncated', `the products of ${pil} end in the middle of one`)
    // The archive truncates at the limit without notice, and a truncated span would count as complete.
    if (text.split(SOH).length - 1 >= AFOS_PRODUCTS_MAX) {
      throw new UpstreamError(
        UPSTREAM,
        'too_large',
        `${AFOS_PRODUCTS_MAX} products of ${pil} or more in one answer`,
      )
    }
    const { reports, errors } = parseClimateText(text)
    const strangers = reports
      .filter((report) => report.pil !== pil)
      .map(({ product_id }) => `climate report ${product_id}, line 1: ${pil} was asked for`)
    return { reports: reports.filter((report) => report.pil === pil), errors: [...errors, ...strangers] }
  }
}
