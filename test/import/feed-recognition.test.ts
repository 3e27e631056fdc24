import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lobSources } from '../../shared/lob-sources.ts'
import { FirstFrames } from '../../server/import/first-frames.ts'
import { parseRecordedLine } from '../../server/import/recorded-message.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, delta, snapshot } from '../support/kalshi-frames.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import type { Frame } from '../../server/feed/frame.ts'

const KALSHI: readonly Frame[] = [
  { type: 'orderbook_snapshot', sid: 1, seq: 1, msg: { market_ticker: 'A-B', yes: [[11, 135]] } },
  { type: 'orderbook_delta', sid: 1, seq: 2, msg: { market_ticker: 'A-B', side: 'yes', price: 5, delta: 1 } },
  { type: 'ticker', sid: 1, msg: { market_ticker: 'A-B', price: 14 } },
  { type: 'trade', sid: 2, seq: 10, msg: { market_ticker: 'A-B', yes_price: 77 } },
  { type: 'subscribed', id: 1, msg: { channel: 'orderbook_delta', sid: 1 } },
  { type: 'ok', id: 2, sid: 1, seq: 3, market_tickers: ['A-B'] },
  { type: 'market_lifecycle_v2', sid: 3, msg: { event_type: 'settled', market_ticker: 'A-B' } },
  { id: 1, cmd: 'subscribe', params: { channels: ['orderbook_delta'] } },
]
const POLYMARKET: readonly Frame[] = [
  { event_type: 'book', market: '0x1', asset_id: '7', bids: [], asks: [], timestamp: '1770921570954' },
  { market: '0x1', asset_id: '7', bids: [], asks: [], timestamp: '1770921570954' },
  { market: '0x1', asset_id: '7', buys: [] },
  { event_type: 'price_change', market: '0x1', price_changes: [] },
  { event_type: 'price_change', market: '0x1', asset_id: '7', changes: [] },
  { market: '0x1', asset_id: '7', price: '0.5', size: '3', side: 'BUY' },
  { type: 'book', market: '0x1', asset_id: '7', bids: [] },
  { event_type: 'tick_size_change', market: '0x1', asset_id: '7', new_tick_size: '0.001' },
  { event_type: 'last_trade_price', market: '0x1', asset_id: '7', price: '0.46' },
  { type: 'market', assets_ids: ['7'] },
]
const NEITHER: readonly Frame[] = [
  { type: 'PONG' },
  { type: 'disconnect', ts: 5 },
  { event_type: 'disconnect', timestamp: '5' },
  { type: 'error', id: 1, msg: { code: 10 } },
  { event_type: 'trade', market: '0x1' },
  { market: '0x1' },
  { type: 'ticker', product_id: 'BTC-USD' },
  {},
]

/** The only exchange whose import does not refuse these frames. */
function recogniseFeed(frames: readonly Frame[]): string {
  const refused = lobSources().filter((source) => {
    const first = new FirstFrames('input', source)
    try {
      first.add(frames)
      first.refuseOthers()
      return false
    } catch {
      return true
    }
  })
  return refused.length === 0
    ? 'unknown'
    : lobSources()
        .filter((source) => !refused.includes(source))
        .join()
}

test('every kind of frame identifies its exchange, alone and among neutral frames', () => {
  for (const [source, frames] of [
    ['kalshi', KALSHI],
    ['polymarket', POLYMARKET],
    ['unknown', NEITHER],
  ] as const) {
    assert.equal(recogniseFeed(frames), source)
    for (const frame of frames) {
      assert.equal(recogniseFeed([frame]), source, JSON.stringify(frame))
      assert.equal(recogniseFeed([...NEITHER, frame, ...NEITHER]), source, JSON.stringify(frame))
      const read = parseLine(frame)
      if (read !== undefined) assert.equal(recogniseFeed(read), source, JSON.stringify(frame))
    }
  }
})

// Values that a line cannot contain never reach the function.
function parseLine(frame: Frame): readonly Frame[] | undefined {
  try {
    const line = parseRecordedLine(JSON.stringify({ recv_ts: 1_782_316_195, data: frame }))
    return line.kind === 'frames' ? line.frames : undefined
  } catch {
    return undefined
  }
}

test('no frames and frames of both exchanges are unknown', () => {
  assert.equal(recogniseFeed([]), 'unknown')
  for (const [index, frame] of KALSHI.entries()) {
    assert.equal(recogniseFeed([frame, POLYMARKET[index]!]), 'unknown')
    assert.equal(recogniseFeed([POLYMARKET[index]!, frame]), 'unknown')
  }
})

test('needs a hundred frames', () => {
  const first = new FirstFrames('input', 'kalshi')
  first.add(Array.from({ length: 99 }, () => NEITHER[0]!))
  assert.ok(!first.isSettled)
  assert.throws(() => first.add(POLYMARKET), /import them with --source polymarket/)
  const later = new FirstFrames('input', 'kalshi')
  later.add([...Array.from({ length: 100 }, () => NEITHER[0]!), ...POLYMARKET])
  assert.ok(later.isSettled)
})

test('a change with a wrong value counts among the first frames, and a wrong receive time is reported before it', async (t) => {
  const change = delta(2, { price_dollars: '0.12345' })
  const lines = [
    JSON.stringify(POLYMARKET[0]),
    JSON.stringify({ recv_ts: '2026-06-24T15:49:55Z', msg: change }),
    JSON.stringify({ recv_ts: 'never', msg: change }),
    JSON.stringify(snapshot(1, { ts_ms: MS })),
  ]
  const { badLines } = await runImport(await temporaryDirectory(t), 'kalshi', { lines }, { skipBad: true })
  assert.deepEqual(badLines[0]?.first, [
    'stdin:2: no price in dollars, or finer than 1/10000: "0.12345"',
    'stdin:3: recv_ts is no time: "never"',
  ])
})
