// A date begins with the books of the date before. If another lake has replaced that date, its messages must not stay in the books
// of this one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { digestOf } from '../../server/fold/fold-state.ts'
import { MergeBusy } from '../../server/fold/series-lock.ts'
import { DataDirectoryLocked } from '../../server/storage/data-directory-lock.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { runImport } from '../support/import-harness.ts'
import { delta, snapshot, T } from '../support/kalshi-frames.ts'
import { startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { foldedAnew, folderOf, readBucket, readWhole, SOURCE } from './raw-lakes.ts'

const DATES = ['2026-06-24', '2026-06-25'] as const
const CLOCK = { nowMs: () => Date.parse('2026-06-28T12:00:00Z'), sleep: async () => {} }
const B = 'KXHIGHNY-26JUN24-B81.5'

const at = (time: string, make: (ts_ms: number) => object): string => {
  const ms = Date.parse(`2026-06-${time}Z`)
  return JSON.stringify({ recv_ts: ms, msg: make(ms) })
}
const ACROSS_MIDNIGHT = [
  at('24T23:58:00', (ts_ms) => snapshot(1, { yes: [[40, 9]], ts_ms })),
  at('25T00:01:00', (ts_ms) => delta(2, { ts_ms })),
  at('25T00:02:00', (ts_ms) => delta(3, { ts_ms })),
]
const NEXT_DATE = [at('25T01:00:00', (ts_ms) => snapshot(1, { market_ticker: B, yes: [[30, 9]], ts_ms }, 2))]
const REPLACEMENT = [at('24T12:00:00', (ts_ms) => snapshot(1, { market_ticker: T, yes: [[50, 9]], ts_ms }))]

function filesOf(tree: Record<string, string>): readonly (readonly string[])[] {
  return digestsOf(tree).filter(([key]) => key!.endsWith('.parquet'))
}

function digestsOf(tree: Record<string, string>): readonly (readonly string[])[] {
  return Object.entries(tree).map(([key, bytes]) => [key, digestOf(bytes)])
}

for (const [isPushedBefore, isBusy] of [
  [false, false],
  [true, false],
  [false, true],
  [true, true],
] as const)
  test(`books of a replaced date are not those of the next date, which ${isPushedBefore ? 'object storage' : 'another lake'} has more of${isBusy ? ', also if another process holds the lock' : ''}`, async (t) => {
    const server = await startS3Server(t)
    const [a, b] = [await temporaryDirectory(t), await temporaryDirectory(t)]
    const sync = async (lake: string, direction: 'push' | 'pull', folder = folderOf(lake)): Promise<void> => {
      const place = { lake, remote: server.store(), clock: CLOCK, folder }
      const { failures, conflictReasons } = await syncLake({ ...place, direction, raw: true })
      assert.deepEqual([failures, [...conflictReasons]], [[], []])
    }
    await runImport(a, SOURCE, { lines: ACROSS_MIDNIGHT })
    await sync(a, 'push')
    await sync(b, 'pull')
    await runImport(b, SOURCE, { lines: NEXT_DATE })
    if (isPushedBefore) await sync(b, 'push')
    await runImport(a, SOURCE, { lines: REPLACEMENT }, { replace: true })
    const isLocked = (lake: string) => (): void => {
      throw new MergeBusy(
        { lake, source: SOURCE },
        new DataDirectoryLocked(lake, { pid: 1, host: '', socketPath: '', processStart: null }),
        1,
      )
    }
    for (const lake of isBusy ? [a, b] : []) await sync(lake, 'push', folderOf(lake, isLocked(lake)))
    for (const lake of [a, b, a]) await sync(lake, 'push')
    const whole = await readWhole(a)
    assert.deepEqual(digestsOf(await readWhole(b)), digestsOf(whole))
    assert.deepEqual(digestsOf(await readBucket(server.store())), digestsOf(whole))
    const anew = await foldedAnew(a, await temporaryDirectory(t), DATES)
    assert.deepEqual(filesOf(whole), filesOf(anew))
  })

test('a date that follows a sealed one is not folded again', async (t) => {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  await runImport(lake, SOURCE, { lines: ACROSS_MIDNIGHT.slice(0, 1) }, { keepsRaw: false })
  // Its first connection continues that of the sealed date, which did not know of it.
  await runImport(lake, SOURCE, { lines: ACROSS_MIDNIGHT.slice(1) })
  let foldCount = 0
  const folder = folderOf(lake, () => foldCount++)
  const remote = server.store()
  const { failures } = await syncLake({ lake, remote, clock: CLOCK, folder, direction: 'push', raw: true })
  assert.deepEqual([failures, foldCount], [[], 0])
})
