// Real recordings, replayed by a local exchange: much faster than they were received, and with every fault in between.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { IS_FULL_EFFORT } from '../support/effort.ts'
import { runImport } from '../support/import-harness.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { bookText, readRows } from '../support/lob-rows.ts'
import type { LobRow } from '../support/lob-rows.ts'
import { realDataPath } from '../support/real-data.ts'
import { checkAgainst, eventually, readSeries, recordKalshi } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

/** In the quick gear only the beginning of the day. */
const LINES = IS_FULL_EFFORT ? Infinity : 12_000
const ABSENT = 'real recordings not present'

async function readGzip(path: string): Promise<string[]> {
  return gunzipSync(await readFile(path))
    .toString()
    .trim()
    .split('\n')
}

async function turn(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve)
  })
}

/** The level changes of a top-of-book stream: remove the old best, add the new one. */
function* changesOf(
  lines: readonly string[],
): Generator<[ticker: string, side: number, cents: number, qty: number]> {
  const best = new Map<string, [bid: number, ask: number]>()
  for (const line of lines.slice(1)) {
    const [, ticker, yesBid, , , yesAsk] = line.split(',') as [string, string, string, string, string, string]
    const now: [number, number] = [Number(yesBid), Number(yesAsk)]
    const before = best.get(ticker)
    for (const side of [0, 1]) {
      if (before?.[side] === now[side]) continue
      const isPrice = (cents: number | undefined): cents is number =>
        cents !== undefined && cents > 0 && cents < 100
      const [old, fresh] = [before?.[side], now[side]]
      if (isPrice(old)) yield [ticker, side, old, -500]
      if (isPrice(fresh)) yield [ticker, side, fresh, 500]
    }
    best.set(ticker, now)
  }
}

test('the known books of a real event day, sent at full speed with faults, are correct', async (t) => {
  const path = realDataPath('order-books', 'kalshi-top-of-book', 'market_data_KXHIGHNY-26JAN02.csv.gz')
  if (path === undefined) {
    t.skip(ABSENT)
    return
  }
  const lines = await readGzip(path)
  const tickers = [...new Set(lines.slice(1).map((line) => line.split(',')[1]!))]
  const exchange = await LocalKalshi.start(t)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), tickers)
  const isComplete = (): boolean => tickers.every((ticker) => exchange.isFollowed(ticker))
  await exchange.until(isComplete)
  const random = new SeededRandom(20260102, 'recorder faults')
  let [sent, faults] = [0, 0]
  for (const [ticker, side, cents, qty] of changesOf(lines.slice(0, LINES))) {
    const chance = random.unit()
    const fault = chance < 0.0005 ? 'lost' : chance < 0.001 ? 'repeated' : undefined
    if (fault !== undefined) faults++
    exchange.change(ticker, side, cents, qty, fault)
    if (chance > 0.9998) {
      faults++
      const kind = random.unit()
      if (kind < 0.25) exchange.dropConnections()
      else if (kind < 0.5) exchange.endSubscriptions(kind < 0.4 ? 10 : 25)
      else if (kind < 0.75) exchange.say('{"type":"orderbook_delta","sid":1,')
      else exchange.delayMs = Math.floor(random.unit() * 5000)
      if (kind < 0.5) await exchange.until(isComplete)
    }
    if (++sent % 50 === 0) await turn()
  }
  await exchange.until(isComplete)
  await harness.settle()
  const isKnown = (): boolean => (harness.recorder.metrics.fold?.gappedMarkets ?? ['?']).length === 0
  await eventually(isKnown, 'every book is known again')
  await harness.recorder.stop()
  const rows = await readSeries(harness.lake, 'kalshi', 'KXHIGHNY')
  const { known, unknown, gaps, books } = checkAgainst(exchange, rows)
  for (const ticker of tickers) assert.equal(bookText(books.get(ticker)), exchange.bookText(ticker))
  assert.ok(faults > 10 && gaps > 0)
  t.diagnostic(
    `${sent} changes, ${faults} faults: ${known} in known books, ${unknown} in unknown ones, ${gaps} gaps`,
  )
  assert.ok(known > sent / 2)
})

interface OldMessage {
  readonly type: string
  readonly msg: {
    readonly market_ticker: string
    readonly side?: string
    readonly price?: number
    readonly no?: [number, number][]
    readonly ts_ms?: number
  }
}

// The recorder requests prices on the yes leg; the recording has each price on its own leg.
function onYesLeg({ type, msg }: OldMessage, ms: number): OldMessage {
  const no = msg.no === undefined ? {} : { no: msg.no.map(([cents, count]) => [100 - cents, count]) }
  const price = msg.side === 'no' ? { price: 100 - msg.price! } : {}
  return { type, msg: { ...msg, ...no, ...price, ts_ms: ms } as OldMessage['msg'] }
}

function essence(rows: readonly LobRow[]): unknown[] {
  return rows
    .filter(({ seq, event }) => seq !== 0n && event !== 3)
    .map(({ event, side, price, qty, seq }) => [event, side, price, qty, seq])
}

test('a real full-depth recording, sent through the socket, gives the same books as its import', async (t) => {
  const path = realDataPath('order-books', 'kalshi', 'INXD-23AUG31-B4512.part1.ndjson.gz')
  if (path === undefined) {
    t.skip(ABSENT)
    return
  }
  const messages = (await readGzip(path)).map((line): OldMessage => JSON.parse(line))
  const ticker = messages[0]!.msg.market_ticker
  const exchange = await LocalKalshi.start(t)
  exchange.isKeepingTexts = true
  const root = await temporaryDirectory(t)
  const { recorder, lake } = await recordKalshi(t, exchange, root, [ticker])
  await exchange.until(() => exchange.isFollowed(ticker))
  for (const [index, message] of messages.entries()) {
    exchange.relay(onYesLeg(message, Date.now()))
    if (index % 100 === 0) await turn()
  }
  await eventually(() => recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
  await recorder.stop()
  const recorded = await readSeries(lake, 'kalshi', 'INXD')
  const { files } = await runImport(
    join(root, 'imported'),
    'kalshi',
    { lines: exchange.sentTexts },
    { useYesPrice: true },
  )
  const imported: LobRow[] = []
  for (const file of files) imported.push(...(await readRows(file.path)))
  assert.ok(imported.length > 20_000)
  assert.deepEqual(essence(recorded), essence(imported))
})
