// Unusual rows against the naive reference: timestamps of few digits, ids that must be escaped, every order of columns, books
// at the ends of the price grid and quantities of many digits.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { LobQuery, SnapshotColumn } from '../../shared/lob-task.ts'
import { SNAPSHOT_COLUMNS } from '../../shared/lob-task.ts'
import { PLAIN_FOREIGN_FILE, writeForeignLakeFile } from '../support/lob-files.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { naiveSnapshots, type NaiveEvent, type NaiveRow } from '../support/naive-lob.ts'
import { SERIES } from '../support/recorded-events.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { csvOf, dateStartNs, ndjsonOf } from '../support/truth-lakes.ts'

const SECOND = 1_000_000_000n
const CLEAR = 0
const SET = 1

function bookOf(marketId: string, ts: bigint, levels: readonly [side: number, price: number, qty: bigint][]) {
  const clear: NaiveEvent = { marketId, ts, event: CLEAR, side: 0, price: 0, qty: 0 }
  return [clear, ...levels.map(([side, price, qty]) => ({ marketId, ts, event: SET, side, price, qty }))]
}

interface Case {
  readonly date: string
  readonly events: readonly NaiveEvent[]
  readonly query?: Partial<LobQuery>
}

async function answerOf(t: Parameters<typeof temporaryDirectory>[0], { date, events, query }: Case) {
  const lake = await temporaryDirectory(t)
  writeForeignLakeFile(lake, { source: 'kalshi', series: SERIES, date }, events, PLAIN_FOREIGN_FILE)
  const whole = lobQuery({ series: SERIES, dates: [date], format: 'ndjson', ...query })
  const rows = naiveSnapshots(events, {
    dateStartMs: Date.parse(`${date}T00:00:00Z`),
    intervalS: whole.intervalS,
    levels: whole.levels,
  })
  assert.ok(rows.length > 0)
  const bodyOf = async (part: Partial<LobQuery>): Promise<string> => {
    const { failure, body } = await collectLob(lake, { ...whole, ...part })
    assert.equal(failure, undefined, failure?.detail)
    return body.toString()
  }
  return { rows, levels: whole.levels, bodyOf }
}

async function assertTrue(t: Parameters<typeof temporaryDirectory>[0], sample: Case): Promise<void> {
  const { rows, levels, bodyOf } = await answerOf(t, sample)
  assert.equal(await bodyOf({ format: 'ndjson' }), ndjsonOf(rows))
  assert.equal(await bodyOf({ format: 'json' }), JSON.stringify(rows))
  assert.equal(await bodyOf({ format: 'csv' }), csvOf(rows, levels))
}

for (const [what, date, fromSecond, seconds] of [
  ['the epoch itself and the seconds after it', '1970-01-01', 0, 1200],
  ['a hundred thousand seconds after the epoch', '1970-01-02', 13_000, 1200],
  ['the second with which ts gets its last digit', '2001-09-09', 6_000, 1200],
  ['a date far ahead', '2262-04-10', 86_000, 300],
] as const) {
  test(`rows of an unchanged book are correct when the length of ts changes: ${what}`, async (t) => {
    const start = dateStartNs(date) + BigInt(fromSecond) * SECOND
    const level = [[0, 4000, 5_000_000n]] as const
    await assertTrue(t, {
      date,
      events: [
        ...bookOf(
          'M0',
          start,
          level.map(([...one]) => one),
        ),
        ...bookOf('M1', start, []),
        ...bookOf('M0', start + BigInt(seconds) * SECOND, []),
      ],
      query: { intervalS: 1, levels: 2 },
    })
  })
}

test('ids are escaped as JSON and csv require', async (t) => {
  const ids = [
    'plain',
    'with "quotes"',
    'with, comma',
    'with\nline\r\nends',
    'back\\slash',
    'Zürich 30°',
    '東京',
    '🌡️',
    '\u0001',
  ]
  const start = dateStartNs('2026-07-01')
  const events = ids.flatMap((id, index) =>
    bookOf(id, start + BigInt(index), [[index & 1, 4200, 7_000_000n]]),
  )
  const { rows, bodyOf } = await answerOf(t, {
    date: '2026-07-01',
    events: [...events, ...bookOf('plain', start + 180n * SECOND, [])],
  })
  assert.deepEqual(new Set(rows.map((row) => row.market_id)).size, ids.length)
  assert.equal(await bodyOf({}), ndjsonOf(rows))
  const csv = await bodyOf({ format: 'csv', columns: ['market_id', 'best_ask'] })
  const field = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  assert.equal(
    csv,
    `market_id,best_ask\n${rows.map((row) => `${field(row.market_id)},${row.best_ask}\n`).join('')}`,
  )
})

test('every choice and order of columns matches the reference', async (t) => {
  const start = dateStartNs('2026-07-01')
  const events = Array.from({ length: 40 }, (_, step) =>
    bookOf(`M${step % 3}`, start + BigInt(step * 20) * SECOND, [
      [0, 4000 + (step % 5) * 100, BigInt(step) * 1_000_000n],
      [1, 6000, 3_000_000n],
      [step & 1, step % 7 === 0 ? 100 : 9900, 12_345_678_000_000n],
    ]),
  ).flat()
  const { rows, bodyOf } = await answerOf(t, {
    date: '2026-07-01',
    events,
    query: { intervalS: 10, levels: 3 },
  })
  const choices = fc.shuffledSubarray([...SNAPSHOT_COLUMNS], { minLength: 1 })
  await fc.assert(
    fc.asyncProperty(choices, async (columns) => {
      const picked = rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column]])))
      assert.equal(await bodyOf({ columns }), picked.map((row) => `${JSON.stringify(row)}\n`).join(''))
      assert.equal(await bodyOf({ columns, format: 'json' }), JSON.stringify(picked))
      assert.equal(await bodyOf({ columns, format: 'csv' }), csvColumns(rows, columns, 3))
    }),
    { numRuns: 60 },
  )
})

function csvColumns(rows: readonly NaiveRow[], columns: readonly SnapshotColumn[], levels: number): string {
  const numbers = Array.from({ length: levels }, (_, index) => index)
  const header = columns.flatMap((column) => {
    if (column !== 'bids' && column !== 'asks') return [column]
    const side = column.slice(0, 3)
    return numbers.flatMap((index) => [`${side}_price_${index + 1}`, `${side}_qty_${index + 1}`])
  })
  const lines = rows.map((row) =>
    columns.flatMap((column) =>
      column === 'bids' || column === 'asks'
        ? numbers.flatMap((index) => [row[column][index]?.price ?? '', row[column][index]?.qty ?? ''])
        : column === 'book_state'
          ? []
          : [row[column]],
    ),
  )
  return [header, ...lines].map((fields) => `${fields.join(',')}\n`).join('')
}

test('books at the ends of the price grid, crossed ones and quantities of up to ten digits are exact', async (t) => {
  const start = dateStartNs('2026-07-01')
  const quantities = [1n, 9n, 10n, 999n, 1000n, 1001n, 99_999n, 100_000n, 999_999n, 1_000_000n, 1_000_999n]
  const large = [123_456_789n, 999_999_999n, 1_000_000_000n, 1_000_000_001n, 9_007_199_254n]
  const prices = [1, 99, 100, 199, 200, 5000, 5050, 9800, 9801, 9900, 9901, 9999]
  const events = [...quantities, ...large].flatMap((contracts, step) =>
    bookOf('M0', start + BigInt(step * 60) * SECOND, [
      ...prices.map((price) => [0, price, contracts * 1_000_000n] as [number, number, bigint]),
      ...prices
        .slice(step % 3)
        .map((price) => [1, price, contracts * 1_000_000n - 1n] as [number, number, bigint]),
    ]),
  )
  for (const levels of [1, 3, 50]) await assertTrue(t, { date: '2026-07-01', events, query: { levels } })
})
