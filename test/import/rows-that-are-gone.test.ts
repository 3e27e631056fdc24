// A lake whose files are fewer or older than what was imported: pruned, removed by hand, or brought back from a copy. What
// earlier imports have heard proves nothing of rows that are gone.

import assert from 'node:assert/strict'
import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { runImport } from '../support/import-harness.ts'
import { T, delta, snapshot } from '../support/kalshi-frames.ts'
import { bookText, readRows, replayRows } from '../support/lob-rows.ts'
import type { NaiveBook } from '../support/lob-rows.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DATES = ['2026-06-24', '2026-06-25'] as const
const MIDNIGHT_MS = Date.parse(`${DATES[1]}T00:00:00Z`)
const MARKET = `0x${'ab'.repeat(32)}`
const SERIES = { kalshi: T.slice(0, T.indexOf('-')), polymarket: MARKET } as const
const CHANGE_S = 20
/** More than name a span (span-links.ts). */
const PART_CHANGES = 20

type Exchange = keyof typeof SERIES

const at = (ms: number, frame: unknown): string => `${JSON.stringify({ recv_ts: ms, msg: frame })}\n`

/** A connection's first book, and changes each of which adds a level. */
const FRAMES: Readonly<
  Record<
    Exchange,
    { readonly book: (ms: number) => string; readonly change: (ms: number, place: number) => string }
  >
> = {
  kalshi: {
    book: (ms) => at(ms, snapshot(1, { yes: [[5, 9]] })),
    change: (ms, place) =>
      at(ms, delta(place + 2, { price_dollars: (0.1 + place / 100).toFixed(4), ts_ms: ms - 20 })),
  },
  polymarket: {
    book: (ms) => {
      const levels = { bids: [{ price: '0.05', size: '9' }], asks: [] }
      return at(ms, [{ event_type: 'book', market: MARKET, asset_id: '7', timestamp: String(ms), ...levels }])
    },
    change: (ms, place) => {
      const change = { asset_id: '7', price: (0.1 + place / 100).toFixed(2), size: '5', side: 'BUY' }
      const timestamp = String(ms - 20)
      return at(ms, { event_type: 'price_change', market: MARKET, timestamp, price_changes: [change] })
    },
  },
}

/** Three parts of a connection that began at `startMs`, as files. */
async function writeParts(directory: string, exchange: Exchange, startMs: number): Promise<string[]> {
  const { book, change } = FRAMES[exchange]
  return await Promise.all(
    [0, 1, 2].map(async (part) => {
      const places = Array.from({ length: PART_CHANGES }, (_, index) => part * PART_CHANGES + index)
      const changes = places.map((place) => change(startMs + (place + 1) * CHANGE_S * 1000, place))
      const path = join(directory, `${part}.ndjson`)
      await writeFile(path, (part === 0 ? book(startMs) : '') + changes.join(''))
      return path
    }),
  )
}

/** The book with which a date's file ends, before the gap that follows its last message. */
async function lastBook(lake: string, source: LobSource, series: string, date: string): Promise<NaiveBook> {
  const rows = await readRows(lobFilePath(lake, source, series, date))
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
    const fileOf = (date: string): string => lobFilePath(lake, exchange, SERIES[exchange], date)
    const last = async (date: string): Promise<NaiveBook> =>
      await lastBook(lake, exchange, SERIES[exchange], date)
    return { lake, add, fileOf, last }
  }

  test(`${exchange}: what came before a date that is gone does not go on behind it`, async (t) => {
    const startMs = MIDNIGHT_MS - (2 * PART_CHANGES + 0.5) * CHANGE_S * 1000
    const { add, fileOf, last } = await setUp(await temporaryDirectory(t), startMs)
    await add(1, 2)
    await rm(fileOf(DATES[0]))
    await add(0)
    assert.equal(bookText(await last(DATES[1])), 'unknown')
    await add(1)
    assert.equal((await last(DATES[1]))?.size, 1 + 3 * PART_CHANGES, 'with the rows comes the book')
  })

  test(`${exchange}: a file of before is not taken for what was imported into it since`, async (t) => {
    const directory = await temporaryDirectory(t)
    const { add, fileOf, last } = await setUp(directory, MIDNIGHT_MS - 3_600_000)
    await add(0)
    const copy = join(directory, 'copy')
    await cp(fileOf(DATES[0]), copy)
    await add(1)
    await cp(copy, fileOf(DATES[0]))
    await add(0)
    assert.deepEqual(
      await readFile(fileOf(DATES[0])),
      await readFile(copy),
      'known until the first part ends',
    )
    await add(2)
    assert.equal(bookText(await last(DATES[0])), 'unknown')
    await add(1)
    assert.equal((await last(DATES[0]))?.size, 1 + 3 * PART_CHANGES, 'with the rows comes the book')
  })
}
