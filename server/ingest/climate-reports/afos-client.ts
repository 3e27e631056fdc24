// The IEM's archive of NWS text products, for climate reports: every product ever sent, by product identifier and
// time of issue. One window is one request, so a long history is asked month by month and can be interrupted after
// any of them. It reads and parses; storing and remembering how far it came is the caller's.

import { AFOS_SETTLE_MS } from '../../../shared/limits.ts'
import { addDays } from '../../../shared/utc-date.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import { UpstreamHttp, type UpstreamOptions } from '../../upstream/upstream-http.ts'
import { type ParsedClimateText, parseClimateText } from './parse.ts'
import { ClimateReportError } from './report-error.ts'

/** Products asked for in one request to the product archive; its own limit. A month of one station has about 120. */
const AFOS_PRODUCTS_PER_WINDOW_MAX = 9_999

/** Dates of issue in UTC, `from` included, `to` not. */
export interface IssueWindow {
  readonly from: string
  readonly to: string
}

export interface AfosWindow extends IssueWindow, ParsedClimateText {
  /**
   * Whether nothing more can arrive in it. Only then may the caller note `to` as the date from which to go on: a
   * window that reaches into the present must be asked again.
   */
  readonly isClosed: boolean
}

export interface AfosRequest extends IssueWindow {
  /** Product identifier, for example `CLINYC`. */
  readonly pil: string
  readonly nowMs: number
  readonly signal?: AbortSignal | undefined
}

const UPSTREAM = 'iem-afos'
// The archive asks for one request a second.
const RATE = { burst: 1, intervalMs: 1000 } as const
const NO_PRODUCTS = /^\s*ERROR: Could not Find/i
const SOH = '\u0001'
const ETX = '\u0003'

export class AfosClient {
  readonly #http: UpstreamHttp

  constructor(options: Omit<UpstreamOptions, 'name' | 'rate'>) {
    this.#http = new UpstreamHttp({ ...options, name: UPSTREAM, rate: RATE })
  }

  /** Closes the connections; a running request fails. */
  async close(): Promise<void> {
    await this.#http.close()
  }

  /**
   * The reports issued in the span, one calendar month after the other. To go on after an interruption, ask again
   * from the `to` of the last closed window. Throws `UpstreamError`; what cannot be read in a whole answer is in the
   * window's `errors`.
   */
  async *windows(request: AfosRequest): AsyncGenerator<AfosWindow> {
    for (const { from, to } of monthWindows(request.from, request.to)) {
      yield await this.#window({ ...request, from, to })
    }
  }

  async #window({ pil, from, to, nowMs, signal }: AfosRequest): Promise<AfosWindow> {
    const query = new URLSearchParams({
      pil,
      fmt: 'text',
      limit: String(AFOS_PRODUCTS_PER_WINDOW_MAX),
      sdate: `${from}T00:00Z`,
      edate: `${to}T00:00Z`,
      order: 'asc',
    })
    const body = await this.#http.fetchBody({
      path: `/cgi-bin/afos/retrieve.py?${query.toString()}`,
      signal,
    })
    const isClosed = Date.parse(`${to}T00:00:00Z`) + AFOS_SETTLE_MS <= nowMs
    return { from, to, isClosed, ...this.#read(pil, body.toString('latin1')) }
  }

  #read(pil: string, text: string): ParsedClimateText {
    if (NO_PRODUCTS.test(text)) return { reports: [], errors: [] }
    if (!text.trimStart().startsWith(SOH)) {
      throw this.#error('malformed', `no text products for ${pil}: ${JSON.stringify(text.slice(0, 80))}`)
    }
    if (!text.trimEnd().endsWith(ETX))
      throw this.#error('truncated', `the products of ${pil} end in the middle of one`)
    // At the limit the archive cuts silently, and a cut window would count as complete.
    if (text.split(SOH).length - 1 >= AFOS_PRODUCTS_PER_WINDOW_MAX) {
      throw this.#error(
        'too_large',
        `${AFOS_PRODUCTS_PER_WINDOW_MAX} products of ${pil} or more in one window`,
      )
    }
    const { reports, errors } = parseClimateText(text)
    const strangers = reports
      .filter((report) => report.pil !== pil)
      .map((report) => new ClimateReportError('other_product', report.productId, 1, `${pil} was asked for`))
    return { reports: reports.filter((report) => report.pil === pil), errors: [...errors, ...strangers] }
  }

  #error(failure: 'malformed' | 'truncated' | 'too_large', detail: string): UpstreamError {
    return new UpstreamError(UPSTREAM, failure, detail)
  }
}

/** The span cut at the first of every month. */
export function monthWindows(from: string, to: string): IssueWindow[] {
  const windows: IssueWindow[] = []
  let start = from
  while (start < to) {
    // The 28th and four days is in the next month, whatever its length.
    const nextMonth = `${addDays(`${start.slice(0, 7)}-28`, 4).slice(0, 7)}-01`
    const end = nextMonth < to ? nextMonth : to
    windows.push({ from: start, to: end })
    start = end
  }
  return windows
}
