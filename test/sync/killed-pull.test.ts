// A pull was killed after it removed merged slices from the lake, and before it replaced the manifest that lists them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readManifest, segmentsOnDisk, writeManifest } from '../../server/raw/date-manifest.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { foldHere, folderOf, SOURCE, writeSegment } from './raw-lakes.ts'

const DATE = '2026-06-24'

test('slices that a killed pull removed are dropped from the manifest before the date is folded', async (t) => {
  const [lake, bucket] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const push = async (): Promise<void> => {
    const remote = new DirectoryStore(bucket)
    const pushed = await syncLake({ lake, remote, direction: 'push', folder: folderOf(lake) })
    assert.deepEqual([pushed.failures, [...pushed.conflictReasons]], [[], []])
  }
  const hour = { recorder: 'aaaaaaaa', date: DATE, hour: 20, fromMinute: 0 }
  await writeSegment(lake, { ...hour, toMinute: 30 })
  await writeSegment(lake, { ...hour, toMinute: 59 })
  await foldHere(lake, [DATE])
  const listed = await readManifest(lake, SOURCE, DATE)
  await push()
  assert.deepEqual([listed?.segments.length, (await segmentsOnDisk(lake, SOURCE, DATE)).length], [2, 1])

  await writeManifest(lake, listed!)
  await writeSegment(lake, { ...hour, recorder: 'bbbbbbbb', toMinute: 9 })
  await push()
  const names = await segmentsOnDisk(lake, SOURCE, DATE)
  const after = (await readManifest(lake, SOURCE, DATE))?.segments.map(({ name }) => name)
  assert.deepEqual([names.length, after], [2, names])
})
