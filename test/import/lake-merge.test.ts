// How a later import changes existing files of the lake.

import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { runImport } from '../support/import-harness.ts'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { readFooterValue, readRows } from '../support/lob-rows.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { lakeHashes } from './pieces/lake-reader.ts'

const HOUR_MS = 3_600_000
const at = (ms: number, frame: object): string => JSON.stringify({ recv_ts: MS + ms, msg: frame })
const change = (hours: number, seq: number, ticker: string): string =>
  at(hours * HOUR_MS, delta(seq, { market_ticker: ticker, ts_ms: MS + hours * HOUR_MS - 20 }))

test('a first book that is imported last is known through every later date of the lake', async (t) => {
  const directory = await temporaryDirectory(t)
  const lines = [
    at(0, snapshot(1, { yes: [[40, 9]] })),
    ...[1, 20, 43, 66, 89].map((hours, index) => change(hours, index + 2, T)),
  ]
  const [whole, late] = [join(directory, 'whole'), join(directory, 'late')]
  await runImport(whole, 'kalshi', { lines })
  await runImport(late, 'kalshi', { lines: lines.slice(1) })
  await runImport(late, 'kalshi', { lines: lines.slice(0, 1) })
  const [expected, found] = [await lakeHashes(whole), await lakeHashes(late)]
  assert.ok(expected.size >= 4, `${expected.size} dates`)
  assert.deepEqual(found, expected)
})

test('with one market a file, an old connection’s book does not outlive it if numbers fit by chance', async (t) => {
  const directory = await temporaryDirectory(t)
  // Number 3 of the first connection is T's last; T's first of the second, hours later, is number 4.
  const ofT = [
    at(0, snapshot(1, { yes: [[40, 9]] })),
    change(1, 3, T),
    at(9 * HOUR_MS + 100, snapshot(4, { yes: [[50, 9]] })),
  ]
  const ofB = [
    at(10, snapshot(2, { market_ticker: B, yes: [[30, 5]] })),
    change(1.5, 4, B),
    at(9 * HOUR_MS, snapshot(1, { market_ticker: B, yes: [[20, 5]] })),
    change(9.00001, 2, B),
    change(9.00002, 3, B),
  ]
  for (const files of [
    [ofT, ofB],
    [ofB, ofT],
  ]) {
    const lake = join(directory, 'lake')
    for (const lines of files) await runImport(lake, 'kalshi', { lines })
    const path = (date: string): string =>
      join(lake, `lob/source=kalshi/series=KXHIGHNY/date=${date}/lob.parquet`)
    const lastOfFirst = BigInt(MS + 1.5 * HOUR_MS - 20) * 1_000_000n
    assert.equal(await readFooterValue(path('2026-06-24'), 'covers_to'), String(lastOfFirst))
    const [firstOfNextDate] = await readRows(path('2026-06-25'))
    assert.equal(firstOfNextDate?.ts, BigInt(MS + 9 * HOUR_MS) * 1_000_000n)
    await rm(lake, { recursive: true })
  }
})

test('two recorders with the same numbers merge equally in pieces, even if the second receives first after a silence', async (t) => {
  const directory = await temporaryDirectory(t)
  const chicago = 'KXHIGHCHI-26JUN24-T90'
  // After ten minutes of silence both receive number 3, and only number 4 is of Chicago.
  const lines = (lagMs: number, first: number): string[] =>
    [T, chicago, T, chicago, T].slice(first - 1).map((ticker, index) => {
      const seq = index + first
      const ms = seq * 1000 + (seq > 2 ? 600_000 : 0)
      return at(ms + lagMs, delta(seq, { market_ticker: ticker, ts_ms: MS + ms }))
    })
  const [late, early] = [lines(30, 1), lines(20, 3)]
  const [whole, pieces] = [join(directory, 'whole'), join(directory, 'pieces')]
  const files = [join(directory, 'late.ndjson'), join(directory, 'early.ndjson')]
  await writeFile(files[0]!, late.join('\n'))
  await writeFile(files[1]!, early.join('\n'))
  await runImport(whole, 'kalshi', { paths: files })
  for (const path of files) await runImport(pieces, 'kalshi', { paths: [path] })
  assert.deepEqual(await lakeHashes(pieces), await lakeHashes(whole))
})

test('a later connection that misses the same number does not continue the earlier one', async (t) => {
  const directory = await temporaryDirectory(t)
  const connection = (ms: number, lost: number): string[] => [
    at(ms, snapshot(1, { yes: [[40, 9]] })),
    ...[2, 3, 4, 5, 6]
      .filter((seq) => seq !== lost)
      .map((seq) => at(ms + seq * 1000, delta(seq, { ts_ms: MS + ms + seq * 1000 - 20 }))),
  ]
  // The first loses number 4 after number 3; the second, three hours later, loses number 3: its next is number 4.
  const files = [join(directory, 'a.ndjson'), join(directory, 'b.ndjson')]
  await writeFile(files[0]!, connection(0, 4).join('\n'))
  await writeFile(files[1]!, connection(3 * HOUR_MS, 3).join('\n'))
  for (const [name, imports] of [
    ['whole', [files]],
    ['pieces', files.map((path) => [path])],
    ['again', [[files[1]!], [files[0]!], files]],
  ] as const) {
    const lake = join(directory, name)
    for (const paths of imports) await runImport(lake, 'kalshi', { paths: [...paths] })
    const rows = await readRows(join(lake, 'lob/source=kalshi/series=KXHIGHNY/date=2026-06-24/lob.parquet'))
    const gap = rows.find(({ event }) => event === 3)
    assert.equal(gap?.ts, BigInt(MS + 3000 - 20) * 1_000_000n + 1n, name)
  }
})

test('recorders whose first messages of a date arrived in the same millisecond stay apart', async (t) => {
  const directory = await temporaryDirectory(t)
  const midnight = Date.UTC(2026, 5, 25)
  const recorded = (wayMs: (place: number) => number): string[] => {
    const frame = (ms: number, content: object): object => ({
      market: '0xc0',
      timestamp: String(ms),
      ...content,
    })
    const book = { event_type: 'book', asset_id: '7', bids: [{ price: '0.4', size: '9' }], asks: [] }
    const line = (ms: number, way: number, frames: object): string =>
      JSON.stringify({ recv_ts: ms + way, msg: frames })
    const changes = [{ asset_id: '7', price: '0.5', size: '5', side: 'BUY' }]
    return [
      line(midnight - 9_000, wayMs(0), [frame(midnight - 9_000, book)]),
      ...Array.from({ length: 40 }, (_, place) => {
        const ms = midnight - 2_000 + place * 2_000
        return line(ms, wayMs(place), frame(ms, { event_type: 'price_change', price_changes: changes }))
      }),
    ]
  }
  // The second was faster except for the first message of the date. The third finds both in the lake.
  const recordings = [recorded(() => 20), recorded((place) => (place === 1 ? 20 : 7)), recorded(() => 11)]
  const [whole, apart] = [join(directory, 'whole'), join(directory, 'apart')]
  const paths = recordings.map((_, index) => join(directory, `${index}.ndjson`))
  for (const [index, lines] of recordings.entries()) await writeFile(paths[index]!, lines.join('\n'))
  await runImport(whole, 'polymarket', { paths })
  for (const path of paths) await runImport(apart, 'polymarket', { paths: [path] })
  assert.deepEqual(await lakeHashes(apart), await lakeHashes(whole))
})
