// Random recordings of both exchanges: replaying the imported files gives the same books as a naive reading of the frames.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { runs } from '../support/effort.ts'
import { runImport } from '../support/import-harness.ts'
import { applyNaively, bookText, readRows, replayRows } from '../support/lob-rows.ts'
import type { NaiveBook } from '../support/lob-rows.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const START_MS = Date.parse('2026-06-24T20:00:00Z')

interface Step {
  readonly kind: 'snapshot' | 'change' | 'other' | 'lost' | 'repeat'
  readonly market: number
  readonly side: number
  readonly cents: number
  readonly size: number
  readonly waitMs: number
  readonly isOldForm: boolean
  readonly isWrapped: boolean
}

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom('snapshot', 'change', 'change', 'change', 'change', 'other', 'lost', 'repeat'),
    market: fc.nat(2),
    side: fc.nat(1),
    cents: fc.integer({ min: 1, max: 6 }),
    size: fc.nat(3),
    waitMs: fc.oneof(fc.nat(1000), fc.nat(4_000_000)),
    isOldForm: fc.boolean(),
    isWrapped: fc.boolean(),
  }),
  { minLength: 1, maxLength: 80 },
)

interface Recording {
  readonly lines: string[]
  readonly books: Map<string, NaiveBook>
}

function wrap(frame: object, step: Step, ms: number): string {
  return JSON.stringify(step.isWrapped ? { recv_ts: `${ms}000000`, data: frame } : frame)
}

// Another market of the series, so that what was lost before it is within what the recording covers.
const LAST_STEP: Step = {
  kind: 'snapshot',
  market: 9,
  side: 0,
  cents: 1,
  size: 0,
  waitMs: 1,
  isOldForm: false,
  isWrapped: false,
}

// A naive recorder: it keeps the exchange's books and writes the messages, some of which are lost.
function recordKalshi(list: readonly Step[]): Recording {
  const exchange = new Map<string, Map<string, number>>()
  const books = new Map<string, NaiveBook>()
  const lines: string[] = []
  let [ms, seq, isBroken] = [START_MS, 0, false]
  for (const step of [...list, LAST_STEP]) {
    ms += step.waitMs
    const ticker = `KXHIGHNY-26JUN24-T${step.market}`
    const levels = exchange.get(ticker) ?? new Map<string, number>()
    exchange.set(ticker, levels)
    if (step.kind === 'repeat') {
      if (lines.length > 0) lines.push(lines.at(-1)!)
      continue
    }
    seq++
    const key = `${step.side}:${step.cents}`
    const change = step.size - (levels.get(key) ?? 0)
    if (step.kind === 'change' || step.kind === 'lost') levels.set(key, step.size)
    if (step.kind === 'lost') {
      isBroken = true
      continue
    }
    if (isBroken) for (const id of books.keys()) books.set(id, undefined)
    isBroken = false
    if (step.kind === 'other') {
      lines.push(wrap({ type: 'trade', sid: 1, seq, msg: { ts_ms: ms } }, step, ms))
    } else if (step.kind === 'snapshot') {
      lines.push(
        wrap(
          { type: 'orderbook_snapshot', sid: 1, seq, msg: kalshiSnapshot(ticker, levels, step, ms) },
          step,
          ms,
        ),
      )
      books.set(ticker, kalshiBook(levels))
    } else {
      lines.push(
        wrap({ type: 'orderbook_delta', sid: 1, seq, msg: kalshiDelta(ticker, change, step, ms) }, step, ms),
      )
      const price = step.side === 0 ? step.cents * 100 : 10_000 - step.cents * 100
      if (change !== 0)
        books.set(ticker, applyNaively(books.get(ticker), 2, step.side, price, BigInt(change) * 1_000_000n))
    }
  }
  return { lines, books }
}

function kalshiSnapshot(ticker: string, levels: ReadonlyMap<string, number>, step: Step, ms: number): object {
  const leg = (side: number): [number, number][] =>
    [...levels]
      .filter(([key, size]) => size > 0 && key.startsWith(`${side}:`))
      .map(([key, size]) => [Number(key.slice(2)), size])
  const decimal = (list: [number, number][]): string[][] =>
    list.map(([cents, size]) => [`0.0${cents}00`, `${size}.00`])
  return step.isOldForm
    ? { market_ticker: ticker, yes: leg(0), no: leg(1), ts_ms: ms }
    : { market_ticker: ticker, yes_dollars_fp: decimal(leg(0)), no_dollars_fp: decimal(leg(1)), ts_ms: ms }
}

function kalshiDelta(ticker: string, change: number, step: Step, ms: number): object {
  const side = step.side === 0 ? 'yes' : 'no'
  return step.isOldForm
    ? { market_ticker: ticker, price: step.cents, delta: change, side, ts_ms: ms }
    : {
        market_ticker: ticker,
        price_dollars: `0.0${step.cents}00`,
        delta_fp: `${change}.00`,
        side,
        ts: new Date(ms).toISOString(),
      }
}

function kalshiBook(levels: ReadonlyMap<string, number>): NaiveBook {
  const book = new Map<string, bigint>()
  for (const [key, size] of levels) {
    const [side, cents] = key.split(':').map(Number)
    const price = side === 0 ? cents! * 100 : 10_000 - cents! * 100
    if (size > 0) book.set(`${side}:${price}`, BigInt(size) * 1_000_000n)
  }
  return book
}

// Sizes are absolute, and only the recorder's own mark shows a loss.
function recordPolymarket(list: readonly Step[]): Recording {
  const books = new Map<string, NaiveBook>()
  const lines: string[] = []
  let ms = START_MS
  const write = (frame: object, step: Step): number =>
    lines.push(wrap({ ...frame, timestamp: String(ms) }, step, ms))
  const trade = (step: Step): number =>
    write({ event_type: 'last_trade_price', market: '0xa', asset_id: '1' }, { ...step, isWrapped: false })
  // Ensures that no book waits for the start of the recording.
  trade(list[0]!)
  for (const step of [...list, LAST_STEP]) {
    const half = Math.floor(step.waitMs / 2)
    ms += half
    // Books alone do not show times of more than an hour later (line-hours.ts).
    if (step.waitMs > 1000) trade(step)
    ms += step.waitMs - half
    const asset_id = String(step.market)
    const id = `0xa:${asset_id}`
    const level = { price: `.0${step.cents}`, size: `${step.size}.5` }
    const price = step.cents * 100
    const qty = BigInt(step.size) * 1_000_000n + 500_000n
    if (step.kind === 'lost') {
      write({ event_type: 'disconnect' }, step)
      for (const key of books.keys()) books.set(key, undefined)
    } else if (step.kind === 'snapshot') {
      const sides = step.side === 0 ? { bids: [level], asks: [] } : { sells: [level] }
      write({ event_type: step.isOldForm ? undefined : 'book', market: '0xa', asset_id, ...sides }, step)
      books.set(id, new Map([[`${step.side}:${price}`, qty]]))
    } else if (step.kind === 'change') {
      const change = { ...level, side: step.side === 0 ? 'BUY' : 'SELL' }
      const form = step.isOldForm
        ? { asset_id, changes: [change] }
        : { price_changes: [{ asset_id, ...change }] }
      write({ event_type: 'price_change', market: '0xa', ...form }, step)
      books.set(id, applyNaively(books.get(id), 1, step.side, price, qty))
    }
  }
  return { lines, books }
}

for (const [source, record] of [
  ['kalshi', recordKalshi],
  ['polymarket', recordPolymarket],
] as const) {
  test(`an imported ${source} recording replays to the books of its frames`, async (t) => {
    const root = await temporaryDirectory(t)
    let run = 0
    const property = fc.asyncProperty(steps, async (list) => {
      const { lines, books } = record(list)
      fc.pre(lines.length > 0)
      const lake = join(root, String(run++))
      const { files } = await runImport(
        lake,
        source,
        { lines },
        { bounds: { groupRows: 9, passRows: 30, spillBytes: 5000 } },
      )
      const last = files.at(-1)
      const replayed = replayRows(last === undefined ? [] : await readRows(last.path))
      for (const [id, book] of books) assert.equal(bookText(replayed.get(id)), bookText(book), id)
    })
    await fc.assert(property, { numRuns: runs(12, 80), seed: 20260624 })
  })
}
