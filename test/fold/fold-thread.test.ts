// A fold in its own thread gives the same result as in the calling thread, and leaves no files if it ends early.

import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { describeLakeWriteError } from '../../server/lake/lake-write-error.ts'
import { foldInThread } from '../../server/fold/fold-client.ts'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import type { FoldOrder } from '../../server/fold/fold-order.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, delta, snapshot } from '../support/kalshi-frames.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const DATE = '2026-06-24'
const NEVER = new AbortController().signal

function lines(): string[] {
  const frames = [snapshot(1, { yes: [[40, 9]], ts_ms: MS })]
  for (let seq = 2; seq < 200; seq++) frames.push(delta(seq, { price_dollars: `0.${10 + (seq % 80)}` }))
  return frames.map((frame) => JSON.stringify(frame))
}

async function orderOf(lake: string): Promise<FoldOrder> {
  await runImport(lake, 'kalshi', { lines: lines() })
  return { lake, source: 'kalshi', dates: [DATE] }
}

test('a thread gives the same files, counts, days and progress as the calling thread', async (t) => {
  const order = await orderOf(await temporaryDirectory(t))
  const [here, apart] = [[] as string[], [] as string[]]
  const listenersOf = (told: string[]) => ({
    onSegment: (date: string, count: number) => told.push(`${date} ${count}`),
    onWrite: (writing: object) => told.push(JSON.stringify(writing)),
  })
  const expected = await foldRawDates(order, listenersOf(here), NEVER)
  const found = await foldInThread(order, listenersOf(apart), NEVER)
  assert.deepEqual(apart, here)
  assert.deepEqual(structuredClone(expected), found)
  assert.equal(found.files[0]!.status, 'unchanged')
})

test('an aborted fold rejects with the reason, and leaves the lake unchanged', async (t) => {
  const lake = await temporaryDirectory(t)
  const order = await orderOf(lake)
  await rm(join(lake, 'lob'), { recursive: true })
  const before = await entriesBelow(lake)
  const gone = AbortSignal.abort(new Error('too late'))
  await assert.rejects(foldInThread(order, {}, gone), /too late/)
  const stop = new AbortController()
  const listeners = { onSegment: () => stop.abort(new Error('enough')) }
  await assert.rejects(foldInThread(order, listeners, stop.signal), /enough/)
  // The thread may have finished the files before the abort reached it.
  const left = (await entriesBelow(lake)).filter((name) => name.endsWith('.tmp') || name.includes('feed'))
  assert.deepEqual(left, [])
  assert.ok((await entriesBelow(lake)).length >= before.length)
})

test('an error of the thread keeps its message, class and system fields', async (t) => {
  const lake = await temporaryDirectory(t)
  const order = await orderOf(lake)
  const segment = (await entriesBelow(lake)).find((name) => name.endsWith('.ndjson.gz'))!
  await rm(join(lake, segment))
  await assert.rejects(foldInThread(order, {}, NEVER), (error: Error) => {
    assert.equal(error.name, 'DamagedSegmentError')
    assert.ok(error.message.startsWith(`Segment ${join(lake, segment)} is missing`), error.message)
    return true
  })
  const blocked = await temporaryDirectory(t)
  const other = await orderOf(blocked)
  await rm(join(blocked, 'lob'), { recursive: true })
  await writeFile(join(blocked, 'lob'), 'in the way')
  await assert.rejects(foldInThread(other, {}, NEVER), (error) => {
    assert.match(
      describeLakeWriteError(error, blocked) ?? '',
      /is a file where a directory must be|not below a directory/,
    )
    return true
  })
})
