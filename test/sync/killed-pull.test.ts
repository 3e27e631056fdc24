// What a killed pull leaves: slices that are removed but still listed, and half a segment.

import assert from 'node:assert/strict'
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readManifest, segmentsOnDisk, writeManifest } from '../../server/raw/date-manifest.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { foldHere, folderOf, SOURCE, writeSegment } from './raw-lakes.ts'

const DATE = '2026-06-24'

// The pull was killed after it removed merged slices, and before it replaced the manifest that lists them.
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

test('a segment that a killed pull had begun is removed a day later', async (t) => {
  const [lake, bucket] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await writeSegment(lake, { recorder: 'aaaaaaaa', date: DATE, hour: 20, fromMinute: 0, toMinute: 30 })
  await foldHere(lake, [DATE])
  const remote = new DirectoryStore(bucket)
  await syncLake({ lake, remote, direction: 'push', folder: folderOf(lake) })

  const copy = await temporaryDirectory(t)
  const begun = join(copy, '.sync', '.taken.0123456789ab.tmp')
  await mkdir(join(begun, 'raw'), { recursive: true })
  await writeFile(join(begun, 'raw', 'half'), 'half')
  await utimes(begun, 0, 0)
  const folder = folderOf(copy)
  const pulled = await syncLake({ lake: copy, remote, direction: 'pull', raw: true, folder })
  assert.deepEqual([pulled.failures, [...pulled.conflictReasons]], [[], []])
  assert.equal((await segmentsOnDisk(copy, SOURCE, DATE)).length, 1)
  const left = await readdir(join(copy, '.sync'))
  assert.deepEqual(
    left.filter((name) => name.includes('taken')),
    [],
  )
})
