// A date with many trades needs little memory: the set, its order and the written file fit into a small heap.

import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const TRADES = 100_000
const HEAP_MB = 96

// Objects of this many trades take 150 MB and more.
const WRITE = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { base, count, isUnique, path } = workerData
  const run = async () => {
    const { TradeSet } = await import(new URL('trade-set.js', base).href)
    const { stageTradesFile } = await import(new URL('trades-file.js', base).href)
    const from = 1782864000000000000n
    const set = new TradeSet(from)
    for (let index = 0; index < count; index++) {
      const ts = from + BigInt((index * 7919) % count) * 1000000n
      const id = '0x' + String(index).padStart(36, '0')
      const message = { marketId: 'KXHIGHNY-26JUL01-T82', id, isUnique, ts, tsDigits: 3, price: 100 + (index % 9900) }
      const rest = { isRounded: false, qty: 1000000, aggressor: 'bid', block: null }
      set.add({ ...message, ...rest }, { recvTs: ts, origin: 'import', group: 'a', place: undefined })
    }
    const labels = { source: 'kalshi', series: 'KXHIGHNY', date: '2026-07-01', rounded: 0 }
    parentPort.postMessage(await stageTradesFile(path, set.result(), labels))
  }
  run()
`

for (const isUnique of [true, false]) {
  test(`${TRADES} trades ${isUnique ? 'with' : 'without'} ids of their own fit into ${HEAP_MB} MB`, async (t) => {
    const path = join(await temporaryDirectory(t), 'trades.parquet')
    const base = new URL('../../server/trades/', import.meta.url).href
    const worker = new Worker(WRITE, {
      eval: true,
      workerData: { base, count: TRADES, isUnique, path },
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 16 },
    })
    const written = await new Promise<string>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })
    await worker.terminate()
    assert.ok((await stat(written)).size > TRADES)
  })
}
