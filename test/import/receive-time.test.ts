import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agreedTime, kindOfKey } from '../../server/import/receive-time.ts'

test('a key is recognized by the words of its name, in any spelling', () => {
  const kinds = {
    receive: [
      'recv_ts',
      'recvTs',
      'RecvTimestampNs',
      'ts-recv',
      '_received_at',
      'received',
      'local_time',
      'rx_ns',
    ],
    time: [
      'ts',
      'TS',
      't',
      'time',
      '@timestamp',
      'date',
      'dateTime',
      'when',
      'at',
      't_ms',
      'epoch_ns',
      'log_time',
    ],
    other: [
      '',
      'seq',
      'sid',
      'type',
      'state',
      'format',
      'rate',
      'epoch',
      'ms',
      'rx',
      'latency_ms',
      'exchange_ts',
    ],
  } as const
  for (const [kind, keys] of Object.entries(kinds)) {
    for (const key of keys) assert.equal(kindOfKey(key), kind, key)
  }
})

test('the most precise of equal names wins, a known name wins over a guess, and no times give none', () => {
  assert.equal(agreedTime([]), undefined)
  const time = (key: string, ts: bigint) => ({ key, ts, isReceiveTime: kindOfKey(key) === 'receive' })
  assert.equal(agreedTime([time('ts', 5n), time('time', 7n)]), 7n)
  assert.equal(agreedTime([time('recv_ts', 5n), time('time', 7n)]), 5n)
  assert.equal(agreedTime([time('ts', 0n), time('recv_ts', 60_000_000_000n)]), 60_000_000_000n)
  assert.throws(() => agreedTime([time('ts', 0n), time('recv_ts', 60_000_000_001n)]), /recv_ts and ts/)
  assert.throws(() => agreedTime([time('ts', 0n), time('time', 1_000_000_001n)]), /time and ts/)
})
