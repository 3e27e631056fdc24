// The truth test of answers that several threads make: whichever thread makes which section, in whatever order, the body
// equals the naive reference.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { bookEvents, type BookScript } from '../support/book-scripts.ts'
import { runs } from '../support/effort.ts'
import { bodyOfShares, collectShares, TINY_SHARES } from '../support/lob-shares.ts'
import { lobQuery } from '../support/lob-worker.ts'
import {
  csvOf,
  DATES,
  dateStartNs,
  expectedRows,
  FIRST_DATE,
  ndjsonOf,
  type Request,
  requests,
  SERIES,
  type Shape,
  shapes,
  writeLake,
} from '../support/truth-lakes.ts'

const RUNS = runs(20, 200, 'TRUTH_RUNS')
/** Cases in which assistants make sections; the random cases need not have any. */
const SHARED = { seed: 2, numRuns: 2 }
/** Maximum rows of an answer. */
const ROWS_MAX = 20_000

/** Events that give every script something to share. */
const FIRST_EVENTS = [0, 1].map((event) => ({
  marketId: 'M0',
  ts: dateStartNs(FIRST_DATE),
  event,
  side: 0,
  price: 4000,
  qty: 5_000_000,
}))

interface Sharing {
  readonly threads: number
  readonly sectionChunksMax: number
  readonly picks: readonly number[]
}

const sharings: fc.Arbitrary<Sharing> = fc.record({
  threads: fc.integer({ min: 1, max: 4 }),
  sectionChunksMax: fc.constantFrom(1, 2, 128),
  picks: fc.array(fc.nat({ max: 11 }), { minLength: 1, maxLength: 20 }),
})

test('an answer that one to four threads share equals the naive reference', async () => {
  const scripts = bookEvents({ marketCount: 3, startNs: dateStartNs(FIRST_DATE), hours: 48 })
  const cases = fc.tuple(scripts, shapes, requests, sharings)
  let sharedCount = 0
  await fc.assert(
    fc.asyncProperty(cases, async (one) => {
      sharedCount += await check(...one)
    }),
    { numRuns: RUNS, examples: fc.sample(cases, SHARED).map((one) => [one]) },
  )
  assert.ok(sharedCount > 0, 'no assistant made a section')
})

/** Returns the number of answers with a section made by an assistant. */
async function check(
  script: BookScript,
  shape: Shape,
  request: Request,
  { threads, sectionChunksMax, picks }: Sharing,
): Promise<number> {
  const lake = mkdtempSync(join(tmpdir(), 'bookcast-truth-'))
  try {
    const events = [...FIRST_EVENTS, ...script.events]
    writeLake(lake, events, shape)
    const known = events.some(({ marketId }) => marketId === request.market)
    const whole = lobQuery({
      market: known ? request.market : null,
      series: known ? null : SERIES,
      dates: request.isRange || request.hour !== null ? DATES : [DATES[0]!],
      intervalS: Math.max(request.intervalS, 7),
      levels: request.levels,
      hour: request.hour,
    })
    const wholeRows = expectedRows(events, shape, whole)
    const isLong = wholeRows.length > ROWS_MAX
    const query = isLong ? { ...whole, hour: 12 } : whole
    const rows = isLong ? expectedRows(events, shape, query) : wholeRows
    let sharedCount = 0
    let turn = 0
    for (const format of ['ndjson', 'csv'] as const) {
      const answer = await collectShares(
        lake,
        { ...query, format },
        {
          threads,
          bounds: { ...TINY_SHARES, sectionChunksMax },
          pick: (count) => picks[turn++ % picks.length]! % count,
        },
      )
      const expected = format === 'csv' ? csvOf(rows, query.levels) : ndjsonOf(rows)
      assert.equal(bodyOfShares(answer).toString(), expected)
      if (answer.shares.slice(1).some(({ sections }) => sections.length > 0)) sharedCount++
    }
    return sharedCount
  } finally {
    rmSync(lake, { recursive: true, force: true })
  }
}
