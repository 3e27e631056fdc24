// Store rows that move to the lake while a response of several batches is read.

import assert from 'node:assert/strict'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { runs } from './effort.ts'

/** Numbers of days by the batch before which they move, counted from 1. */
type Moves = ReadonlyMap<number, number>

const MOVES: readonly Moves[] = [
  new Map([[2, 1]]),
  new Map([[3, 9]]),
  new Map([
    [1, 1],
    [3, 2],
    [5, 9],
  ]),
]

/** The moves during a response that is read from `offset` on. */
export function movesBehind(offset: number): readonly Moves[] {
  return MOVES.slice(-runs(offset === 0 ? 2 : 1, MOVES.length))
}

/** Moves this many days from an instant on, and returns their number of rows. */
export async function moveDays(
  days: number,
  { postgres, lake, fromMs }: { readonly postgres: Postgres; readonly lake: string; readonly fromMs: number },
): Promise<bigint> {
  const { partitions, failures } = await compactClosedDays({
    postgres,
    lake,
    delayMs: 0,
    clock: { nowMs: () => fromMs + days * MS_PER_DAY, sleep: async () => {} },
  })
  assert.deepEqual(failures, [])
  return partitions.reduce((sum, { rows }) => sum + rows, 0n)
}
