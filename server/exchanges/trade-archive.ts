// Trades of the past over REST: the walk along the pages of an answer. What is asked and how a page looks is each exchange's own.

import { NS_PER_MS } from '../../shared/utc-date.ts'
import { isFrame, type Frame } from '../feed/frame.ts'
import type { TimeWindow } from '../storage/cursor-store.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'
import { UpstreamHttp, type UpstreamOptions } from '../upstream/upstream-http.ts'

/** Pages of one step. A walk of any length takes no more memory than this. */
const STEP_PAGES = 200
/** Walks begun for one answer: a cursor may expire on the way. */
const WALKS_MAX = 3

export interface TradeRow {
  /** When the page came, ns. */
  readonly recvTs: bigint
  /** Path and query of its request. */
  readonly request: string
  readonly row: Frame
}

/** The rows of some pages. Each step has the last page of the one before, so that one of two has equal rows side by side. */
export interface TradeStep {
  readonly rows: readonly TradeRow[]
  /** The cursor with which the walk goes on; null at its end. */
  readonly next: string | null
}

/** How a walk is asked for, and how its pages are read: a cursor that is no text ends it. */
export interface TradeWalk {
  readonly path: string
  /** The query of a page. */
  readonly queryOf: (cursor: string | undefined) => Readonly<Record<string, string>>
  readonly pageOf: (body: Frame) => { readonly rows: unknown; readonly cursor: unknown }
}

/** A client of the past trades of one exchange. */
export abstract class TradeArchive extends UpstreamHttp {
  /** Whether requests take bounds of time. Otherwise an answer has all trades of its markets. */
  abstract readonly isByTime: boolean
  readonly #clock: Clock

  constructor(options: UpstreamOptions) {
    super(options)
    this.#clock = options.clock ?? SYSTEM_CLOCK
  }

  /** Market ids, by the request that takes them. */
  abstract batches(marketIds: readonly string[]): readonly (readonly string[])[]

  /**
   * The trades of a batch in a window, and maybe others; where there are no bounds of time, from a cursor on. Throws
   * `UpstreamError`, or the signal's reason.
   */
  abstract steps(
    batch: readonly string[],
    window: TimeWindow,
    signal: AbortSignal,
    from?: string,
  ): AsyncIterable<TradeStep>

  protected async object(path: string, signal: AbortSignal): Promise<Frame> {
    const value = await this.fetchJson({ path, headers: { accept: 'application/json' }, signal })
    if (isFrame(value)) return value
    throw this.malformed('the answer is no JSON object')
  }

  /** The rows of all pages. A cursor that is refused has expired: the walk begins again, without the rows of the open step. */
  protected async *walk(
    { path, queryOf, pageOf }: TradeWalk,
    signal: AbortSignal,
    from?: string,
  ): AsyncGenerator<TradeStep> {
    const cursors = new Set<string>()
    let found: TradeRow[] = []
    let walks = 1
    for (let next: string | undefined = from, pages = 1; ; pages++) {
      const request = `${path}?${new URLSearchParams(queryOf(next)).toString()}`
      let body: Frame
      try {
        body = await this.object(request, signal)
      } catch (error) {
        const isExpired = next !== undefined && error instanceof UpstreamError && error.failure === 'rejected'
        if (!isExpired || walks++ === WALKS_MAX) throw error
        ;[next, found, pages] = [undefined, [], 0]
        cursors.clear()
        continue
      }
      const { rows, cursor } = pageOf(body)
      const recvTs = BigInt(this.#clock.nowMs()) * NS_PER_MS
      if (!Array.isArray(rows) || !rows.every(isFrame))
        throw this.malformed('the answer has no list of trades')
      const page = rows.map((row) => ({ recvTs, request, row }))
      found.push(...page)
      if (typeof cursor !== 'string' || cursor === '') return yield { rows: found, next: null }
      if (cursors.has(cursor)) throw this.malformed('trades repeat their cursor')
      if (pages % STEP_PAGES === 0 && next !== undefined) {
        if (found.length === 0) throw this.malformed(`${STEP_PAGES} pages have no trades`)
        yield { rows: found, next }
        found = page
      }
      cursors.add((next = cursor))
    }
  }
}
