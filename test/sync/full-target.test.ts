// A push to or from a full disk. Failed writes leave no files on the target, however often the push is retried; the reason names the
// place whose disk is full.

import assert from 'node:assert/strict'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import type { LakeSyncResult } from '../../server/sync/sync-report.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { foldHere, folderOf, writeSegment } from './raw-lakes.ts'

const DATE = '2026-06-24'

test('pushes that fail on a full disk leave no temporary files, and the next one succeeds', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  await onSmallDisk(t, 4, async (disk) => {
    const target = join(disk.path, 'target')
    await mkdir(target)
    const push = () => pushed(lake, target)
    const temporaries = async () => (await entriesBelow(target)).filter((name) => name.endsWith('.tmp'))
    await disk.fill()
    await disk.free(4096)
    for (let hour = 0; hour < 4; hour += 1) {
      await writeSegment(lake, { recorder: '3f9c01ab', date: DATE, hour, fromMinute: 0, toMinute: 60 })
      await foldHere(lake, [DATE])
      const { failures } = await push()
      assert.match(failures[0]?.reason ?? '', /its disk is full; free some space and run it again/)
      assert.deepEqual(await temporaries(), [])
    }
    await disk.free()
    assert.deepEqual((await push()).failures, [])
    const copy = join(await temporaryDirectory(t), 'copy')
    await cp(target, copy, { recursive: true })
    const isVisible = (name: string): boolean => !name.includes('.sync') && !name.includes('.recorder')
    assert.deepEqual(
      (await entriesBelow(copy)).filter(isVisible),
      (await entriesBelow(lake)).filter(isVisible),
    )
  })
})

test('on a full disk of the lake, a push names the lake and its file, not the target', async (t) => {
  const target = await temporaryDirectory(t)
  await onSmallDisk(t, 4, async (disk) => {
    const lake = join(disk.path, 'lake')
    await writeSegment(lake, { recorder: '3f9c01ab', date: DATE, hour: 0, fromMinute: 0, toMinute: 60 })
    await foldHere(lake, [DATE])
    await disk.fill()
    const push = () => pushed(lake, target)
    const reasons = (await push()).failures.map(({ reason }) => reason)
    assert.equal(reasons.length, 1)
    assert.match(
      reasons[0]!,
      /^the lake \S+\/lake cannot be written: its disk is full; free some space and run it again \(ENOSPC at \S+\.ndjson\)$/,
    )
    await disk.free()
    assert.deepEqual((await push()).failures, [])
  })
})

function pushed(lake: string, target: string): Promise<LakeSyncResult> {
  return syncLake({
    lake,
    remote: new DirectoryStore(target),
    direction: 'push',
    clock: { nowMs: () => Date.now(), sleep: async () => {} },
    folder: folderOf(lake),
  })
}
