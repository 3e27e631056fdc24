// A push to a directory on a full disk: failed writes leave no files there, however often the push is retried.

import assert from 'node:assert/strict'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { foldHere, folderOf, writeSegment } from './raw-lakes.ts'

const DATE = '2026-06-24'

test('pushes that fail on a full disk leave no temporary files, and the next one succeeds', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  await onSmallDisk(t, 4, async (disk) => {
    const target = join(disk.path, 'target')
    await mkdir(target)
    const remote = new DirectoryStore(target)
    const push = () =>
      syncLake({
        lake,
        remote,
        direction: 'push',
        clock: { nowMs: () => Date.now(), sleep: async () => {} },
        folder: folderOf(lake),
      })
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
