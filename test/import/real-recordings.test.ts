// Imports of the real recordings, which are not part of the project.

import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { runImport } from '../support/import-harness.ts'
import { applyNaively, bookText, readRows } from '../support/lob-rows.ts'
import type { NaiveBook } from '../support/lob-rows.ts'
import { realDataPath } from '../support/real-data.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const ABSENT = 'real recordings not present'

interface OldFrame {
  readonly type: string
  readonly seq: number
  readonly msg: { readonly yes?: [number, number][]; readonly no?: [number, number][] }
}

function snapshotBook({ msg }: OldFrame): NaiveBook {
  const book = new Map<string, bigint>()
  for (const [cents, count] of msg.yes ?? []) book.set(`0:${cents * 100}`, BigInt(count) * 1_000_000n)
  for (const [cents, count] of msg.no ?? []) book.set(`1:${10_000 - cents * 100}`, BigInt(count) * 1_000_000n)
  return book
}

// The levels on which two books differ.
function difference(a: NaiveBook, b: NaiveBook): string[] {
  const keys = new Set([...(a ?? []), ...(b ?? [])].map(([key]) => key))
  return [...keys].filter((key) => a?.get(key) !== b?.get(key))
}

test('the book rebuilt from a real Kalshi recording equals its later snapshots but for the folded delta', async (t) => {
  const path = realDataPath('order-books', 'kalshi', 'INXD-23AUG31-B4512.part1.ndjson.gz')
  if (path === undefined) {
    t.skip(ABSENT)
    return
  }
  const { files, tally } = await runImport(await temporaryDirectory(t), 'kalshi', { paths: [path] })
  assert.deepEqual(
    files.map(({ series, date, gaps, markets }) => ({ series, date, gaps, markets })),
    [{ series: 'INXD', date: '2023-08-31', gaps: 0, markets: 1 }],
  )
  assert.deepEqual([tally.messages, tally.repeats, tally.negativeLevels], [20_000, 0, 0])
  const frames = gunzipSync(await readFile(path))
    .toString()
    .trim()
    .split('\n')
    .map((line): OldFrame => JSON.parse(line))
  const snapshots = new Map(
    frames.filter((frame) => frame.type === 'orderbook_snapshot').map((frame) => [BigInt(frame.seq), frame]),
  )
  let book: NaiveBook
  let compared = 0
  for (const row of await readRows(files[0]!.path)) {
    const snapshot = row.event === 0 ? snapshots.get(row.seq) : undefined
    if (snapshot !== undefined && snapshot.seq > 2) {
      assert.equal(difference(book, snapshotBook(snapshot)).length, 1, `snapshot ${snapshot.seq}`)
      compared++
    }
    book = applyNaively(book, row.event, row.side, row.price, row.qty)
    // Keyframes in between change nothing.
    if (row.seq === 0n && row.event === 0) assert.ok(row.ts % 3_600_000_000_000n === 0n)
  }
  assert.equal(compared, snapshots.size - 2)
  assert.ok(compared >= 3)
  const last = frames.findLast((frame) => frame.type === 'orderbook_snapshot')!
  assert.ok(bookText(snapshotBook(last)).length > 0)
})

test('real Kalshi ticker and trade frames are skipped by type', async (t) => {
  const directory = realDataPath('exchange-frames')
  if (directory === undefined) {
    t.skip(ABSENT)
    return
  }
  const paths = ['kalshi_ticker.jsonl', 'kalshi_trade.jsonl'].map((name) => join(directory, name))
  const { files, tally } = await runImport(await temporaryDirectory(t), 'kalshi', { paths })
  assert.deepEqual(
    [files.length, tally.events, [...tally.skippedTypes.keys()].toSorted()],
    [0, 0, ['ticker', 'trade']],
  )
})

test('real Polymarket books are read level by level', async (t) => {
  const path = realDataPath('exchange-frames', 'polymarket_book.jsonl')
  if (path === undefined) {
    t.skip(ABSENT)
    return
  }
  const { files } = await runImport(
    await temporaryDirectory(t),
    'polymarket',
    { paths: [path] },
    { series: 'demo' },
  )
  assert.deepEqual(
    files.map(({ date, markets, gaps }) => [date, markets, gaps]),
    [['2026-02-12', 10, 0]],
  )
  const rows = await readRows(files[0]!.path)
  interface RealBook {
    readonly market: string
    readonly asset_id: string
    readonly bids: { price: string; size: string }[]
    readonly asks: { price: string; size: string }[]
  }
  const books = (await readFile(path, 'utf8'))
    .trim()
    .split('\n')
    .map((line): RealBook => JSON.parse(line))
  for (const { market, asset_id, bids, asks } of books) {
    const levels = [
      ...bids.map((level) => ({ side: 0, ...level })),
      ...asks.map((level) => ({ side: 1, ...level })),
    ]
    const expected = levels.map(({ side, price, size }) => [side, Number(price), Number(size)])
    const found = rows
      .filter((row) => row.market_id === `${market}:${asset_id}` && row.event === 1)
      .map((row) => [row.side, row.price / 10_000, Number(row.qty) / 1_000_000])
    assert.deepEqual(found, expected)
  }
})

test('real Polymarket frames of every form decode', async (t) => {
  const directory = realDataPath('exchange-frames', 'polymarket_ws')
  if (directory === undefined) {
    t.skip(ABSENT)
    return
  }
  const names = await readdir(directory)
  const lines = await Promise.all(
    names.map(async (name) => JSON.stringify(JSON.parse(await readFile(join(directory, name), 'utf8')))),
  )
  for (const [index, line] of lines.entries()) {
    const { tally } = await runImport(await temporaryDirectory(t), 'polymarket', { lines: [line] })
    const expected: Record<string, number> = {
      'price_change.json': 1,
      'price_change_v2.json': 3,
      'tick_size_change.json': 0,
      'last_trade_price.json': 0,
    }
    const name = names[index]!
    if (name === 'book.json') assert.ok(tally.events > 10)
    else assert.equal(tally.events, expected[name], name)
  }
})
