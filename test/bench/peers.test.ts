// The peers of the benchmarks return the rows of the service: the test compares them with the naive reference.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { DUCKDB_FORMS, readDuckDbRows, runDuckDbPeer } from '../../bench/duckdb-peer.ts'
import { RowDigest } from '../../bench/row-digest.ts'
import { runTardisPeer } from '../../bench/tardis-peer.ts'
import { generateBenchmarkLake, recordBenchmark } from '../../server/sample-data/benchmark-lake.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { naiveSnapshots } from '../support/naive-lob.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const RECORDING = { series: 'KXBENCH', date: '2026-07-01', markets: 3, deltas: 10_000, seed: 3 }
const DATE_START_MS = Date.UTC(2026, 6, 1)

test('every peer gives the rows of the naive reference, in its order', async (t) => {
  const lake = await temporaryDirectory(t)
  await generateBenchmarkLake({ ...RECORDING, lake })
  const path = lobFilePath(lake, 'kalshi', RECORDING.series, RECORDING.date)
  const coversTo = BigInt(DATE_START_MS + 86_400_000) * 1_000_000n - 1n
  for (const { intervalS, levels } of [
    { intervalS: 300, levels: 10 },
    { intervalS: 97, levels: 3 },
    { intervalS: 3600, levels: 50 },
  ]) {
    const options = { path, dateStartMs: DATE_START_MS, intervalS, levels }
    const expected = new RowDigest()
    for (const row of naiveSnapshots(recordBenchmark(RECORDING), { ...options, coversTo })) {
      expected.addRow(JSON.stringify(row))
    }
    assert.equal(expected.rows, RECORDING.markets * Math.ceil(86_400 / intervalS))
    const tardis = new RowDigest()
    await runTardisPeer(options, (json) => tardis.addRow(json))
    assert.deepEqual([tardis.rows, tardis.hex()], [expected.rows, expected.hex()])
    for (const form of DUCKDB_FORMS) {
      const duckDb = new RowDigest()
      const outPath = join(lake, 'rows.json')
      await runDuckDbPeer(form, options, outPath)
      await readDuckDbRows(outPath, (json) => duckDb.addRow(json))
      assert.deepEqual([duckDb.rows, duckDb.hex()], [expected.rows, expected.hex()], form)
    }
  }
})
