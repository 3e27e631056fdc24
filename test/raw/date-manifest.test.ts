import assert from 'node:assert/strict'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import {
  DamagedManifestError,
  manifestPath,
  manifestText,
  parseManifest,
  rawDates,
  readManifest,
  segmentsOnDisk,
  standsAbove,
  unionOfSegments,
  writeManifest,
} from '../../server/raw/date-manifest.ts'
import type { DateManifest, ManifestSegment } from '../../server/raw/date-manifest.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const nameOf = (index: number): string => `import-07-${String(index).padStart(32, '0')}.ndjson.gz`
const aTime = fc.bigInt({ min: 0n, max: 9n * 10n ** 18n })
const PLAIN = { noNullPrototype: true }
const aSegment: fc.Arbitrary<ManifestSegment> = fc.record(
  {
    name: fc.nat(50).map(nameOf),
    lines: fc.nat(),
    firstTs: fc.option(aTime, { nil: undefined }),
    lastTs: fc.option(aTime, { nil: undefined }),
  },
  PLAIN,
)
const aDigest = fc.option(fc.constant('0123456789abcdef'.repeat(2)))
const aManifest: fc.Arbitrary<DateManifest> = fc.record(
  {
    source: fc.constant('kalshi' as const),
    date: fc.constant('2026-07-01'),
    epoch: fc.nat(3),
    fold: fc.nat(3),
    segments: fc
      .uniqueArray(aSegment, { selector: ({ name }) => name, maxLength: 6 })
      .map((list) => list.toSorted((a, b) => (a.name < b.name ? -1 : 1))),
    opening: aDigest,
    closing: aDigest,
  },
  PLAIN,
)

test('a manifest is read as it was written, and its text does not depend on the order of its segments', async (t) => {
  const lake = await temporaryDirectory(t)
  assert.equal(await readManifest(lake, 'kalshi', '2026-07-01'), undefined)
  await fc.assert(
    fc.asyncProperty(aManifest, async (manifest) => {
      await writeManifest(lake, manifest)
      assert.deepEqual(await readManifest(lake, 'kalshi', '2026-07-01'), manifest)
      const turned = { ...manifest, segments: manifest.segments.toReversed() }
      assert.equal(manifestText(turned), manifestText(manifest))
      assert.deepEqual(parseManifest('m', manifestText(turned), turned), manifest)
    }),
    { numRuns: 50 },
  )
  assert.deepEqual(await readdir(rawDateDirectory(lake, 'kalshi', '2026-07-01')), ['manifest.json'])
})

test('a manifest with a higher epoch wins, then one with a higher fold, then one with all segments of the other', () => {
  const base: DateManifest = {
    source: 'kalshi',
    date: '2026-07-01',
    epoch: 0,
    fold: 1,
    segments: [1, 2].map((index) => ({ name: nameOf(index), lines: 1, firstTs: 1n, lastTs: 2n })),
    opening: null,
    closing: null,
  }
  const withSegments = (...indexes: number[]): DateManifest => ({
    ...base,
    segments: indexes.map((index) => ({ name: nameOf(index), lines: 1, firstTs: 1n, lastTs: 2n })),
  })
  assert.equal(standsAbove({ ...withSegments(), epoch: 1 }, { ...base, fold: 9 }), 'a')
  assert.equal(standsAbove(withSegments(1), { ...withSegments(1, 2), fold: 0 }), 'a')
  assert.equal(standsAbove(withSegments(1), withSegments(1, 2)), 'b')
  assert.equal(standsAbove(withSegments(2, 1), withSegments(1, 2)), 'equal')
  assert.equal(standsAbove(withSegments(1, 3), withSegments(1, 2)), 'union')
  assert.deepEqual(
    unionOfSegments(withSegments(3, 1).segments, withSegments(2, 1).segments).map(({ name }) => name),
    [1, 2, 3].map(nameOf),
  )
})

test('the same of two manifests wins in either order', () => {
  const turned = { a: 'b', b: 'a', equal: 'equal', union: 'union' } as const
  fc.assert(
    fc.property(aManifest, aManifest, (a, b) => {
      assert.equal(standsAbove(b, a), turned[standsAbove(a, b)])
    }),
  )
})

test('only segments and dates are listed', async (t) => {
  const lake = await temporaryDirectory(t)
  assert.deepEqual(await segmentsOnDisk(lake, 'kalshi', '2026-07-01'), [])
  assert.deepEqual(await rawDates(lake, 'kalshi'), [])
  const directory = rawDateDirectory(lake, 'kalshi', '2026-07-01')
  await mkdir(directory, { recursive: true })
  await mkdir(rawDateDirectory(lake, 'kalshi', '2026-06-30'))
  for (const name of ['date=2026-13-01', 'other', '.segment.0123456789ab.tmp'])
    await mkdir(`${dirname(directory)}/${name}`)
  for (const name of [nameOf(2), nameOf(1), 'manifest.json', '.x.0123456789ab.tmp', 'import-24-0.ndjson.gz'])
    await writeFile(`${directory}/${name}`, '')
  assert.deepEqual(await segmentsOnDisk(lake, 'kalshi', '2026-07-01'), [nameOf(1), nameOf(2)])
  assert.deepEqual(await rawDates(lake, 'kalshi'), ['2026-06-30', '2026-07-01'])
})

test('the error for an unreadable manifest is one sentence with the file and the remedy', async (t) => {
  const lake = await temporaryDirectory(t)
  const path = manifestPath(lake, 'kalshi', '2026-07-01')
  await mkdir(dirname(path), { recursive: true })
  const valid = {
    manifest: 1,
    source: 'kalshi',
    date: '2026-07-01',
    epoch: 0,
    fold: 1,
    segments: [{ name: nameOf(1), lines: 1, first_ts: '1', last_ts: '2' }],
    opening: null,
    closing: null,
  }
  const segment = (fields: object): object => ({ ...valid, segments: [{ ...valid.segments[0], ...fields }] })
  const cases: [unknown, RegExp][] = [
    ['{', /it is not valid JSON/],
    [[], /it is not a JSON object/],
    [{ ...valid, manifest: 2 }, /its format is 2, which this version does not read/],
    [{ ...valid, source: 'nyse' }, /it names no source and date/],
    [{ ...valid, date: '2026-02-30' }, /it names no source and date/],
    [{ ...valid, date: '2026-07-02' }, /it belongs to kalshi 2026-07-02/],
    [{ ...valid, source: 'polymarket' }, /it belongs to polymarket 2026-07-01/],
    [{ ...valid, epoch: -1 }, /its epoch or its fold is not a whole number/],
    [{ ...valid, fold: 'x' }, /its epoch or its fold is not a whole number/],
    [{ ...valid, closing: 'x' }, /its opening or closing state is not a digest/],
    [{ ...valid, segments: {} }, /it lists no segments/],
    [segment({ name: 'x' }), /an entry of its list is not a segment/],
    [segment({ lines: 0.5 }), /an entry of its list is not a segment/],
    [segment({ first_ts: 1 }), /an entry of its list is not a segment/],
    [{ ...valid, segments: [valid.segments[0], valid.segments[0]] }, /it lists a segment twice/],
  ]
  for (const [value, reason] of cases) {
    await writeFile(path, typeof value === 'string' ? value : JSON.stringify(value))
    await assert.rejects(
      readManifest(lake, 'kalshi', '2026-07-01'),
      (error) =>
        error instanceof DamagedManifestError &&
        error.message.startsWith(`Manifest ${path} is damaged: `) &&
        reason.test(error.message) &&
        error.message.endsWith('Restore it from object storage, or remove it and run `bookcast rebuild`.'),
      JSON.stringify(value),
    )
  }
})
