// A lake whose files are fewer or older than what was imported: pruned, removed by hand, or brought back from a copy. What
// earlier imports have heard proves nothing of rows that are gone.

import assert from 'node:assert/strict'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { runImport } from '../support/import-harness.ts'
import { T, delta, snapshot } from '../support/kalshi-frames.ts'
import { bookText, readRows, replayRows } from '../support/lob-rows.ts'
import type { NaiveBook } from '../support/lob-rows.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DATES = ['2026-06-24', '2026-06-25'] as const
const MIDNIGHT_MS = Date.parse(`${DATES[1]}T00:00:00Z`)
/** Two series on one connection, with a market each. */
const MARKETS = {
  kalshi: [T, T.replace('NY', 'CHI')],
  polymarket: [`0x${'ab'.repeat(32)}`, `0x${'cd'.repeat(32)}`],
} as const
const CHANGE_S = 20
/** More than name a span (span-links.ts). */
const PART_CHANGES = 20

type Exchange = keyof typeof MARKETS

const at = (ms: number, frame: unknown): string => `${JSON.stringify({ recv_ts: ms, msg: frame })}\n`

interface Frames {
  /** The first books of a connection. */
  readonly books: (ms: number) => string
  /** Changes that add a level to each book. */
  readonly changes: (ms: number, place: number) => string
}

const priceOf = (place: number): string => (0.1 + place / 100).toFixed(4)

const FRAMES: Readonly<Record<Exchange, Frames>> = {
  kalshi: {
    books: (ms) =>
      MARKETS.kalshi
        .map((market, index) => at(ms, snapshot(1 + index, { market_ticker: market, yes: [[5, 9]] })))
        .join(''),
    changes: (ms, place) =>
      MARKETS.kalshi
        .map((market, index) => {
          const level = { market_ticker: market, price_dollars: priceOf(place), ts_ms: ms - 20 }
          return at(ms, delta(2 * place + 3 + index, level))
        })
        .join(''),
  },
  polymarket: {
    books: (ms) => {
      const levels = { bids: [{ price: '0.05', size: '9' }], asks: [] }
      const books = MARKETS.polymarket.map((market, index) => {
        return { event_type: 'book', market, asset_id: `${index}`, timestamp: String(ms), ...levels }
      })
      return at(ms, books)
    },
    changes: (ms, place) =>
      MARKETS.polymarket
        .map((market, index) => {
          const change = { asset_id: `${index}`, price: priceOf(place), size: '5', side: 'BUY' }
          const timestamp = String(ms - 20)
          return at(ms, { event_type: 'price_change', market, timestamp, price_changes: [change] })
        })
        .join(''),
  },
}

/** Three parts of a connection that began at `startMs`, as files. */
async function writeParts(directory: string, exchange: Exchange, startMs: number): Promise<string[]> {
  const { books, changes } = FRAMES[exchange]
  return await Promise.all(
    [0, 1, 2].map(async (part) => {
      const places = Array.from({ length: PART_CHANGES }, (_, index) => part * PART_CHANGES + index)
      const lines = places.map((place) => changes(startMs + (place + 1) * CHANGE_S * 1000, place))
      const path = join(directory, `${part}.ndjson`)
      await writeFile(path, (part === 0 ? books(startMs) : '') + lines.join(''))
      return path
    }),
  )
}

/** The book with which a file ends, before the gap that follows its last message. */
async function lastBook(path: string): Promise<NaiveBook> {
  const rows = await readRows(path)
  const isGapLast = rows.at(-1)?.event === 3
  return [...replayRows(isGapLast ? rows.slice(0, -1) : rows).values()][0]
}

for (const exchange of ['kalshi', 'polymarket'] as const) {
  const setUp = async (directory: string, startMs: number) => {
    const parts = await writeParts(directory, exchange, startMs)
    const lake = join(directory, 'lake')
    const add = async (...numbers: number[]): Promise<void> => {
      await runImport(lake, exchange, { paths: numbers.map((number) => parts[number]!) })
    }
    /** The files of a date. */
    const filesOf = (date: string): string[] =>
      MARKETS[exchange].map((market) => lobFilePath(lake, exchange, market.replace(/-.*/, ''), date))
    const lastBooks = async (date: string): Promise<NaiveBook[]> =>
      await Promise.all(filesOf(date).map(lastBook))
    return { add, filesOf, lastBooks }
  }
  const unknown = ['unknown', 'unknown']
  const whole = [1 + 3 * PART_CHANGES, 1 + 3 * PART_CHANGES]

  test(`${exchange}: what came before a date that is gone does not go on behind it`, async (t) => {
    const startMs = MIDNIGHT_MS - (2 * PART_CHANGES + 0.5) * CHANGE_S * 1000
    const { add, filesOf, lastBooks } = await setUp(await temporaryDirectory(t), startMs)
    await add(1, 2)
    for (const file of filesOf(DATES[0])) await rm(file)
    await add(0)
    assert.deepEqual((await lastBooks(DATES[1])).map(bookText), unknown)
    await add(1)
    const sizes = (await lastBooks(DATES[1])).map((book) => book?.size)
    assert.deepEqual(sizes, whole, 'with the rows come the books')
  })

  test(`${exchange}: what came before a part of a date that is gone ends there`, async (t) => {
    const { add, filesOf, lastBooks } = await setUp(await temporaryDirectory(t), MIDNIGHT_MS - 3_600_000)
    await add(0)
    const first = await Promise.all(filesOf(DATES[0]).map(async (file) => await readFile(file)))
    for (const file of filesOf(DATES[0])) await rm(file)
    await add(1)
    for (const file of filesOf(DATES[0])) await rm(file)
    await add(0)
    const again = await Promise.all(filesOf(DATES[0]).map(async (file) => await readFile(file)))
    assert.deepEqual(again, first, 'known until the first part ends')
    await add(2, 1)
    const sizes = (await lastBooks(DATES[0])).map((book) => book?.size)
    assert.deepEqual(sizes, whole, 'with the rows come the books')
  })

  test(`${exchange}: a file of before is not taken for what was imported into it since`, async (t) => {
    const { add, filesOf, lastBooks } = await setUp(await temporaryDirectory(t), MIDNIGHT_MS - 3_600_000)
    await add(0)
    const first = await Promise.all(filesOf(DATES[0]).map(async (file) => await readFile(file)))
    await add(1)
    for (const [index, file] of filesOf(DATES[0]).entries()) await writeFile(file, first[index]!)
    await add(0)
    const again = await Promise.all(filesOf(DATES[0]).map(async (file) => await readFile(file)))
    assert.deepEqual(again, first, 'known until the first part ends')
    await add(2)
    assert.deepEqual((await lastBooks(DATES[0])).map(bookText), unknown)
    await add(1)
    const sizes = (await lastBooks(DATES[0])).map((book) => book?.size)
    assert.deepEqual(sizes, whole, 'with the rows come the books')
  })
}
