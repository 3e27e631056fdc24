// The summary of an import: messages that are late by the recorder's clock, and messages of another exchange.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { importSummary } from '../../server/commands/import-summary.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, delta, snapshot } from '../support/kalshi-frames.ts'
import { polymarketBook, polymarketChange } from '../support/segmented-recordings.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

test('late receive times, from a fast clock or a slow connection, are reported, normal ones are not', async (t) => {
  const directory = await temporaryDirectory(t)
  for (const lateMs of [20, 4_000, 90_000]) {
    const received = (ms: number, msg: object): string => JSON.stringify({ recv_ts: MS + ms + lateMs, msg })
    const changes = [1, 2, 3, 4].map((place) => {
      const at = place * 200_000
      return received(at, delta(place + 1, { ts_ms: MS + at }))
    })
    const lines = [received(0, snapshot(1, { yes: [[40, 9]] })), ...changes]
    const lake = join(directory, String(lateMs))
    const result = await runImport(lake, 'kalshi', { lines })
    const text = importSummary(result, { lake, source: 'kalshi', sequence: 'strict' }, 1)
    const [, seconds] = /^messages of 1 market day were received .* by up to (\d+) s: /m.exec(text) ?? []
    assert.equal(seconds !== undefined, lateMs > 5_000, text)
    // A percentile is accurate to a tenth.
    if (seconds !== undefined) assert.ok(Math.abs(Number(seconds) * 1_000 - lateMs) < lateMs / 10, seconds)
  }
})

test('messages of another exchange are reported as such, not as private', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  const kalshi = JSON.stringify({ recv_ts: MS, msg: snapshot(1, { yes: [[40, 9]] }) })
  const lines = [kalshi, polymarketBook('10:00:00'), '{"type":"fill","msg":{}}', polymarketChange('10:00:01')]
  const result = await runImport(lake, 'kalshi', { lines })
  assert.deepEqual(Object.fromEntries(result.input.privateFrames), { fill: 1 })
  assert.deepEqual(Object.fromEntries(result.input.otherFrames), { polymarket: 2 })
  const text = importSummary(result, { lake, source: 'kalshi', sequence: 'strict' }, 1)
  assert.match(text, /^2 messages of polymarket left out: import the input with --source polymarket, too$/m)
})
