// Up to which instant a version considers its record files complete.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { LakeVersions } from '../../server/lake/lake-versions.ts'
import { writeTree } from '../support/lake-tree.ts'
import { endAfter, temporaryDirectory } from '../support/temporary-lake.ts'

const KEY = 'candles/series=KXHIGHNY/month=2026-07/candles.parquet'

test('a file keeps its known completeness when the store registers another file without rows', async (t) => {
  const lake = await temporaryDirectory(t)
  let ends = new Map<string, number>()
  const looks: number[] = []
  const coldEnds = async (): Promise<ReadonlyMap<string, number>> => {
    looks.push(Date.now())
    return ends
  }
  const versions = new LakeVersions({ lake, logger: pino({ level: 'silent' }), keepMs: 0, coldEnds })
  const filesNow = async () => {
    for (const until = looks.length + 2; looks.length < until; await delay(20))
      versions.versionOf('candles', [{ key: KEY, stamp: 'unknown' }])
    return versions.changesOf('candles').at(-1)!.files
  }
  await writeTree(lake, { [KEY]: 'first' })
  await versions.start()
  endAfter(t, () => versions.close())
  const { sha256, coldToMs } = (await filesNow())[0]!
  assert.equal(coldToMs, null)
  ends = new Map([
    [sha256, 900],
    [KEY, 100],
  ])
  assert.equal((await filesNow())[0]!.coldToMs, 900)
  ends = new Map([
    ['other', 950],
    [KEY, 100],
  ])
  assert.equal((await filesNow())[0]!.coldToMs, 900)
  await writeTree(lake, { [KEY]: 'published' })
  assert.equal((await filesNow())[0]!.coldToMs, 100)
})
