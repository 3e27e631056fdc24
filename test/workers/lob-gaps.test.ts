// on_gap and book_state against the naive reference, in every format and with any layout of the file; Partial-Dates; and the
// known and gap seconds of a receipt.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { EVENT_CLEAR, EVENT_GAP, EVENT_SET } from '../../shared/lob-v1.ts'
import { ALL_SNAPSHOT_COLUMNS, type LobQuery } from '../../shared/lob-task.ts'
import { bookEvents, type BookScript } from '../support/book-scripts.ts'
import { runs } from '../support/effort.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import type { NaiveRow } from '../support/naive-lob.ts'
import { PARQUET_READERS, rowText } from '../support/parquet-readers.ts'
import { bookEvent, DAY_START, HOUR, SECOND, writeEvents } from '../support/recorded-events.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
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

const NOTHING = { event: EVENT_CLEAR, side: 0, price: 0, qty: 0 }
const policies = fc.constantFrom(undefined, 'skip', 'hold', 'hold', 'fail')
/** The states of all rows of all runs. */
const seen = new Set<string>()
let refused = 0

async function bodyOf(lake: string, query: LobQuery): Promise<string> {
  const answer = await collectLob(lake, query)
  assert.equal(answer.failure, undefined, answer.failure?.detail)
  assert.equal(answer.endRows, answer.head?.rows)
  return answer.body.toString()
}

function csvWithState(rows: readonly NaiveRow[], levels: number): string {
  const lines = csvOf(rows, levels).trimEnd().split('\n')
  return lines
    .map((line, index) => `${line},${index === 0 ? 'book_state' : rows[index - 1]!.book_state}\n`)
    .join('')
}

function parquetText(row: NaiveRow): string {
  const levels = (side: NaiveRow['bids']): object[] =>
    side.map(({ price, qty }) => ({ price, qty: BigInt(qty) }))
  return rowText({ ...row, ts: BigInt(row.ts), bids: levels(row.bids), asks: levels(row.asks) })
}

async function check(
  { events }: BookScript,
  shape: Shape,
  request: Request,
  onGap: 'skip' | 'hold' | 'fail' | undefined,
  limit: number | null,
): Promise<void> {
  const lake = mkdtempSync(join(tmpdir(), 'bookcast-gaps-'))
  try {
    writeLake(lake, events, shape)
    const query = lobQuery({
      series: SERIES,
      dates: request.isRange ? DATES : [DATES[1]!],
      intervalS: Math.max(request.intervalS, request.hour === null ? 300 : 7),
      levels: request.levels,
      hour: request.hour,
      format: 'ndjson',
      columns: ALL_SNAPSHOT_COLUMNS,
      onGap,
    })
    const rows = expectedRows(events, shape, query)
    for (const { book_state: state } of rows) seen.add(state!)
    if (onGap === 'fail') {
      const { failure, body } = await collectLob(lake, query)
      const lostRows = rows.filter(({ book_state: state }) => state === 'gap')
      // A gap between two rows counts, too: if no row is lost, only the gaps that the error lists are checked.
      if (lostRows.length === 0 && failure === undefined) return assert.equal(body.toString(), ndjsonOf(rows))
      refused++
      assert.deepEqual([failure?.code, body.length], ['gap', 0])
      const markets = new Set(lostRows.map(({ market_id: id }) => id))
      const listed = failure!.errors.map(({ detail }) => detail.split(':')[0])
      assert.ok([...markets].every((id) => listed.includes(id)))
      assert.ok(
        lostRows.length === 0 ||
          listed.every(
            (id) => markets.has(id!) || events.some((one) => one.marketId === id && one.event === EVENT_GAP),
          ),
      )
      return
    }
    assert.equal(await bodyOf(lake, query), ndjsonOf(rows))
    assert.equal(await bodyOf(lake, { ...query, format: 'json' }), JSON.stringify(rows))
    assert.equal(await bodyOf(lake, { ...query, format: 'csv' }), csvWithState(rows, query.levels))
    const { body } = await collectLob(lake, { ...query, format: 'parquet' })
    assert.deepEqual(await PARQUET_READERS['hyparquet']!(body), rows.map(parquetText))
    if (limit !== null) assert.equal(await bodyOf(lake, { ...query, limit }), ndjsonOf(rows.slice(0, limit)))
    const place = rows[Math.floor(rows.length / 2)]
    if (place === undefined) return
    const after = { seconds: place.ts / 1e9, marketId: place.market_id }
    assert.equal(await bodyOf(lake, { ...query, after }), ndjsonOf(rows.slice(rows.indexOf(place) + 1)))
  } finally {
    rmSync(lake, { recursive: true, force: true })
  }
}

test('answers on_gap and book_state as the naive reference does, in every format', async () => {
  const script = bookEvents({ marketCount: 3, startNs: dateStartNs(FIRST_DATE), hours: 48 })
  // Several scripts together have more gaps; the last market makes files cover most of their dates.
  const scripts = fc.array(script, { minLength: 4, maxLength: 8 }).map((list): BookScript => {
    const last = DATES.flatMap((date) => [
      { ...NOTHING, ts: dateStartNs(date) + HOUR / 2n, marketId: 'M9' },
      { ...NOTHING, ts: dateStartNs(date) + 23n * HOUR, marketId: 'M9', event: EVENT_SET, price: 100 },
    ])
    const events = [...list.flatMap(({ events: some }) => some), ...last]
    return { events: events.toSorted((one, other) => Number(one.ts - other.ts)) }
  })
  const limits = fc.option(fc.integer({ min: 1, max: 500 }))
  await fc.assert(fc.asyncProperty(scripts, shapes, requests, policies, limits, check), {
    numRuns: runs(12, 400),
    seed: 8,
  })
  assert.deepEqual([...seen].toSorted(), ['carried', 'crossed', 'gap', 'held', 'known'])
  assert.ok(refused > 0)
})

const MINUTE = 60n * SECOND
/** One book from 1 h on, lost from 2:00:30 to 2:10:30, and again from 22 h on, on two dates. */
const EVENTS = [0n, 24n].flatMap((hours) => [
  bookEvent('A', DAY_START + (hours + 1n) * HOUR, EVENT_CLEAR),
  bookEvent('A', DAY_START + (hours + 1n) * HOUR, EVENT_SET, 0, 4_500, 7_000_000),
  bookEvent('A', DAY_START + (hours + 2n) * HOUR + 30n * SECOND, EVENT_GAP),
  bookEvent('A', DAY_START + (hours + 2n) * HOUR + 10n * MINUTE + 30n * SECOND, EVENT_CLEAR),
  ...(hours === 0n ? [bookEvent('A', DAY_START + 22n * HOUR, EVENT_GAP)] : []),
])

test('on_gap holds the book over hours, skips its rows, or refuses the request with a list of gaps', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeEvents(lake, EVENTS, {}, DAY_START + 48n * HOUR - 1n)
  const query = { market: 'A', series: null, dates: ['2026-07-01'], format: 'ndjson' as const }
  const columns = ['ts', 'best_bid', 'book_state'] as const
  const at23 = lobQuery({ ...query, columns, hour: 23, intervalS: 1800 })
  const rowsOf = (text: string): unknown[] =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as Record<string, unknown>)['book_state'])
  assert.deepEqual(rowsOf(await bodyOf(lake, at23)), ['gap', 'gap'])
  assert.deepEqual(rowsOf(await bodyOf(lake, { ...at23, onGap: 'hold' })), ['held', 'held'])
  assert.equal(await bodyOf(lake, { ...at23, onGap: 'skip' }), '')
  const at2 = lobQuery({ ...query, columns, hour: 2, intervalS: 300 })
  assert.deepEqual(
    await bodyOf(lake, { ...at2, onGap: 'skip' }).then(rowsOf),
    Array.from({ length: 10 }, () => 'known'),
  )
  const failed = await collectLob(lake, { ...at2, onGap: 'fail' })
  assert.equal(failed.failure?.code, 'gap')
  assert.deepEqual(failed.failure?.errors, [
    { parameter: 'on_gap', detail: 'A: 2026-07-01T02:00:30.000000000Z to 2026-07-01T02:10:30.000000000Z' },
  ])
  const ofTwoDates = await collectLob(lake, { ...at2, dates: ['2026-07-01', '2026-07-02'], onGap: 'fail' })
  assert.equal(ofTwoDates.failure?.errors.length, 2)
  // A gap after the requested rows does not matter.
  assert.deepEqual(await bodyOf(lake, { ...at2, onGap: 'fail', limit: 1 }).then(rowsOf), ['known'])
  assert.equal((await collectLob(lake, { ...at2, onGap: 'fail', limit: 2 })).failure?.code, 'gap')
  const at5 = lobQuery({ ...query, columns, hour: 5, intervalS: 300 })
  assert.deepEqual(
    await bodyOf(lake, { ...at5, onGap: 'fail' }).then(rowsOf),
    Array.from({ length: 12 }, () => 'known'),
  )
})

test('names partial dates, and a receipt states for how long books are known and in a gap', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeEvents(lake, EVENTS, {}, DAY_START + 72n * HOUR - 1n)
  const series = { series: SERIES, market: null, format: 'ndjson' as const, intervalS: 3600 }
  const dates = ['2026-07-01', '2026-07-02', '2026-07-03']
  const { head } = await collectLob(lake, lobQuery({ ...series, dates }))
  assert.deepEqual(head?.partialDates, ['2026-07-01', '2026-07-02'])
  const quiet = await collectLob(lake, lobQuery({ ...series, dates, hour: 5 }))
  assert.deepEqual(quiet.head?.partialDates, [])
  const receiptOf = async (query: LobQuery) =>
    (await collectLob(lake, query, { part: 'receipt' })).head?.bookTimes
  const day = await receiptOf(lobQuery({ ...series, dates: ['2026-07-01'] }))
  assert.deepEqual([day?.knownS, day?.gapS], [21 * 3600 - 600, 600 + 2 * 3600])
  const hour = await receiptOf(lobQuery({ ...series, dates: ['2026-07-01'], hour: 2 }))
  assert.deepEqual([hour?.knownS, hour?.gapS], [3000, 600])
})

test('a book without rows counts: one that is never known, and one that on_gap=skip leaves out', async (t) => {
  const lake = await temporaryDirectory(t)
  const events = [
    bookEvent('A', DAY_START, EVENT_CLEAR),
    bookEvent('B', DAY_START, EVENT_CLEAR),
    bookEvent('B', DAY_START + 5n * HOUR, EVENT_GAP),
    bookEvent('C', DAY_START + 20n * HOUR, EVENT_SET, 0, 4_000, 1_000_000),
  ]
  await writeEvents(lake, events, {}, DAY_START + 24n * HOUR - 1n)
  const factsOf = async (query: Partial<LobQuery>) => {
    const asked = { market: null, series: SERIES, dates: ['2026-07-01'], intervalS: 300, ...query }
    const { head, endRows } = await collectLob(lake, lobQuery(asked), { part: 'receipt' })
    return [endRows, head?.partialDates.length, head?.bookTimes?.gapS]
  }
  assert.deepEqual(await factsOf({ hour: 4 }), [24, 0, 0])
  assert.deepEqual(await factsOf({ hour: 6 }), [24, 1, 3600])
  assert.deepEqual(await factsOf({ hour: 6, onGap: 'skip' }), [12, 1, 3600])
  assert.deepEqual(await factsOf({ hour: 21, onGap: 'skip' }), [12, 1, 2 * 3600])
  assert.deepEqual(await factsOf({ hour: 21, market: 'A', series: null }), [12, 0, 0])
  assert.deepEqual(await factsOf({ hour: 21, market: 'C', series: null }), [0, 1, 3600])
})
