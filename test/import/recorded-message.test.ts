import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { BadLineError } from '../../server/import/bad-line.ts'
import { parseRecordedLine } from '../../server/import/recorded-message.ts'

const NS = 1_782_316_195_033_836_123n
const KALSHI = { type: 'orderbook_snapshot', sid: 1, seq: 1, msg: { market_ticker: 'A-B' } }
const BOOK = { market: '0x1', asset_id: '7', bids: [], asks: [], timestamp: '1770921570954' }
const CHANGE = { event_type: 'price_change', market: '0x1', price_changes: [] }

test('reads every shape in which a frame can be recorded', () => {
  const k = JSON.stringify(KALSHI)
  const cases: [string, bigint | undefined, object[]][] = [
    [k, undefined, [KALSHI]],
    [` ${k}\r`, undefined, [KALSHI]],
    [JSON.stringify(BOOK), undefined, [BOOK]],
    [JSON.stringify([BOOK, CHANGE]), undefined, [BOOK, CHANGE]],
    ['[]', undefined, []],
    [`{"recv_ts":${NS},"frame":${k}}`, NS, [KALSHI]],
    [`{"recv_ts":"${NS}","msg":${k}}`, NS, [KALSHI]],
    [`{"msg":${k},"received_at":"2026-06-24T15:49:55.033836123Z"}`, NS, [KALSHI]],
    [`{"_received_at":1782316195.033836,"data":${k}}`, 1_782_316_195_033_836_000n, [KALSHI]],
    [`{"recv_time":1782316195033,"message":${k}}`, 1_782_316_195_033_000_000n, [KALSHI]],
    [`{"ts_recv":1782316195033836,"raw":${JSON.stringify(k)}}`, 1_782_316_195_033_836_000n, [KALSHI]],
    [
      `{"local_timestamp":1782316195,"data":${JSON.stringify([BOOK, CHANGE])}}`,
      1_782_316_195_000_000_000n,
      [BOOK, CHANGE],
    ],
    [
      `{"timestamp":"1782316195","raw":${JSON.stringify(JSON.stringify([BOOK]))}}`,
      1_782_316_195_000_000_000n,
      [BOOK],
    ],
    [`{"data":${k}}`, undefined, [KALSHI]],
    [`{"type":"message","recv_ts":1782316195,"data":${k}}`, 1_782_316_195_000_000_000n, [KALSHI]],
    [
      JSON.stringify({ ...KALSHI, _received_at: '2026-06-24T15:49:55.033836123Z' }),
      NS,
      [{ ...KALSHI, _received_at: '2026-06-24T15:49:55.033836123Z' }],
    ],
    [`1782316195033836123 ${k}`, NS, [KALSHI]],
    [`1782316195.033836123\t${k}`, NS, [KALSHI]],
    [`2026-06-24T15:49:55.033836123Z,${k}`, NS, [KALSHI]],
    [`2026-06-24 15:49:55.033836123Z, ${JSON.stringify([BOOK])}`, NS, [BOOK]],
    [`[1782316195033836123, ${k}]`, NS, [KALSHI]],
    [`["2026-06-24T15:49:55.033836123Z",${JSON.stringify([BOOK, CHANGE])}]`, NS, [BOOK, CHANGE]],
    [`[1782316195,${JSON.stringify(k)}]`, 1_782_316_195_000_000_000n, [KALSHI]],
    ['{"id":1,"cmd":"subscribe","params":{}}', undefined, [{ id: 1, cmd: 'subscribe', params: {} }]],
    ['PONG', undefined, [{ type: 'PONG' }]],
    ['{"recv_ts":1782316195,"raw":"PONG"}', 1_782_316_195_000_000_000n, [{ type: 'PONG' }]],
  ]
  for (const [line, recvTs, frames] of cases) {
    assert.deepEqual(parseRecordedLine(line), { recvTs, frames }, line)
  }
})

test('never takes a bare frame for a wrapper', () => {
  const error = { type: 'error', id: 3, msg: { type: 'orderbook_delta', code: 10 } }
  assert.deepEqual(parseRecordedLine(JSON.stringify(error)).frames, [error])
  // A Polymarket frame's own timestamp is not a receive time.
  assert.deepEqual(parseRecordedLine(JSON.stringify(BOOK)), { recvTs: undefined, frames: [BOOK] })
})

test('says what is wrong with a line', () => {
  const cases: [string, RegExp][] = [
    ['{"type":', /no valid JSON/],
    ['garbage', /neither JSON nor a time/],
    ['noon {"type":"ok"}', /neither JSON nor a time/],
    ['12 {"type":', /no valid JSON/],
    ['{}', /neither a frame nor/],
    ['{"recv_ts":5}', /neither a frame nor/],
    ['{"recv_ts":"never","data":{"type":"ok"}}', /recv_ts is no time: "never"/],
    ['[1,2,3]', /no frame/],
    ['[{"type":"ok"},5]', /no frame/],
    ['5', /neither JSON nor a time/],
  ]
  for (const [line, message] of cases) {
    assert.throws(
      () => parseRecordedLine(line),
      (error) => {
        assert.ok(error instanceof BadLineError, line)
        assert.match(error.message, message, line)
        return true
      },
    )
  }
})

test('any text is either read or refused with a reason', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.jsonValue().map((value) => JSON.stringify({ data: value })),
      ),
      (text) => {
        try {
          for (const frame of parseRecordedLine(text).frames) assert.equal(typeof frame, 'object')
        } catch (error) {
          assert.ok(error instanceof BadLineError, String(error))
        }
      },
    ),
  )
})
