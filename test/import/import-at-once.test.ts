// Several concurrent imports into one lake: each merges with the files of the others.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { runImport } from '../support/import-harness.ts'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

function recordedLines(ticker: string, sid: number): string[] {
  const lines = [snapshot(1, { market_ticker: ticker, yes: [[40, 9]], ts_ms: MS }, sid)]
  for (let seq = 2; seq < 500; seq++) {
    lines.push(delta(seq, { market_ticker: ticker, price_dollars: `0.${10 + (seq % 80)}` }, sid))
  }
  return lines.map((line) => JSON.stringify(line))
}

async function bytesOf(lake: string): Promise<Map<string, string>> {
  const names = (await entriesBelow(lake)).filter((name) => name.endsWith('.parquet'))
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(lake, name), 'hex')] as const)),
  )
}

test('concurrent imports into one lake lose no messages', async (t) => {
  const directory = await temporaryDirectory(t)
  const recordings = [recordedLines(T, 1), recordedLines(B, 2), recordedLines('KXHIGHCHI-26JUN24-T90', 3)]
  const [whole, lake] = [join(directory, 'whole'), join(directory, 'lake')]
  for (const lines of recordings) await runImport(whole, 'kalshi', { lines })
  await Promise.all(recordings.map((lines) => runImport(lake, 'kalshi', { lines })))
  assert.deepEqual(await bytesOf(lake), await bytesOf(whole))
  assert.deepEqual(
    (await entriesBelow(lake)).filter((name) => name.includes('lock')),
    [],
  )
})
