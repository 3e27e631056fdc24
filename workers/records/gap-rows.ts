// The rows of /api/v1/gaps: periods in which a market's book is not known, sorted by start. A gap may span midnights.

import type { GapCause } from '../../shared/coverage.ts'
import type { RecordField } from '../../shared/record-field.ts'
import type { CoverageQuery } from '../../shared/record-task.ts'
import { DAY_NS, UNRECORDED_NS_MIN } from '../lob/book-stretches.ts'
import type { CoverageTarget, MarketDate } from './coverage-target.ts'
import type { RecordBatch } from './record-batch.ts'
import { objectBatches } from './record-columns.ts'

// A type alias, because an interface is not assignable to a Record.
type Gap = {
  readonly market_id: string | null
  readonly from_ts: bigint
  to_ts: bigint
  readonly cause: GapCause
}

export class GapRows implements CoverageTarget {
  readonly #query: CoverageQuery
  readonly #fields: readonly RecordField[]
  readonly #gaps: Gap[] = []
  /** By market: its last gap, which may continue in the next date. */
  readonly #last = new Map<string | null, Gap>()

  constructor(query: CoverageQuery, fields: readonly RecordField[]) {
    this.#query = query
    this.#fields = fields
  }

  add({ id, day: { startNs, isOpen }, stretches }: MarketDate): boolean {
    for (const { from, to, cause } of stretches) {
      const isUnrecorded = cause === 'not_recorded'
      if (cause === null || (isUnrecorded && to - from < UNRECORDED_NS_MIN)) continue
      // The rest of an open date may still be recorded.
      if (isUnrecorded && isOpen && to === DAY_NS) continue
      const [fromTs, toTs] = [startNs + BigInt(from), startNs + BigInt(to)]
      const last = this.#last.get(id)
      if (last?.to_ts === fromTs && last.cause === cause) {
        last.to_ts = toTs
        continue
      }
      const gap = { market_id: id, from_ts: fromTs, to_ts: toTs, cause }
      this.#gaps.push(gap)
      this.#last.set(id, gap)
    }
    return true
  }

  get rows(): number {
    return this.#page().length
  }

  get hasMore(): boolean {
    return this.#gaps.length > this.#query.offset + this.#query.limit
  }

  batches(): Iterable<RecordBatch> {
    return objectBatches(this.#page(), this.#fields, 'raw')
  }

  #page(): readonly Gap[] {
    const { offset, limit } = this.#query
    const inOrder = this.#gaps.toSorted(
      (a, b) =>
        (a.from_ts < b.from_ts ? -1 : a.from_ts > b.from_ts ? 1 : 0) || compareIds(a.market_id, b.market_id),
    )
    return inOrder.slice(offset, offset + limit)
  }
}

function compareIds(a: string | null, b: string | null): number {
  return (a ?? '') < (b ?? '') ? -1 : 1
}
