// When a recorder has ended, the manifest lists all its segments, even if another writer uses the lake meanwhile.

import assert from 'node:assert/strict'
import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openMark } from '../../server/feed/wal-mark.ts'
import { withLock } from '../../server/fold/series-lock.ts'
import { readManifest, segmentsOnDisk, writeManifest } from '../../server/raw/date-manifest.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'

const MARKET = 'KXHIGHNY-26JUN24-T82'
const DATE = '2026-06-24'
const source = 'kalshi'

/** A recorder that has read a book and a change of the date, and has published nothing. */
async function recorded(t: TestContext): Promise<{ readonly lake: string; readonly fold: LiveFold }> {
  const [lake, workDirectory] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const startMs = Date.parse(`${DATE}T12:00:00Z`)
  const common = { lane: 0, epoch: startMs, ms: startMs }
  const limit = await writeWal(workDirectory, source, [
    { kind: WAL_KIND.start, ms: startMs },
    { ...common, kind: WAL_KIND.mark, frame: openMark() },
    { ...common, kind: WAL_KIND.frame, frame: snapshot(1, { market_ticker: MARKET }) },
    { ...common, kind: WAL_KIND.frame, frame: delta(2, { market_ticker: MARKET, ts_ms: startMs }) },
  ])
  const fold = await LiveFold.open({ lake, source, workDirectory })
  while (await fold.advance(limit));
  return { lake, fold }
}

async function listedIn(lake: string): Promise<readonly string[]> {
  return ((await readManifest(lake, source, DATE))?.segments ?? []).map(({ name }) => name).toSorted()
}

test('the last segment is listed, even if another writer locks the source during the last publication', async (t) => {
  const { lake, fold } = await recorded(t)
  await withLock({ lake, source }, { waitMs: 0 }, async () => fold.publish(true))
  assert.deepEqual(await listedIn(lake), [])
  await fold.close()
  const names = await segmentsOnDisk(lake, source, DATE)
  assert.equal(names.length, 1)
  assert.deepEqual(await listedIn(lake), names)
})

test('the last segment is listed, even if a synchronization adds a segment of another recorder during the last publication', async (t) => {
  const [{ lake, fold }, other] = [await recorded(t), await recorded(t)]
  await other.fold.publish(true)
  await other.fold.close()
  const [name = ''] = await listedIn(other.lake)
  await withLock({ lake, source }, { waitMs: 0 }, async () => {
    await fold.publish(true)
    const [from, to] = [other.lake, lake].map((each) => rawDateDirectory(each, source, DATE))
    await mkdir(to!, { recursive: true })
    await copyFile(join(from!, name), join(to!, name))
    await writeManifest(lake, (await readManifest(other.lake, source, DATE))!)
  })
  await fold.close()
  const names = await segmentsOnDisk(lake, source, DATE)
  assert.equal(names.length, 2)
  assert.deepEqual(await listedIn(lake), [...names].toSorted())
})
