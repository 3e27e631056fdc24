import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { StorageWatch } from '../../server/health/storage-watch.ts'
import { LogLines } from '../support/recorder-harness.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

test('warns once before a disk is full, and logs when there is room again', async (t) => {
  await onSmallDisk(t, 4, async (disk) => {
    const logger = new LogLines()
    const places = { lake: join(disk.path, 'still', 'to', 'be', 'made'), recorder: null, data: null }
    const watch = new StorageWatch({ ...places, temporary: disk.path, logger })
    const low = async (): Promise<boolean[]> => (await watch.look()).disks.map(({ isLow }) => isLow)
    assert.deepEqual(await low(), [false, false])
    assert.equal(logger.lines.length, 0)
    await writeFile(join(disk.path, 'most-of-it'), Buffer.alloc(3_900_000))
    const [lake] = (await watch.look()).disks
    assert.deepEqual([lake?.place, lake?.isLow, lake?.sizeBytes], ['lake', true, 4 * 1024 * 1024])
    assert.ok(lake !== undefined && lake.freeBytes > 0, 'before it is full')
    assert.deepEqual(await low(), [true, true])
    assert.equal(logger.lines.filter((line) => line.startsWith('the disk is nearly full')).length, 2)
    await writeFile(join(disk.path, 'most-of-it'), '')
    assert.deepEqual(await low(), [false, false])
    assert.equal(logger.lines.filter((line) => line.startsWith('the disk has room again')).length, 2)
  })
})

test('adds up the lake and the logs without hidden files', async (t) => {
  const lake = await temporaryDirectory(t)
  const recorder = join(lake, '.recorder')
  for (const directory of ['candles/series=A/month=2026-07', '.sync', '.recorder/wal/kalshi']) {
    await mkdir(join(lake, directory), { recursive: true })
  }
  await writeFile(join(lake, 'candles/series=A/month=2026-07/candles.parquet'), 'x'.repeat(100))
  await writeFile(join(lake, 'candles/series=A/.draft.parquet'), 'x'.repeat(1000))
  await writeFile(join(recorder, 'wal/kalshi/0000000001-2026070100.wal'), 'x'.repeat(30))
  const watch = new StorageWatch({ lake, recorder, data: null, temporary: lake, logger: new LogLines() })
  const { lakeBytes, walBytes } = await watch.look()
  assert.deepEqual([lakeBytes, walBytes], [100, { kalshi: 30 }])
})
