import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { createLakeWatch } from '../../server/sync/lake-watch.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { readTree, writeTree } from '../support/lake-tree.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { startTestServer } from '../support/test-server.ts'

const TREE = {
  'candles/series=A/month=2026-07/candles.parquet': 'a',
  'candles/series=B/month=2026-07/candles.parquet': 'b',
}

test('a serving process pulls its lake from object storage and reports it in /health', async (t) => {
  const s3 = await startS3Server(t)
  const source = await temporaryDirectory(t)
  await writeTree(source, TREE)
  await syncLake({ lake: source, remote: s3.store('x'), direction: 'push' })
  const lake = join(await temporaryDirectory(t), 'lake')
  await mkdir(lake)
  const sync = { from: `s3://${BUCKET}/x`, endpoint: s3.endpoint, pathStyle: undefined }
  const { url, log } = await startTestServer(t, { lake, sync })
  await log.find(({ msg }) => msg === 'the lake was synchronized')
  const health = (await (await fetch(`${url}/health`)).json()) as {
    readonly sync: {
      readonly last_sync: string | null
      readonly file_count: number
      readonly is_stale: boolean
    }
  }
  assert.equal(health.sync.file_count, 2)
  assert.equal(health.sync.is_stale, false)
  assert.ok(Math.abs(Date.parse(health.sync.last_sync ?? '') - Date.now()) < 600_000)
  assert.deepEqual(await readTree(lake), await readTree(source))
})

test('unavailable object storage is logged and does not prevent the process from serving', async (t) => {
  const s3 = await startS3Server(t)
  s3.fault = () => ({ status: 503 })
  const lake = await temporaryDirectory(t)
  let tell = (_line: string): void => {}
  const warned = new Promise<string>((resolve) => (tell = resolve))
  const logger = pino({ level: 'warn' }, { write: (line) => tell(line) })
  const watch = await createLakeWatch(lake, { from: `s3://${BUCKET}`, endpoint: s3.endpoint }, logger)
  t.after(() => watch.close())
  watch.start()
  assert.match(await warned, /s3:\/\/lake: HTTP 503/)
})
