import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { BadLineError } from '../../server/feed/bad-line.ts'
import { parseRecordedLine } from '../../server/import/recorded-message.ts'

const NS = 1_782_316_195_033_836_123n
const KALSHI = { type: 'orderbook_snapshot', sid: 1, seq: 1, msg: { market_ticker: 'A-B' } }
const BOOK = { market: '0x1', asset_id: '7', bids: [], asks: [], timestamp: '1770921570954' }
const CHANGE = { event_type: 'price_change', market: '0x1', price_changes: [] }

/** A line's time and frames, whether or not they came as a list. A heartbeat has its word instead. */
function read(line: string) {
  const message = parseRecordedLine(line)
  const frames = message.kind === 'text' ? [message.text] : message.frames
  return { recvTs: message.recvTs, frames }
}

test('reads every shape in which a frame can be recorded', () => {
  const k = JSON.stringify(KALSHI)
  const cases: [string, bigint | undefined, unknown[]][] = [
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
    ['PONG', undefined, ['PONG']],
    ['1782316195.033836123 PONG', NS, ['PONG']],
    ['2026-06-24 15:49:55.033836123Z,PING', NS, ['PING']],
    ['[1782316195033836123,"PONG"]', NS, ['PONG']],
    ['{"recv_ts":1782316195,"raw":"PONG"}', 1_782_316_195_000_000_000n, ['PONG']],
  ]
  for (const [line, recvTs, frames] of cases) {
    assert.deepEqual(read(line), { recvTs, frames }, line)
  }
})

test('never takes a bare frame for a wrapper', () => {
  const error = { type: 'error', id: 3, msg: { type: 'orderbook_delta', code: 10 } }
  assert.deepEqual(read(JSON.stringify(error)).frames, [error])
  // A Polymarket frame's own timestamp is not a receive time.
  assert.deepEqual(read(JSON.stringify(BOOK)), { recvTs: undefined, frames: [BOOK] })
})

test('reports what is wrong with a line', () => {
  const cases: [string, RegExp][] = [
    ['{"type":', /not valid JSON/],
    ['garbage', /neither JSON nor a time/],
    ['noon {"type":"ok"}', /neither JSON nor a time/],
    ['12 {"type":', /not valid JSON/],
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
          const line = parseRecordedLine(text)
          if (line.kind === 'frames') for (const frame of line.frames) assert.equal(typeof frame, 'object')
        } catch (error) {
          assert.ok(error instanceof BadLineError, String(error))
        }
      },
    ),
  )
})

test('a wrapper of two keys is read like one with a third, and a message given as text is parsed as JSON', () => {
  const aKey = fc.constantFrom('recv_ts', 'ts', 'time', 'received_at', 'seq', 'host')
  const aTime = fc.oneof(
    fc.constantFrom('1782316195033836123', '"1782316195033836123"', '1782316195', '"2026-06-24T15:49:55.5Z"'),
    fc.constantFrom('"noon"', '-1', '7', '1.5e9', 'null', '"\\u0031"', '01', '[]'),
    fc.json(),
  )
  const aPayload = fc.oneof(
    fc.constantFrom(KALSHI, BOOK, [BOOK, CHANGE], [], 'PONG', { ...KALSHI, _received_at: 1_782_316_195 }),
    fc.jsonValue(),
  )
  const aPayloadKey = fc.constantFrom('msg', 'data', 'frame', 'frames', 'text', 'content', 'other')
  const outcome = (line: string): unknown => {
    try {
      const { text, ...others } = parseRecordedLine(line)
      assert.ok(!/[\r\n]/.test(text))
      if (others.kind === 'text') return { ...others, text }
      const value: unknown = JSON.parse(text)
      assert.deepEqual(others.frames, others.isList ? value : [value])
      return others
    } catch (error) {
      if (!(error instanceof BadLineError)) throw error
      return 'bad'
    }
  }
  fc.assert(
    fc.property(aKey, aTime, aPayloadKey, aPayload, (key, time, payloadKey, payload) => {
      const wrapper = `{"${key}":${time},"${payloadKey}":${JSON.stringify(payload)}`
      assert.deepEqual(outcome(`${wrapper}}`), outcome(`${wrapper},"z":[0]}`))
    }),
    { numRuns: 500 },
  )
})

// The same moment in every unit and notation, each as the value of a key.
const TIMES: readonly [string, bigint][] = [
  ['1782316195', 1_782_316_195_000_000_000n],
  ['1782316195.033', 1_782_316_195_033_000_000n],
  ['1782316195033', 1_782_316_195_033_000_000n],
  ['1782316195033836', 1_782_316_195_033_836_000n],
  ['1782316195033836123', NS],
  ['"1782316195033836123"', NS],
  ['"1782316195.033836123"', NS],
  ['"2026-06-24T15:49:55.033836123Z"', NS],
  ['"2026-06-24 15:49:55.033836123+00"', NS],
  ['"2026-06-24T17:49:55,033836123+0200"', NS],
  ['"2026-06-24 15:49:55.033836123 UTC"', NS],
]

const WRAPPER_KEYS = (
  'ts time t timestamp @timestamp received_at recv_ts recvTs recv_ns receivedAt receive_time ' +
  'ts_recv local_timestamp localTs timestamp_received recorded_at arrival_time datetime dateTime ' +
  'date when received at log_time created_at ts_init epoch_ms'
).split(' ')

test('around a frame, a time under any name and in any notation is the receive time', () => {
  const k = JSON.stringify(KALSHI)
  const p = JSON.stringify([BOOK, CHANGE])
  for (const key of WRAPPER_KEYS) {
    for (const [value, recvTs] of TIMES) {
      for (const [payload, frames] of [
        [k, [KALSHI]],
        [p, [BOOK, CHANGE]],
        [JSON.stringify(k), [KALSHI]],
      ] as const) {
        for (const line of [
          `{"${key}":${value},"msg":${payload}}`,
          `{"data":${payload}, "${key}" : ${value}}`,
        ]) {
          assert.deepEqual(read(line), { recvTs, frames }, line)
        }
      }
    }
  }
  for (const [value, recvTs] of TIMES) {
    for (const line of [`[${value},${k}]`, `[ ${value}, [${k}]]`, `${value.replaceAll('"', '')}\t${k}`]) {
      assert.deepEqual(read(line), { recvTs, frames: [KALSHI] }, line)
    }
  }
})

test('a time that cannot be read is refused by its key, whatever the wrapper', () => {
  const k = JSON.stringify(KALSHI)
  const values: [string, RegExp][] = [
    ['"noon"', /is no time: "noon"$/],
    ['"2026-06-24T15:49:55"', /is no time: "2026-06-24T15:49:55" \(its zone is missing: Z, or \+00:00\)/],
    ['12.25', /is no time: "12\.25" \(it would lie before 2010\)/],
    ['-1782316195', /is no time: -1782316195$/],
    ['true', /is no time: true$/],
    ['{"s":5}', /is no time: \{"s":5\}$/],
  ]
  for (const [value, message] of values) {
    for (const key of WRAPPER_KEYS) {
      assert.throws(() => parseRecordedLine(`{"${key}":${value},"msg":${k}}`), {
        name: 'BadLineError',
        message: new RegExp(`^${key} ${message.source}`),
      })
    }
  }
  assert.throws(() => parseRecordedLine(`["noon",${k}]`), /the first element is no time: "noon"/)
  assert.throws(
    () => parseRecordedLine(`[7,[${k}]]`),
    /the first element is no time: "7" \(it would lie before/,
  )
  assert.throws(() => parseRecordedLine(`7\t${k}`), /what stands before the frame is no time: "7"/)
  // An empty value is no time.
  assert.deepEqual(read(`{"ts":null,"msg":${k}}`), { recvTs: undefined, frames: [KALSHI] })
})

test('two times of one message agree within a second, or are refused by their keys', () => {
  const k = JSON.stringify(KALSHI)
  const parse = (keys: string): bigint | undefined => parseRecordedLine(`{${keys},"msg":${k}}`).recvTs
  assert.equal(parse('"ts":1782316195,"time":"2026-06-24T15:49:55.033836123Z"'), NS)
  assert.equal(parse('"received_at":1782316195,"recv_ts":1782316195033836123'), NS)
  for (const keys of [
    '"ts":1782316195,"time":1782316197',
    '"recv_ts":1782316195,"received_at":1782316193',
    '"recv_ts":1782316195,"ts":1782316197',
    '"recv_ts":1782316195,"ts":1782316100',
  ]) {
    const [one, other] = [...keys.matchAll(/"(\w+)"/g)].map((match) => match[1]!)
    assert.throws(
      () => parse(keys),
      ({ message }: Error) =>
        message.includes(one!) && message.includes(other!) && /seconds apart/.test(message),
      keys,
    )
  }
  // A key with this name is the receive time; a `ts` beside it may be a late exchange time.
  assert.equal(parse('"ts":1782316190,"recv_ts":1782316195'), 1_782_316_195_000_000_000n)
  assert.throws(
    () => parseRecordedLine(`1782316295 {"recv_ts":1782316100,"data":${k}}`),
    /recv_ts and what stands/,
  )
})

test('other times beside a frame are ignored', () => {
  const k = JSON.stringify(KALSHI)
  for (const key of (
    'exchange_ts exchangeTime event_time connected_at session_start_time elapsed_time latency_ms ' +
    'time_zone recv_seq received_by received_bytes local_addr epoch rx host seq monotonic_ts'
  ).split(' ')) {
    for (const value of ['5', '"x"', '1782316100']) {
      const line = `{"${key}":${value},"recv_ts":${NS},"msg":${k}}`
      assert.deepEqual(read(line), { recvTs: NS, frames: [KALSHI] }, line)
    }
  }
})

test('within a frame only a key named as a receive time counts', () => {
  const recvTs = 1_782_316_195_000_000_000n
  const shapes: [object, bigint | undefined][] = [
    [{ ...KALSHI, ts: 1_782_316_195 }, undefined],
    [{ ...KALSHI, timestamp: 1_782_316_195 }, recvTs],
    [{ ...KALSHI, receivedAt: 1_782_316_195 }, recvTs],
    [{ ...BOOK, timestamp: '1770921570954', ts: 5 }, undefined],
    [{ ...BOOK, local_ts: 1_782_316_195 }, recvTs],
    [{ ...CHANGE, time: 'x' }, undefined],
  ]
  for (const [frame, expected] of shapes) {
    assert.deepEqual(read(JSON.stringify(frame)), { recvTs: expected, frames: [frame] })
  }
  assert.throws(() => parseRecordedLine(JSON.stringify({ ...KALSHI, time: 'x' })), /time is no time: "x"/)
  // The same in a list and within a wrapper.
  const stamped = { ...BOOK, _received_at: 1_782_316_195 }
  assert.equal(parseRecordedLine(JSON.stringify([stamped, CHANGE])).recvTs, recvTs)
  assert.equal(parseRecordedLine(JSON.stringify({ data: stamped })).recvTs, recvTs)
  assert.throws(
    () => parseRecordedLine(JSON.stringify([stamped, { ...BOOK, _received_at: 1_782_316_205 }])),
    /_received_at and _received_at are 10 seconds apart/,
  )
})

test('a wrapper with its own type is distinguished from a frame by the complete frame within it', () => {
  for (const frame of [KALSHI, BOOK, { ...CHANGE, event_type: 'price_change' }]) {
    const line = JSON.stringify({ type: 'ws_message', ts: 1_782_316_195, msg: frame })
    assert.deepEqual(read(line), { recvTs: 1_782_316_195_000_000_000n, frames: [frame] }, line)
  }
  const lifecycle = {
    type: 'market_lifecycle_v2',
    sid: 3,
    msg: { event_type: 'settled', market_ticker: 'A-B' },
  }
  assert.deepEqual(read(JSON.stringify(lifecycle)), { recvTs: undefined, frames: [lifecycle] })
})
