// The order in which one market's records of an hour are folded: each chain's records as appended, chains merged by time.

import type { EventRecords } from './event-spill.ts'

/**
 * The records `[from, to)` of one market in their final order, as record numbers; undefined if they are in order already. For
 * equal times the earlier chain comes first. If a chain's time goes back, it is raised in place.
 */
export function orderOfRecords(
  records: EventRecords,
  from: number,
  to: number,
): readonly number[] | undefined {
  if (isInOrder(records, from, to)) return undefined
  const lastOf = new Map<number, bigint>()
  for (let record = from; record < to; record++) {
    const chain = records.chain(record)
    const last = lastOf.get(chain)
    const ts = records.ts(record)
    if (last !== undefined && ts < last) records.move(record, last)
    else lastOf.set(chain, ts)
  }
  return Array.from({ length: to - from }, (_, index) => from + index).toSorted((a, b) => {
    const [left, right] = [records.ts(a), records.ts(b)]
    return left === right ? records.chain(a) - records.chain(b) : left < right ? -1 : 1
  })
}

function isInOrder(records: EventRecords, from: number, to: number): boolean {
  for (let record = from + 1; record < to; record++) {
    const isNext =
      records.chain(record) === records.chain(record - 1) && records.ts(record) >= records.ts(record - 1)
    if (!isNext) return false
  }
  return true
}
