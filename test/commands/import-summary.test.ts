// What an import says at its end of a recorder whose messages come late by its own clock.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { importSummary } from '../../server/commands/import-summary.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, delta, snapshot } from '../support/kalshi-frames.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

test('a clock that is ahead, or a slow connection, is told; a right one is not', async (t) => {
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
    // A percentile is right to a tenth of itself.
    if (seconds !== undefined) assert.ok(Math.abs(Number(seconds) * 1_000 - lateMs) < lateMs / 10, seconds)
  }
})
