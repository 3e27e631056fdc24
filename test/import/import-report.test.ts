// The known time that an import reports must match the lake's rows, which are counted here by brute force.

import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeImportReport } from '../../server/commands/import-report-file.ts'
import type { ImportResult } from '../../server/import/recording-import.ts'
import { runImport } from '../support/import-harness.ts'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { readRows } from '../support/lob-rows.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const HOUR_MS = 3_600_000
const at = (ms: number, frame: object): string => JSON.stringify({ recv_ts: MS + ms, msg: frame })
/** A delta that the exchange stamps `lagMs` before it arrives. */
const late = (ms: number, seq: number, ticker: string, lagMs = 20): string =>
  at(ms, delta(seq, { market_ticker: ticker, ts_ms: MS + ms - lagMs }))

// Two markets through midnight; a hole, a restart, and one market that never has a book.
const LINES = [
  at(0, snapshot(1, { yes: [[40, 9]] })),
  late(60_000, 2, B),
  at(120_000, snapshot(3, { market_ticker: B, yes: [[30, 5]] })),
  late(200_000, 4, T),
  late(HOUR_MS, 7, T),
  at(2 * HOUR_MS, snapshot(8, { yes: [[41, 9]] })),
  late(10 * HOUR_MS, 9, T),
  late(11 * HOUR_MS, 10, 'KXHIGHNY-26JUN24-T90'),
]

/** Known ns of each market and date, from the rows alone: from each `clear` to the next `gap` or the end. */
async function countedFromRows(result: ImportResult): Promise<Map<string, bigint>> {
  const known = new Map<string, bigint>()
  for (const { path, date, coversTo } of result.files) {
    const since = new Map<string, bigint>()
    const add = (id: string, to: bigint): void => {
      const key = `${id} ${date}`
      const from = since.get(id)
      known.set(key, (known.get(key) ?? 0n) + (from === undefined ? 0n : to - from))
      since.delete(id)
    }
    const rows = await readRows(path)
    for (const { market_id: id, ts, event } of rows) {
      if (event === 3) add(id, ts)
      else if (event === 0 && !since.has(id)) since.set(id, ts)
    }
    for (const id of new Set(rows.map((row) => row.market_id))) add(id, coversTo + 1n)
  }
  return known
}

test('the reported known time matches the rows of the lake, also after a merge', async (t) => {
  const lake = await temporaryDirectory(t)
  for (const lines of [LINES.slice(0, 4), LINES, LINES.slice(5)]) {
    const result = await runImport(lake, 'kalshi', { lines })
    const counted = await countedFromRows(result)
    assert.ok(result.days.length > 0)
    for (const { market, date, knownNs } of result.days) {
      assert.equal(knownNs, counted.get(`${market} ${date}`), `${market} ${date}`)
    }
  }
})

test('the JSON report names gaps with their cause, lag, resets and changes without a book', async (t) => {
  const lake = await temporaryDirectory(t)
  const result = await runImport(lake, 'kalshi', { lines: LINES })
  const path = join(lake, 'report.json')
  await writeImportReport(result, { lake, source: 'kalshi', sequence: 'strict' }, path)
  const report = JSON.parse(await readFile(path, 'utf8'))
  const days = new Map<string, Record<string, unknown>>()
  for (const { market_id: id, dates } of report.markets) {
    for (const day of dates) days.set(`${id} ${day.date}`, day)
  }
  const first = days.get(`${T} 2026-06-24`)!
  assert.deepEqual(first['gaps'], [
    {
      from: '2026-06-24T15:53:14.980000001Z',
      to: '2026-06-24T17:49:55.000000000Z',
      cause: 'sequence gap',
    },
  ])
  assert.equal(first['resets'], 1)
  assert.equal(first['changes_without_book'], 1)
  const { p50, p99 } = first['lag_ms'] as { p50: number; p99: number }
  assert.ok(p50 >= 18 && p50 <= 22.5 && p99 >= 18 && p99 <= 22.5, `${p50} ${p99}`)
  assert.equal(days.get('KXHIGHNY-26JUN24-T90 2026-06-25')!['known_share_of_day'], 0)
  assert.deepEqual(report.gaps, { 'sequence gap': 2 })
})

test("another exchange's messages and an unsupported compression are refused with the input's name", async (t) => {
  const lake = await temporaryDirectory(t)
  const book = JSON.stringify({
    event_type: 'book',
    market: '0x1',
    asset_id: '2',
    bids: [],
    asks: [],
    timestamp: `${MS}`,
  })
  await assert.rejects(
    runImport(lake, 'kalshi', { lines: [book] }),
    /stdin: these are messages of polymarket, not of kalshi; import them with --source polymarket/,
  )
  await assert.rejects(runImport(lake, 'polymarket', { lines: LINES }), /--source kalshi/)
  const path = join(lake, 'a.bz2')
  await writeFile(path, 'BZh91AY')
  await assert.rejects(runImport(lake, 'kalshi', { paths: [path] }), /a\.bz2: bzip2 is not supported/)
})

test('--replace writes the dates of a recording from that recording alone', async (t) => {
  const [lake, fresh] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await runImport(lake, 'kalshi', { lines: LINES.slice(0, 6) })
  const other = [at(500, snapshot(1, { yes: [[45, 2]] }, 3)), at(900, delta(2, {}, 3))]
  const replaced = await runImport(lake, 'kalshi', { lines: other }, { replace: true })
  const [alone] = (await runImport(fresh, 'kalshi', { lines: other })).files
  assert.equal(replaced.files[0]!.status, 'replaced')
  assert.deepEqual(await readFile(replaced.files[0]!.path), await readFile(alone!.path))
})
