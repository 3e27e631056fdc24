// The fold state of an open date that was derived again while a recorder writes to it: it goes when the manifest lists more.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { aliveMark, openMark } from '../../server/feed/wal-mark.ts'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { FOLD_STATE_NAME } from '../../server/fold/fold-state.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { parquetFilesBelow, refold } from '../support/refolded-lake.ts'
import { endAfter, entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'
import { foldHere, folderOf, SOURCE } from './raw-lakes.ts'

const [DATE, NEXT] = ['2026-06-24', '2026-06-25'] as const
const MIDNIGHT = Date.parse(`${NEXT}T00:00:00Z`)

test('books that were known over midnight stay known when their date was derived again before, with a collector that pushes', async (t) => {
  const [root, bucket] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const [lake, workDirectory] = [join(root, 'lake'), join(root, 'work')]
  const open = async () => await LiveFold.open({ lake, source: SOURCE, workDirectory, folding: foldRawDates })
  const states = async () =>
    [...(await entriesBelow(lake)), ...(await entriesBelow(bucket))].filter((path) =>
      path.endsWith(`date=${DATE}/${FOLD_STATE_NAME}`),
    )
  let [seq, nowMs] = [1, 0]
  const hear = async (fold: LiveFold, fromS: number, toS: number): Promise<void> => {
    const records: ScriptRecord[] = []
    for (let ms = MIDNIGHT + fromS * 1000; ms <= MIDNIGHT + toS * 1000; ms += 5000) {
      const market_ticker = 'KXHIGHNY-26JUN24-T82'
      if (seq === 1)
        records.push(
          { kind: WAL_KIND.mark, ms, frame: openMark() },
          { ms, frame: snapshot(seq++, { market_ticker, yes_dollars_fp: [['0.4500', '90.00']] }) },
        )
      records.push(
        { ms, frame: delta(seq++, { market_ticker, ts_ms: ms }) },
        { kind: WAL_KIND.mark, ms, frame: aliveMark(ms) },
        { kind: WAL_KIND.clock, ms },
      )
    }
    nowMs = MIDNIGHT + toS * 1000
    const limit = await writeWal(workDirectory, SOURCE, records)
    while (await fold.advance(limit));
    // What is due is published, and dates that wait are folded.
    for (let left = 3; left > 0; left--) {
      await fold.publish(left === 3)
      await fold.settled()
    }
  }
  const push = async (): Promise<void> => {
    const result = await syncLake({
      lake,
      remote: new DirectoryStore(bucket),
      direction: 'push',
      folder: folderOf(lake),
      clock: { nowMs: () => nowMs, sleep: async () => {} },
    })
    assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
  }
  const killed = await open()
  endAfter(t, () => killed.close())
  await hear(killed, -600, -400)
  await foldHere(lake, [DATE])
  await push()
  assert.equal((await states()).length, 2)
  await hear(killed, -395, -300)
  for (let left = 2; left > 0; left--) await push()
  assert.deepEqual(await states(), [])
  // It is killed before it folds the date that is over.
  await hear(killed, -295, 20)
  for (let left = 2; left > 0; left--) await push()
  const next = await open()
  await hear(next, 25, 200)
  await next.close()
  await foldHere(lake, [NEXT])
  const other = await refold(lake, join(root, 'other'), SOURCE)
  assert.deepEqual(await parquetFilesBelow(join(lake, 'lob')), await parquetFilesBelow(join(other, 'lob')))
  for (const date of [DATE, NEXT]) {
    const [mine, theirs] = await Promise.all(
      [lake, other].map(async (each) => await readFile(lobFilePath(each, SOURCE, 'KXHIGHNY', date))),
    )
    assert.ok(mine!.equals(theirs!), `${date}: ${mine!.length} bytes, not ${theirs!.length}`)
  }
})
