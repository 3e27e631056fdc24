// A seal removes the segments that it names. If another lake has more of the date, nothing is removed until the operator decides.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { pruneRaw } from '../../server/commands/prune-raw.ts'
import { manifestPath, readManifest, segmentsOnDisk, writeManifest } from '../../server/raw/date-manifest.ts'
import { sealDate } from '../../server/raw/date-removal.ts'
import { type LakeSyncOptions, type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { lobKey, rawDateDirectory } from '../../shared/lake-layout.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, snapshot } from '../support/kalshi-frames.ts'
import { type S3Server, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { foldHere, folderOf, readBucket, readWhole, SOURCE, unite, writeSegment } from './raw-lakes.ts'

const DATE = '2026-06-24'
const CLOCK = { nowMs: () => Date.parse('2026-06-28T12:00:00Z'), sleep: async () => {} }
const DEN = lobKey(SOURCE, 'KXHIGHDEN', DATE)
const HELD =
  /was sealed in .* without segments that .* has \(1, (?:import|r1)-.* among them\)\. Nothing was removed/

async function importInto(lake: string, series: 'NY' | 'DEN' | 'CHI'): Promise<void> {
  const hour = { NY: 3, DEN: 4, CHI: 5 }[series]
  const market = `KXHIGH${series}-26JUN24-T82`
  await writeSegment(lake, { recorder: 'import', date: DATE, hour, fromMinute: 1, toMinute: 6, market })
  await foldHere(lake, [DATE])
}

/** `import --replace` of a snapshot with this quantity. Returns the segment. */
async function importAnew(lake: string, quantity: number): Promise<readonly string[]> {
  const lines = [JSON.stringify(snapshot(1, { yes: [[40, quantity]], ts_ms: MS }))]
  await runImport(lake, SOURCE, { lines }, { replace: true })
  return await segmentsOnDisk(lake, SOURCE, DATE)
}

async function replaceIn(lake: string): Promise<void> {
  const plan = { recorder: 'import', date: DATE, hour: 9, fromMinute: 1, toMinute: 6 } as const
  const { name } = await writeSegment(lake, plan)
  await foldHere(lake, [DATE], new Map([[DATE, { added: [name], replacedBy: 2 }]]))
}

class Lakes {
  readonly #server: S3Server
  readonly a: string
  readonly b: string

  constructor(server: S3Server, a: string, b: string) {
    this.#server = server
    this.a = a
    this.b = b
  }

  static async start(t: TestContext): Promise<Lakes> {
    return new Lakes(await startS3Server(t), await temporaryDirectory(t), await temporaryDirectory(t))
  }

  async sync(lake: string, options: Partial<LakeSyncOptions> = {}): Promise<LakeSyncResult> {
    const remote = this.#server.store()
    const result = await syncLake({
      lake,
      remote,
      direction: 'push',
      clock: CLOCK,
      folder: folderOf(lake),
      ...options,
    })
    assert.deepEqual(result.failures, [])
    return result
  }

  async push(lake: string, options: Partial<LakeSyncOptions> = {}): Promise<void> {
    assert.deepEqual([...(await this.sync(lake, options)).conflictReasons], [])
  }

  async pull(lake: string, options: Partial<LakeSyncOptions> = {}): Promise<void> {
    await this.push(lake, { direction: 'pull', raw: true, ...options })
  }

  /** Asserts that a synchronization ends with a conflict and leaves lake and bucket unchanged. */
  async assertHeld(lake: string, options: Partial<LakeSyncOptions> = {}): Promise<void> {
    const before = [await readWhole(lake), await this.bucket()]
    const { conflictReasons } = await this.sync(lake, options)
    assert.match([...conflictReasons.values()].join('\n'), HELD)
    assert.deepEqual([await readWhole(lake), await this.bucket()], before)
  }

  async bucket(): Promise<Record<string, string>> {
    return await readBucket(this.#server.store())
  }

  async assertEqual(): Promise<void> {
    const bucket = await this.bucket()
    for (const lake of [this.a, this.b]) assert.deepEqual(await readWhole(lake), bucket)
    assert.deepEqual(
      Object.keys(bucket).filter((key) => key.endsWith('.ndjson.gz')),
      [],
    )
  }
}

/** One lake has imported NY, the other also has DEN; both have pushed. */
async function withTwoImports(t: TestContext): Promise<Lakes> {
  const lakes = await Lakes.start(t)
  await importInto(lakes.a, 'NY')
  await lakes.push(lakes.a)
  await lakes.pull(lakes.b)
  await importInto(lakes.b, 'DEN')
  await lakes.push(lakes.b)
  return lakes
}

test('a seal removes nothing while object storage has segments that the sealing lake lacked', async (t) => {
  const lakes = await withTwoImports(t)
  const { a, b } = lakes
  await sealDate(a, SOURCE, DATE)
  await lakes.assertHeld(a)
  await lakes.assertHeld(a, { direction: 'pull', raw: true, replace: true })
  await lakes.push(b)
  // Apply the remedy that keeps all messages.
  await rm(rawDateDirectory(a, SOURCE, DATE), { recursive: true })
  await lakes.pull(a, { replace: true })
  await sealDate(a, SOURCE, DATE)
  await lakes.push(a)
  await lakes.push(b)
  await lakes.assertEqual()
  assert.ok(DEN in (await lakes.bucket()))
})

test('an enforced seal removes the segments, and the other lake keeps its own until its operator removes them', async (t) => {
  const lakes = await withTwoImports(t)
  await sealDate(lakes.a, SOURCE, DATE)
  await lakes.push(lakes.a, { replace: true })
  await lakes.assertHeld(lakes.b)
  await rm(rawDateDirectory(lakes.b, SOURCE, DATE), { recursive: true })
  await lakes.pull(lakes.b, { replace: true })
  await lakes.pull(lakes.a)
  await lakes.assertEqual()
})

test('segments imported into a date that object storage has sealed stay in their lake', async (t) => {
  const lakes = await Lakes.start(t)
  const { a, b } = lakes
  await importInto(a, 'NY')
  await sealDate(a, SOURCE, DATE)
  await lakes.push(a)
  await importInto(b, 'DEN')
  await lakes.assertHeld(b)
  await lakes.assertHeld(b, { replace: true })
  await replaceIn(b)
  await lakes.push(b, { replace: true })
})

test('of two seals only one that has all segments of the other wins', async (t) => {
  const lakes = await withTwoImports(t)
  const { a, b } = lakes
  await importInto(b, 'CHI')
  for (const lake of [a, b]) await sealDate(lake, SOURCE, DATE)
  await lakes.push(b)
  await lakes.push(a)
  await lakes.assertEqual()
  const others = await Lakes.start(t)
  await importInto(others.a, 'NY')
  await importInto(others.b, 'DEN')
  for (const lake of [others.a, others.b]) await sealDate(lake, SOURCE, DATE)
  await others.push(others.a)
  await others.assertHeld(others.b)
  await others.push(others.b, { replace: true })
})

const HOUR = { recorder: 'r1', date: DATE, hour: 3, fromMinute: 0, toMinute: 5 }

/** Both lakes have a slice of an hour, which the first one then merges. */
async function withUnitedHour(t: TestContext): Promise<Lakes> {
  const lakes = await Lakes.start(t)
  const { a, b } = lakes
  const slice = await writeSegment(a, HOUR)
  await foldHere(a, [DATE])
  await lakes.push(a)
  await lakes.pull(b)
  await unite(a, { ...HOUR, toMinute: 8 }, [slice])
  await rm(manifestPath(a, SOURCE, DATE))
  await foldHere(a, [DATE])
  return lakes
}

test('listed slices of an hour that was merged before the seal are removed from a stale disk', async (t) => {
  const lakes = await withUnitedHour(t)
  const { a, b } = lakes
  await writeSegment(b, { ...HOUR, fromMinute: 5, toMinute: 8, firstLine: 6 })
  await foldHere(b, [DATE])
  // For an unlisted slice it is not known whether the merged hour has its lines.
  const unlisted = await writeSegment(b, { ...HOUR, fromMinute: 8, toMinute: 9, firstLine: 9 })
  await sealDate(a, SOURCE, DATE)
  await lakes.push(a)
  await lakes.assertHeld(b)
  await rm(unlisted.path)
  await lakes.push(b)
  await lakes.assertEqual()
})

test('a slice that a recorder writes after the seal is kept until the operator decides', async (t) => {
  const lakes = await Lakes.start(t)
  const { a } = lakes
  await writeSegment(a, HOUR)
  await foldHere(a, [DATE])
  await sealDate(a, SOURCE, DATE)
  await lakes.push(a)
  const { path } = await writeSegment(a, { ...HOUR, fromMinute: 5, toMinute: 6, firstLine: 6 })
  await lakes.assertHeld(a)
  await lakes.assertHeld(a, { direction: 'pull', raw: true })
  for await (const { reason } of pruneRaw(a, '2026-06-26', true, undefined))
    assert.match(reason ?? '', /which came after its seal/)
  assert.equal(existsSync(path), true)
  await lakes.push(a, { replace: true })
  assert.equal(existsSync(path), false)
})

test('the remedy for a slice that came after a seal that was not pushed keeps the slice', async (t) => {
  const lakes = await Lakes.start(t)
  const { a } = lakes
  await writeSegment(a, HOUR)
  await foldHere(a, [DATE])
  await lakes.push(a)
  await sealDate(a, SOURCE, DATE)
  const { path } = await writeSegment(a, { ...HOUR, fromMinute: 5, toMinute: 6, firstLine: 6 })
  const [reason] = [...(await lakes.sync(a)).conflictReasons.values()]
  assert.match(
    reason ?? '',
    /without segments that the lake has .* To keep their messages, import everything/,
  )
  assert.equal(existsSync(path), true)
  await lakes.push(a, { replace: true })
  assert.equal(existsSync(path), false)
})

test('of two seals the one with the merged hour wins, whichever is pushed first', async (t) => {
  for (const isUnitedFirst of [true, false]) {
    const lakes = await withUnitedHour(t)
    const { a, b } = lakes
    for (const lake of [a, b]) await sealDate(lake, SOURCE, DATE)
    const whole = await readWhole(a)
    for (const lake of isUnitedFirst ? [a, b] : [b, a, b]) await lakes.push(lake)
    await lakes.assertEqual()
    assert.deepEqual(await lakes.bucket(), whole)
  }
})

test('rows from REST are kept until a seal names them, even if the date was replaced before', async (t) => {
  const lakes = await Lakes.start(t)
  const { a, b } = lakes
  await importInto(a, 'NY')
  await lakes.push(a)
  await lakes.pull(b)
  const plan = { recorder: 'rest', date: DATE, hour: 4, fromMinute: 1, toMinute: 6 } as const
  await writeSegment(b, plan)
  await foldHere(b, [DATE])
  const names = await segmentsOnDisk(a, SOURCE, DATE)
  await foldHere(a, [DATE], new Map([[DATE, { added: names, replacedBy: 1 }]]))
  await sealDate(a, SOURCE, DATE)
  await lakes.push(a)
  const { conflictReasons } = await lakes.sync(b)
  assert.match([...conflictReasons.values()].join(), /without segments that the lake has \(1, rest-04/)
})

test('a segment of an open date that object storage still has after a seal does not block a pull', async (t) => {
  const lakes = await Lakes.start(t)
  const { a, b } = lakes
  const clock = { ...CLOCK, nowMs: () => Date.parse(`${DATE}T23:00:00Z`) }
  await writeSegment(b, HOUR)
  await foldHere(b, [DATE])
  await lakes.push(b, { clock })
  await importInto(a, 'NY')
  await sealDate(a, SOURCE, DATE)
  await lakes.push(a, { clock, replace: true })
  await lakes.assertHeld(b, { clock })
  await rm(rawDateDirectory(b, SOURCE, DATE), { recursive: true })
  await lakes.pull(b, { clock, replace: true })
  for (const lake of [a, b]) await lakes.push(lake)
  await lakes.assertEqual()
})

test('an enforced pull of one date drops no segments of another date', async (t) => {
  const lakes = await withTwoImports(t)
  const { a, b } = lakes
  await sealDate(a, SOURCE, DATE)
  await lakes.push(a, { replace: true })
  await lakes.assertHeld(b, { direction: 'pull', raw: true, replace: true })
  const plan = { recorder: 'import', date: '2026-06-22', fromMinute: 1, toMinute: 6 } as const
  const { name } = await writeSegment(a, { ...plan, hour: 3 })
  await foldHere(a, [plan.date], new Map([[plan.date, { added: [name], replacedBy: 1 }]]))
  await lakes.push(a)
  await rm(rawDateDirectory(b, SOURCE, DATE), { recursive: true })
  await lakes.pull(b, { replace: true })
  const added = await writeSegment(b, { ...plan, hour: 5 })
  await foldHere(b, [plan.date], new Map([[plan.date, { added: [added.name] }]]))
  const before = await readManifest(b, SOURCE, plan.date)
  await lakes.pull(b, { replace: true })
  await lakes.push(b)
  assert.deepEqual(await readManifest(b, SOURCE, plan.date), before)
})

for (const [missed, isSealed, quantities] of [
  ['two others', false, [7, 8]],
  ['another and its seal', true, [7]],
  ['two others and a seal', true, [7, 8]],
] as const)
  test(`the latest replacement counts, also in a lake that has missed ${missed}`, async (t) => {
    const lakes = await Lakes.start(t)
    const { a, b } = lakes
    await importInto(a, 'NY')
    await lakes.push(a)
    await lakes.pull(b)
    for (const quantity of quantities) await importAnew(a, quantity)
    if (isSealed) await sealDate(a, SOURCE, DATE)
    await lakes.push(a)
    const names = await importAnew(b, 9)
    await lakes.push(b)
    await lakes.pull(a)
    for (const lake of [a, b]) assert.deepEqual(await segmentsOnDisk(lake, SOURCE, DATE), names)
  })

test('the conflict for a seal with segments found nowhere else names the remedy that keeps all messages', async (t) => {
  const lakes = await Lakes.start(t)
  const { a, b } = lakes
  await importInto(a, 'NY')
  await importInto(b, 'DEN')
  await lakes.push(b)
  await sealDate(a, SOURCE, DATE)
  const { conflictReasons } = await lakes.sync(a)
  assert.match([...conflictReasons.values()].join(), /To keep their messages, import everything recorded/)
})

test('a seal of an earlier version, which names no segments, removes them all', async (t) => {
  const lakes = await withTwoImports(t)
  await sealDate(lakes.a, SOURCE, DATE)
  const { sealed, ...manifest } = (await readManifest(lakes.a, SOURCE, DATE))!
  assert.equal(sealed?.length, 1)
  await writeManifest(lakes.a, manifest)
  await lakes.push(lakes.a)
  await lakes.push(lakes.b)
  await lakes.pull(lakes.a)
  await lakes.assertEqual()
})

test('a seal removes what a killed replacement has left before it is written', async (t) => {
  const lake = await temporaryDirectory(t)
  await importInto(lake, 'NY')
  const [replaced] = await segmentsOnDisk(lake, SOURCE, DATE)
  const path = join(rawDateDirectory(lake, SOURCE, DATE), replaced!)
  await replaceIn(lake)
  // A directory of its name stops the removal.
  await rm(path)
  await mkdir(path)
  await assert.rejects(sealDate(lake, SOURCE, DATE))
  assert.equal((await readManifest(lake, SOURCE, DATE))?.sealed, undefined)
  await rmdir(path)
  assert.equal(await sealDate(lake, SOURCE, DATE), true)
  assert.deepEqual(await segmentsOnDisk(lake, SOURCE, DATE), [])
})
