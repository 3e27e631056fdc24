// An import that is killed between writing files and manifests leaves manifests and states that are older than the files. The
// same import again, alone or with more, completes the lake.

import assert from 'node:assert/strict'
import { cp, mkdir, rename, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { ImportResult } from '../../server/import/recording-import.ts'
import { segmentsOnDisk } from '../../server/raw/date-manifest.ts'
import { sealDate } from '../../server/raw/date-removal.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, delta, snapshot } from '../support/kalshi-frames.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { lakeHashes } from './pieces/lake-reader.ts'

const MARKET = `0x${'ab'.repeat(32)}`
const at = (seconds: number, frame: unknown): string =>
  `${JSON.stringify({ recv_ts: MS + seconds * 1000, msg: frame })}\n`
const tokenBook = (seconds: number): string => {
  const timestamp = String(MS + seconds * 1000)
  const levels = { bids: [{ price: '0.4', size: '9' }], asks: [] }
  return at(seconds, [{ event_type: 'book', market: MARKET, asset_id: '7', timestamp, ...levels }])
}
const tokenChange = (seconds: number): string => {
  const change = { asset_id: '7', price: '0.41', size: String(seconds), side: 'BUY' }
  const timestamp = String(MS + seconds * 1000 - 20)
  return at(seconds, { event_type: 'price_change', market: MARKET, timestamp, price_changes: [change] })
}
const kalshiChange = (seconds: number, seq: number): string =>
  at(seconds, delta(seq, { ts_ms: MS + seconds * 1000 - 20 }))

const PART_S = 300
const CHANGE_S = 20

/** Changes of a part, each made from its time and its index. */
function changes(part: number, made: (seconds: number, count: number) => string): string {
  const counts = Array.from({ length: PART_S / CHANGE_S - 1 }, (_, index) => index + 1)
  return counts
    .map((count) => made(part * PART_S + count * CHANGE_S, part * counts.length + count - 1))
    .join('')
}

/** A connection's lines in four parts; its end is stated long after the first part. */
const PARTS: Readonly<Record<'kalshi' | 'polymarket', readonly string[]>> = {
  polymarket: [
    tokenBook(0) + changes(0, tokenChange),
    changes(1, tokenChange),
    changes(2, tokenChange),
    changes(3, tokenChange) + at(4 * PART_S, { event_type: 'disconnect' }),
  ],
  kalshi: [
    at(0, snapshot(1, { yes: [[40, 9]] })) + changes(0, (seconds, count) => kalshiChange(seconds, count + 2)),
    changes(1, (seconds, count) => kalshiChange(seconds, count + 2)),
    changes(2, (seconds, count) => kalshiChange(seconds, count + 2)),
    changes(3, (seconds, count) => kalshiChange(seconds, count + 2)) + at(4 * PART_S, { type: 'disconnect' }),
  ],
}

/** The parts in the lake, those of the killed import, and those of the import after it. */
const CASES = [
  [[0], [1, 2, 3], [1, 2, 3]],
  [
    [0, 1],
    [2, 3],
    [2, 3],
  ],
  [[0, 1], [2], [2, 3]],
  [[0], [1], [0, 1, 2, 3]],
  [
    [0, 3],
    [1, 2],
    [1, 2],
  ],
  [
    [1, 2],
    [0, 3],
    [0, 3],
  ],
  [[0, 2, 3], [1], [1]],
  [[1, 2, 3], [0], [0]],
] as const

for (const source of ['kalshi', 'polymarket'] as const) {
  test(`${source}: the next import completes one that was killed before it wrote its manifest`, async (t) => {
    const directory = await temporaryDirectory(t)
    const paths = await Promise.all(
      PARTS[source].map(async (text, part) => {
        const path = join(directory, `${part}.ndjson`)
        await writeFile(path, text)
        return path
      }),
    )
    const add = async (lake: string, parts: readonly number[]): Promise<void> => {
      await runImport(lake, source, { paths: parts.map((part) => paths[part]!) })
    }
    const whole = join(directory, 'whole')
    await add(whole, [0, 1, 2, 3])
    const expected = await lakeHashes(whole)
    assert.equal(expected.size, 1)
    const broken: string[] = []
    for (const [number, [before, killed, again]] of CASES.entries()) {
      const lake = join(directory, `lake-${number}`)
      await add(lake, before)
      await putBackManifest(lake, source, async () => await add(lake, killed))
      await add(lake, again)
      if (!isDeepStrictEqual(await lakeHashes(lake), expected))
        broken.push([before, killed, again].map((parts) => parts.join()).join(' + '))
    }
    assert.deepEqual(broken, [])
  })
}

/** Does `work` on a lake, then restores its manifest and state. */
async function putBackManifest(lake: string, source: LobSource, work: () => Promise<void>): Promise<void> {
  const directory = rawDateDirectory(lake, source, '2026-06-24')
  const copies = ['manifest.json', 'fold.json.gz'].map(
    (name) => [join(directory, name), join(lake, name)] as const,
  )
  for (const [path, copy] of copies) await cp(path, copy)
  await work()
  for (const [path, copy] of copies) await rename(copy, path)
}

test('the same import again completes one that was killed while it sealed its dates', async (t) => {
  const directory = await temporaryDirectory(t)
  const lines = PARTS.kalshi.flatMap((text) => text.trimEnd().split('\n'))
  // Two dates.
  const ms = MS + 86_400_000
  lines.push(JSON.stringify({ recv_ts: ms, msg: snapshot(1, { yes: [[41, 9]] }, 2) }))
  const add = async (lake: string): Promise<ImportResult> =>
    await runImport(lake, 'kalshi', { lines }, { keepsRaw: false })
  const whole = join(directory, 'whole')
  const { sealed } = await add(whole)
  assert.equal(sealed.length, 2)
  const expected = (await entriesBelow(whole)).toSorted()
  const lake = join(directory, 'lake')
  await runImport(lake, 'kalshi', { lines })
  const [first] = sealed
  const segments = await segmentsOnDisk(lake, 'kalshi', first!)
  const kept = join(directory, 'kept')
  await cp(rawDateDirectory(lake, 'kalshi', first!), kept, { recursive: true })
  await sealDate(lake, 'kalshi', first!)
  for (const name of segments)
    await cp(join(kept, name), join(rawDateDirectory(lake, 'kalshi', first!), name))
  for (let count = 0; count < 2; count++) {
    const again = await add(lake)
    assert.deepEqual([again.sealed, again.kept, again.segments.added], [sealed, [], 0])
    assert.deepEqual((await entriesBelow(lake)).toSorted(), expected)
    assert.deepEqual(await lakeHashes(lake), await lakeHashes(whole))
  }
  // Without the option, the recording may be meant to be kept.
  await assert.rejects(runImport(lake, 'kalshi', { lines }), /is sealed/)
})

test('a fold removes temporary files of killed folds after a day, and no younger ones', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  const lines = PARTS.kalshi[0]!.trimEnd().split('\n')
  await runImport(lake, 'kalshi', { lines })
  const date = new Date(MS).toISOString().slice(0, 10)
  const left = [
    `lob/source=kalshi/.spill.0123456789ab.tmp/${date}-0-15`,
    `lob/source=kalshi/series=KXHIGHNY/.date=${date}.lob.parquet.0123456789ab.tmp`,
    `raw/source=kalshi/date=${date}/.manifest.json.0123456789ab.tmp`,
    `raw/source=kalshi/.segment.0123456789ab.tmp`,
  ]
  for (const name of [...left, ...left.map((one) => one.replace('0123', '3210'))]) {
    await mkdir(dirname(join(lake, name)), { recursive: true })
    await writeFile(join(lake, name), 'left')
  }
  const old = Date.now() / 1000 - 2 * 86_400
  for (const name of left) await utimes(join(lake, name.replace(/(?<=\.tmp).*/, '')), old, old)
  await runImport(lake, 'kalshi', { lines })
  const present = (await entriesBelow(lake)).filter((name) => name.endsWith('.tmp'))
  assert.deepEqual(
    present.filter((name) => name.includes('0123456789ab')),
    [],
  )
  assert.equal(present.filter((name) => name.includes('3210456789ab')).length, left.length)
})
