import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lakeFileFacts } from '../../server/lake/lake-file-facts.ts'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DAY_START = BigInt(Date.parse('2026-07-01T00:00:00Z')) * 1_000_000n

// The statistics of a footer have market ids as bytes, before its keys.
test('a market id that looks like a key of the footer states nothing', async (t) => {
  for (const [key, value] of [
    ['sample', 'true'],
    ['strands', '[]'],
    ['revision', '12'],
  ] as const) {
    const marketId = `KX-\u0018${String.fromCodePoint(key.length)}${key}\u0018${String.fromCodePoint(value.length)}${value}`
    const writer = new LobRecordingWriter({ lake: await temporaryDirectory(t), source: 'kalshi' })
    const times = { ts: DAY_START, recvTs: DAY_START, seq: 0n }
    writer.append('KX', { marketId, ...times, event: 0, side: 0, price: 0, qty: 0 })
    const [file] = await writer.finish()
    const facts = await lakeFileFacts(file!.path)
    assert.deepEqual([...facts!.coverage!.markets], [[marketId, 1]])
    const { isSample, isOld, revision } = facts!
    assert.deepEqual({ isSample, isOld, revision }, { isSample: false, isOld: false, revision: 0n })
  }
})
