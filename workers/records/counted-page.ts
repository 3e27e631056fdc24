// Pages of ordered rows. A long page is counted before its head is sent, and read while it is sent, so that half a million
// rows take no more memory than a few. If rows move to the lake meanwhile, the rest of the page is planned again and resumes
// after the last row.

import { ApiError } from '../../shared/errors.ts'
import { forgetStalePlan } from './stale-plan.ts'

interface PageBounds {
  readonly offset: number
  readonly limit: number
}

export interface CountedPage {
  readonly rows: number
  readonly hasMore: boolean
}

/** The page of `total` rows; rows beyond the first one after the page need not be counted. */
export function pageOf(total: number, { offset, limit }: PageBounds): CountedPage {
  return { rows: Math.max(0, Math.min(total - offset, limit)), hasMore: total > offset + limit }
}

/** Cuts a page out of rows: skips some, and takes up to `rowsMax`. */
export class PageCut {
  toSkip: number
  rowsMax: number
  taken = 0

  constructor(offset: number, rowsMax: number) {
    this.toSkip = offset
    this.rowsMax = rowsMax
  }

  /** Which of the next `length` rows are in the page: [from, to). */
  next(length: number): { readonly from: number; readonly to: number } {
    const from = Math.min(this.toSkip, length)
    const to = Math.min(length, from + this.rowsMax - this.taken)
    this.toSkip -= from
    this.taken += to - from
    return { from, to }
  }
}

export interface PageSource<Plan, Rows, Place> {
  /** For messages: `Candles`. */
  readonly noun: string
  readonly plan: Plan
  readonly planAnew: () => Promise<Plan>
  /** Clears the caches that the plan was made from. */
  readonly forget: () => void
  /** At most `rowsMax` rows after a place. Every batch was read under the manifest of the plan. */
  readonly read: (plan: Plan, after: Place | undefined, rowsMax: number) => AsyncIterable<Rows>
  readonly placeOf: (rows: Rows, at: number) => Place
}

/** Rows [from, to) of a set. */
export interface Stretch<Rows> {
  readonly rows: Rows
  readonly from: number
  readonly to: number
}

/**
 * The rows of a counted page. Rows that arrive meanwhile displace none: if the head names no next page, this page continues to
 * the last row there is.
 * @throws {ApiError} `lake_file_changed`
 */
export async function* readPage<Plan, Rows extends { readonly length: number }, Place>(
  { offset, limit }: PageBounds,
  { rows: counted, hasMore }: CountedPage,
  source: PageSource<Plan, Rows, Place>,
): AsyncGenerator<Stretch<Rows>, void, void> {
  if (counted === 0) return
  const { noun } = source
  const page = new PageCut(offset, counted)
  let { plan } = source
  let attempt = 1
  let after: Place | undefined
  for (;;) {
    try {
      let isOverfull = false
      const wanted = page.toSkip + page.rowsMax - page.taken + (hasMore ? 0 : 1)
      for await (const rows of source.read(plan, after, wanted)) {
        const { from, to } = page.next(rows.length)
        if (to > 0) {
          attempt = 1
          after = source.placeOf(rows, to - 1)
        }
        if (to > from) yield { rows, from, to }
        if (hasMore && page.taken === counted) return
        isOverfull = to < rows.length
        if (isOverfull) break
      }
      if (page.taken < counted)
        throw new ApiError('lake_file_changed', `${noun} went away while they were read.`)
      if (!isOverfull) return
      if (page.rowsMax === limit)
        throw new ApiError('lake_file_changed', `More ${noun.toLowerCase()} came while they were read.`)
      page.rowsMax = limit
    } catch (error) {
      forgetStalePlan(error, attempt++, noun, source.forget)
      plan = await source.planAnew()
    }
  }
}
