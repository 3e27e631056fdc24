// Past trades over REST: the walk through the pages of a response. Each exchange defines the request and the page format.

import { NS_PER_MS } from '../../shared/utc-date.ts'
import { isFrame, type Frame } from '../feed/frame.ts'
import type { TimeWindow } from '../storage/cursor-store.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'
import { UpstreamHttp, type UpstreamOptions } from '../upstream/upstream-http.ts'

/** Pages of one step, which bound the memory of a walk. */
const STEP_PAGES = 200
/**
 * Pages of one walk, or else a cursor that is always new would never end it. A market has fewer trades in a date, and a walk that
 * cannot be bounded in time continues in the next run.
 */
const WALK_PAGES_MAX = 50 * STEP_PAGES
/** Walks started for one response: a cursor may expire on the way. */
const WALKS_MAX = 3

export interface TradeRow {
  /** When the page was received, ns. */
  readonly recvTs: bigint
  /** Path and query of its request. */
  readonly request: string
  readonly row: Frame
}

/** The rows of some pages. Each step repeats the last page of the step before, so that equal rows are side by side in one step. */
export interface TradeStep {
  readonly rows: readonly TradeRow[]
  /** The cursor where the walk continues; null at its end. */
  readonly next: string | null
}

/** How to request and read the pages of a walk. A cursor that is not a string ends it. */
export interface TradeWalk {
  readonly path: string
  /** The query of a page. */
  readonly queryOf: (cursor: string | undefined) => Readonly<Record<string, string>>
  readonly pageOf: (body: Frame) => { readonly rows: unknown; readonly cursor: unknown }
}

/** A client of the past trades of one exchange. */
export abstract class TradeArchive extends UpstreamHttp {
  /** Whether requests can be bounded in time. Otherwise a response has all trades of its markets. */
  abstract readonly isByTime: boolean
  readonly #clock: Clock

  constructor(options: UpstreamOptions) {
    super(options)
    this.#clock = options.clock ?? SYSTEM_CLOCK
  }

  /** Market ids, grouped by request. */
  abstract batches(marketIds: readonly string[]): readonly (readonly string[])[]

  /**
   * The trades of a batch in a window, and possibly others. If requests cannot be bounded in time, the walk starts at a cursor.
   * Throws `UpstreamError`, or the signal's reason.
   */
  abstract steps(
    batch: readonly string[],
    window: TimeWindow,
    signal: AbortSignal,
    from?: string,
  ): AsyncIterable<TradeStep>

  protected async object(path: string, signal: AbortSignal): Promise<Frame> {
    return await this.fetchObject({ path, headers: { accept: 'application/json' }, signal })
  }

  /** The rows of all pages, up to a limit. A refused cursor has expired: the walk starts again, without the rows of the open step. */
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
        if (pages === WALK_PAGES_MAX) throw this.malformed(`trades do not end after ${pages} pages`)
        found = page
      }
      cursors.add((next = cursor))
    }
  }
}
