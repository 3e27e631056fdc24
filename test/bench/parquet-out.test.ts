import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runParquetOutBench } from '../../bench/parquet-out.bench.ts'

test('the parquet output benchmark encodes the same rows with both writers, and the same bytes every time', async () => {
  const lines: string[] = []
  const { rows, ours, peer } = await runParquetOutBench('smoke', (line) => lines.push(line))
  assert.deepEqual([ours.rows, peer.rows], [rows, rows])
  // The bytes change only with the encoder, the generator of the rows or hyparquet-writer's thrift.
  assert.equal(ours.sha256, 'd001b9f427b4825ac23dcb0dceb14de594a374ed3ae790a1c805679a67aedb2a')
  assert.ok(lines.some((line) => line.includes(ours.sha256.slice(0, 16))))
})
