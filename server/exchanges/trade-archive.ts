// Trades of the past over REST: the walk along the pages of an answer. What is asked and how a page looks is each exchange's own.

import { NS_PER_MS } from '../../shared/utc-date.ts'
import { isFrame, type Frame } from '../feed/frame.ts'
import type { TimeWindow } from '../storage/cursor-store.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'
import { UpstreamHttp, type UpstreamOptions } from '../upstream/upstream-http.ts'

/** Pages of one walk; a walk that never ends is a fault of the upstream. */
const TRADE_PAGES_MAX = 1_000
/** Walks begun for one answer: a cursor may expire on the way. */
const TRADE_WALKS_MAX = 3

export interface TradeRow {
  /** When the page came, ns. */
  readonly recvTs: bigint
  /** Path and query of its request. */
  readonly request: string
  readonly row: Frame
}

export interface TradeArchive {
  /** Whether requests take bounds of time. Otherwise an answer has all trades of its markets. */
  readonly isByTime: boolean
  /** Market ids, by the request that takes them. */
  batches(marketIds: readonly string[]): readonly (readonly string[])[]
  /** The trades of a batch in a window, and maybe others. Throws `UpstreamError`, or the signal's reason. */
  rows(batch: readonly string[], window: TimeWindow, signal: AbortSignal): Promise<readonly TradeRow[]>
  close(): Promise<void>
}

/** How a walk is asked for, and how its pages are read: a cursor that is no text ends it. */
export interface TradeWalk {
  readonly pathOf: (cursor: string | undefined) => string
  readonly pageOf: (body: Frame) => { readonly rows: unknown; readonly cursor: unknown }
}

export class TradeClient extends UpstreamHttp {
  readonly #options: UpstreamOptions

  constructor(options: UpstreamOptions) {
    super(options)
    this.#options = options
  }

  malformed(detail: string, cause?: unknown): UpstreamError {
    return new UpstreamError(this.name, 'malformed', detail, { cause })
  }

  async object(path: string, signal: AbortSignal): Promise<Frame> {
    const body = await this.fetchBody({ path, headers: { accept: 'application/json' }, signal })
    try {
      const value: unknown = JSON.parse(body.toString('utf8'))
      if (isFrame(value)) return value
    } catch (error) {
      throw this.malformed('the answer is no JSON', error)
    }
    throw this.malformed('the answer is no JSON object')
  }

  /** The rows of all pages. A cursor that is refused has expired: the walk begins again, without the rows so far. */
  async walk({ pathOf, pageOf }: TradeWalk, signal: AbortSignal, walks = 1): Promise<readonly TradeRow[]> {
    const found: TradeRow[] = []
    const cursors = new Set<string>()
    for (let next: string | undefined; cursors.size < TRADE_PAGES_MAX;) {
      const request = pathOf(next)
      let body: Frame
      try {
        body = await this.object(request, signal)
      } catch (error) {
        const isExpired = next !== undefined && error instanceof UpstreamError && error.failure === 'rejected'
        if (!isExpired || walks === TRADE_WALKS_MAX) throw error
        return await this.walk({ pathOf, pageOf }, signal, walks + 1)
      }
      const { rows, cursor } = pageOf(body)
      const recvTs = BigInt((this.#options.clock ?? SYSTEM_CLOCK).nowMs()) * NS_PER_MS
      if (!Array.isArray(rows) || !rows.every(isFrame))
        throw this.malformed('the answer has no list of trades')
      for (const row of rows) found.push({ recvTs, request, row })
      if (typeof cursor !== 'string' || cursor === '') return found
      if (cursors.has(cursor)) throw this.malformed('trades repeat their cursor')
      cursors.add((next = cursor))
    }
    throw this.malformed(`trades have more than ${TRADE_PAGES_MAX} pages`)
  }
}
