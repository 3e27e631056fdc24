// The fold state of an open date that was rebuilt while a recorder writes to it: it is removed when the manifest lists more.

import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { aliveMark, openMark } from '../../server/feed/wal-mark.ts'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { FOLD_STATE_NAME, hasFoldState } from '../../server/fold/fold-state.ts'
import { readManifest } from '../../server/raw/date-manifest.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { lobFilePath, rawDateDirectory } from '../../shared/lake-layout.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { parquetFilesBelow, refold } from '../support/refolded-lake.ts'
import { endAfter, entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'
import { foldHere, folderOf, SOURCE } from './raw-lakes.ts'

const [DATE, NEXT] = ['2026-06-24', '2026-06-25'] as const
const MIDNIGHT = Date.parse(`${NEXT}T00:00:00Z`)

/** A lake whose recorder gets a message of one market every five seconds. */
class RecordedLake {
  readonly lake: string
  readonly #root: string
  #seq = 1
  nowMs = 0

  constructor(root: string) {
    this.#root = root
    this.lake = join(root, 'lake')
  }

  async open(t: TestContext): Promise<LiveFold> {
    const workDirectory = join(this.#root, 'work')
    const fold = await LiveFold.open({
      lake: this.lake,
      source: SOURCE,
      workDirectory,
      folding: foldRawDates,
    })
    endAfter(t, () => fold.close())
    return fold
  }

  /** Seconds after midnight. */
  async hear(fold: LiveFold, fromS: number, toS: number): Promise<void> {
    const records: ScriptRecord[] = []
    for (let ms = MIDNIGHT + fromS * 1000; ms <= MIDNIGHT + toS * 1000; ms += 5000) {
      const market_ticker = 'KXHIGHNY-26JUN24-T82'
      if (this.#seq === 1)
        records.push(
          { kind: WAL_KIND.mark, ms, frame: openMark() },
          { ms, frame: snapshot(this.#seq++, { market_ticker, yes_dollars_fp: [['0.4500', '90.00']] }) },
        )
      records.push(
        { ms, frame: delta(this.#seq++, { market_ticker, ts_ms: ms }) },
        { kind: WAL_KIND.mark, ms, frame: aliveMark(ms) },
        { kind: WAL_KIND.clock, ms },
      )
    }
    this.nowMs = MIDNIGHT + toS * 1000
    const limit = await writeWal(join(this.#root, 'work'), SOURCE, records)
    while (await fold.advance(limit));
    // Publish what is due, and fold waiting dates.
    for (let left = 3; left > 0; left--) {
      await fold.publish(left === 3)
      await fold.settled()
    }
  }

  /** Asserts that the files equal a fold of the raw segments alone. */
  async assertFolded(): Promise<void> {
    const other = await refold(this.lake, join(this.#root, 'other'), SOURCE)
    const [mine, theirs] = await Promise.all(
      [this.lake, other].map(async (lake) => await parquetFilesBelow(join(lake, 'lob'))),
    )
    assert.deepEqual(mine, theirs)
    for (const date of [DATE, NEXT]) {
      const [own, folded] = await Promise.all(
        [this.lake, other].map(async (lake) => await readFile(lobFilePath(lake, SOURCE, 'KXHIGHNY', date))),
      )
      assert.ok(own!.equals(folded!), `${date}: ${own!.length} bytes, not ${folded!.length}`)
    }
  }
}

test('books known over midnight stay known if a pushing collector rebuilt their date before', async (t) => {
  const [recorded, bucket] = [new RecordedLake(await temporaryDirectory(t)), await temporaryDirectory(t)]
  const { lake } = recorded
  const states = async () =>
    [...(await entriesBelow(lake)), ...(await entriesBelow(bucket))].filter((path) =>
      path.endsWith(`date=${DATE}/${FOLD_STATE_NAME}`),
    )
  const push = async (): Promise<void> => {
    const result = await syncLake({
      lake,
      remote: new DirectoryStore(bucket),
      direction: 'push',
      folder: folderOf(lake),
      clock: { nowMs: () => recorded.nowMs, sleep: async () => {} },
    })
    assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
  }
  const killed = await recorded.open(t)
  await recorded.hear(killed, -600, -400)
  await foldHere(lake, [DATE])
  await push()
  assert.equal((await states()).length, 2)
  await recorded.hear(killed, -395, -300)
  for (let left = 2; left > 0; left--) await push()
  assert.deepEqual(await states(), [])
  // The recorder is killed before it folds the past date.
  await recorded.hear(killed, -295, 20)
  for (let left = 2; left > 0; left--) await push()
  const next = await recorded.open(t)
  await recorded.hear(next, 25, 200)
  await next.close()
  await foldHere(lake, [NEXT])
  await recorded.assertFolded()
})

test('a fold state is ignored if a recorder has written the manifest since', async (t) => {
  const recorded = new RecordedLake(await temporaryDirectory(t))
  const { lake } = recorded
  const killed = await recorded.open(t)
  await recorded.hear(killed, -600, -400)
  await foldHere(lake, [DATE])
  const path = join(rawDateDirectory(lake, SOURCE, DATE), FOLD_STATE_NAME)
  const state = await readFile(path)
  const isCounted = async () => await hasFoldState(lake, await readManifest(lake, SOURCE, DATE))
  assert.ok(await isCounted())
  await recorded.hear(killed, -395, 20)
  // An earlier version restores the fold state.
  await writeFile(path, state)
  assert.ok(!(await isCounted()))
  const next = await recorded.open(t)
  await recorded.hear(next, 25, 200)
  await next.close()
  await foldHere(lake, [NEXT])
  await recorded.assertFolded()
})
