// The recorder with a local exchange while the machine's clock is wrong for a while: every book has its correct time.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { openMark } from '../../server/feed/wal-mark.ts'
import { ReceiveClock } from '../../server/feed/receive-clock.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { EVENT_ADD } from '../../shared/lob-v1.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { checkAgainst, eventually, readSeries, recordKalshi } from '../support/recorder-harness.ts'
import { refold } from '../support/refolded-lake.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'

const TICKER = 'KXHIGHNY-26NOV20-B45.5'
const NS_PER_MS = 1_000_000n
const MINUTE_MS = 60_000

for (const [what, stepMs] of [
  ['put back by 30 minutes', -30 * MINUTE_MS],
  ['put forward by two hours', 120 * MINUTE_MS],
] as const) {
  test(`a clock that is ${what} and then corrected moves no book, and is logged`, async (t) => {
    const exchange = await LocalKalshi.start(t)
    exchange.setBook(TICKER, [[0, 40, 1000]])
    let offMs = 0
    const receiveClock = new ReceiveClock(() => Date.now() + offMs)
    const startMs = Date.now()
    const root = await temporaryDirectory(t)
    const { recorder, lake, log } = await recordKalshi(t, exchange, root, [TICKER], { receiveClock })
    await exchange.until(() => exchange.isFollowed(TICKER))
    for (const nextMs of [stepMs, 0, 0]) {
      for (let index = 0; index < 100; index += 1) exchange.change(TICKER, index % 2, 30 + (index % 20), 100)
      await eventually(() => recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
      if (offMs !== 0) await eventually(() => log.lines.length > 2, 'it is told')
      offMs = nextMs
    }
    await recorder.stop()
    const rows = await readSeries(lake, 'kalshi', 'KXHIGHNY')
    const { known, unknown, gaps } = checkAgainst(exchange, rows)
    assert.deepEqual([known, unknown, gaps], [300, 0, 0])
    const [from, to] = [BigInt(startMs) * NS_PER_MS, BigInt(Date.now()) * NS_PER_MS]
    const outside = rows.filter(({ ts }) => ts < from || ts > to)
    assert.equal(outside.length, 0, `${outside.length} of ${rows.length} rows stand at another time`)
    assert.equal(log.lines.filter((line) => /^the clock was set (back|forward) by/.test(line)).length, 1)
  })
}

for (const behindMs of [8_000, 20_000]) {
  test(`with a clock that is ${behindMs / 1000} s behind, no row has a time before its event`, async (t) => {
    const startTs = BigInt(Date.now()) * NS_PER_MS
    const exchange = await LocalKalshi.start(t)
    exchange.setBook(TICKER, [[0, 40, 1000]])
    const receiveClock = new ReceiveClock(() => Date.now() - behindMs)
    const root = await temporaryDirectory(t)
    const { recorder, lake } = await recordKalshi(t, exchange, root, [TICKER], { receiveClock })
    await exchange.until(() => exchange.isFollowed(TICKER))
    for (let index = 0; index < 100; index += 1) exchange.change(TICKER, index % 2, 30 + (index % 20), 100)
    await eventually(() => recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
    await recorder.stop()
    const rows = await readSeries(lake, 'kalshi', 'KXHIGHNY')
    const early = rows.filter(({ ts }) => ts < startTs)
    const changes = rows.filter(({ event }) => event === EVENT_ADD)
    assert.deepEqual([changes.length, rows.length > changes.length, early.length], [100, true, 0])
  })
}

test('a recorder that starts after the clock was set back keeps the messages it receives', async (t) => {
  const exchange = await LocalKalshi.start(t)
  exchange.setBook(TICKER, [[0, 40, 1000]])
  const root = await temporaryDirectory(t)
  const ms = Date.now() + 3_000
  await writeWal(join(root, 'work'), 'kalshi', [
    { kind: WAL_KIND.start, ms },
    { kind: WAL_KIND.mark, ms, frame: openMark() },
  ])
  const { recorder, lake } = await recordKalshi(t, exchange, root, [TICKER])
  await exchange.until(() => exchange.isFollowed(TICKER))
  for (let index = 0; index < 100; index += 1) exchange.change(TICKER, index % 2, 30 + (index % 20), 100)
  await eventually(() => recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
  await recorder.stop()
  const rows = await readSeries(lake, 'kalshi', 'KXHIGHNY')
  assert.equal(rows.filter(({ event }) => event === EVENT_ADD).length, 100)
})

test('a killed recorder without messages after its restart closes its hours a minute later, with the bytes of a fold', async (t) => {
  const exchange = await LocalKalshi.start(t)
  const root = await temporaryDirectory(t)
  const ms = Date.now() - 3 * 60 * MINUTE_MS
  const begun = { lane: 0, begunMs: ms }
  await writeWal(join(root, 'work'), 'kalshi', [
    { kind: WAL_KIND.start, ms },
    { ...begun, kind: WAL_KIND.mark, ms, frame: openMark() },
    {
      ...begun,
      ms: ms + 5,
      frame: snapshot(1, { market_ticker: TICKER, yes_dollars_fp: [['0.4500', '9.00']] }),
    },
    { ...begun, ms: ms + 1_000, frame: delta(2, { market_ticker: TICKER, ts_ms: ms + 1_000 }) },
  ])
  let offMs = 0
  const receiveClock = new ReceiveClock(
    () => Date.now() + offMs,
    () => performance.now() + offMs,
  )
  const { recorder, lake } = await recordKalshi(t, exchange, root, [], { receiveClock })
  await eventually(() => recorder.metrics.fold !== undefined, 'the log is read')
  assert.equal(recorder.metrics.fold?.closedHours, 0)
  offMs = MINUTE_MS
  await eventually(() => (recorder.metrics.fold?.closedHours ?? 0) >= 2, 'the hours are closed')
  await recorder.stop()
  const other = await refold(lake, join(root, 'other'), 'kalshi')
  const [path] = await paths(lake)
  assert.deepEqual(await paths(lake), await paths(other))
  assert.ok((await readFile(join(lake, path!))).equals(await readFile(join(other, path!))))
})

/** The order-book files of a lake. */
async function paths(lake: string): Promise<string[]> {
  return (await entriesBelow(lake)).filter((path) => path.endsWith('/lob.parquet'))
}
