// `bookcast rebuild`: files that a wrong decoder derived are repaired, and the others keep their bytes and times.

import assert from 'node:assert/strict'
import fsPromises, { copyFile, cp, mkdir, readFile, readdir, rename } from 'node:fs/promises'
import { rm, stat, utimes, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { rebuildDates } from '../../server/fold/lake-rebuild.ts'
import { dateRules } from '../../server/import/date-rules.ts'
import { readManifest, writeManifest } from '../../server/raw/date-manifest.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, delta, snapshot } from '../support/kalshi-frames.ts'
import { bookcast } from '../support/program.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const DAY_MS = 86_400_000
const DATES = ['2026-06-24', '2026-06-25', '2026-06-26']
const LONG_AGO = new Date('2026-01-01T00:00:00Z')

/** Three dates of two series, with books that continue over midnight. */
async function lakeOfThreeDates(directory: string): Promise<string> {
  const lake = join(directory, 'lake')
  const chicago = { market_ticker: 'KXHIGHCHI-26JUN24-T90' }
  const lines = [snapshot(1, { yes: [[40, 9]], ts_ms: MS }), snapshot(2, chicago)]
  for (let seq = 3; seq < 50; seq++) {
    const content = { price_dollars: `0.${10 + (seq % 80)}`, ts_ms: MS + seq * (DAY_MS / 25) }
    lines.push(delta(seq, seq % 3 === 0 ? { ...content, ...chicago } : content))
  }
  await runImport(lake, 'kalshi', { lines: lines.map((line) => JSON.stringify(line)) })
  for (const name of await lobFiles(lake)) await utimes(join(lake, name), LONG_AGO, LONG_AGO)
  return lake
}

async function lobFiles(lake: string): Promise<string[]> {
  return (await entriesBelow(lake)).filter((name) => name.endsWith('.parquet'))
}

async function segmentPaths(lake: string): Promise<string[]> {
  const names = (await entriesBelow(lake)).filter((name) => name.endsWith('.ndjson.gz'))
  return names.map((name) => join(lake, name))
}

async function bytesOf(lake: string): Promise<Map<string, string>> {
  const names = (await entriesBelow(lake)).filter((name) => /\.(?:parquet|gz|json)$/.test(name))
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(lake, name), 'hex')] as const)),
  )
}

/** Overwrites a date's file, as a wrong decoder might, and marks its manifest as derived by another version. */
async function spoil(lake: string, date: string): Promise<string> {
  const path = join(lake, `lob/source=kalshi/series=KXHIGHNY/date=${date}/lob.parquet`)
  await writeFile(path, 'rows of a wrong decoder')
  await writeManifest(lake, { ...(await readManifest(lake, 'kalshi', date))!, fold: 0 })
  return path
}

function rebuild(lake: string, ...args: string[]): ReturnType<typeof bookcast> {
  return bookcast(['rebuild', '--lake', lake, ...args])
}

test('lists and repairs the dates that another version derived', async (t) => {
  const lake = await lakeOfThreeDates(await temporaryDirectory(t))
  const whole = await bytesOf(lake)
  assert.equal((await lobFiles(lake)).length, 6)
  const spoiled = await spoil(lake, DATES[1]!)
  const before = await bytesOf(lake)
  const shown = await rebuild(lake, '--dry-run')
  assert.equal(shown.code, 0, shown.stderr)
  assert.match(
    shown.stdout,
    /^would be replaced lob\/source=kalshi\/series=KXHIGHNY\/date=2026-06-25\/lob\.parquet: \d+ rows\n/,
  )
  assert.match(shown.stdout, /\n1 file would change, 1 file unchanged, in 1 date\n$/)
  assert.deepEqual(await bytesOf(lake), before)
  const done = await rebuild(lake)
  assert.equal(done.code, 0, done.stderr)
  assert.match(done.stdout, /^replaced .*\n1 file changed, 1 file unchanged, in 1 date\n$/)
  assert.match(done.stderr, /^folding 2026-06-25 \(\d+ raw segments\)\n/)
  assert.deepEqual(await bytesOf(lake), whole)
  for (const name of await lobFiles(lake)) {
    const { mtime } = await stat(join(lake, name))
    assert.equal(mtime.getTime() === LONG_AGO.getTime(), join(lake, name) !== spoiled, name)
  }
  assert.equal((await rebuild(lake)).stdout, '0 files changed, 0 files unchanged, in 0 dates\n')
})

test('with given dates, derives each of them and writes only files that differ', async (t) => {
  const lake = await lakeOfThreeDates(await temporaryDirectory(t))
  const whole = await bytesOf(lake)
  await rm(join(lake, 'lob/source=kalshi/series=KXHIGHCHI/date=2026-06-26/lob.parquet'))
  const done = await rebuild(lake, '--from', DATES[1]!, '--source', 'kalshi')
  assert.equal(done.code, 0, done.stderr)
  assert.match(
    done.stdout,
    /^written .*KXHIGHCHI\/date=2026-06-26.*\n1 file changed, 3 files unchanged, in 2 dates\n$/,
  )
  assert.deepEqual(await bytesOf(lake), whole)
  for (const args of [
    ['--from', '2026-07-01'],
    ['--to', '2026-06-01'],
  ]) {
    const none = await rebuild(lake, '--source', 'kalshi', ...args)
    assert.equal(none.code, 1)
    assert.match(none.stderr, /has no raw segments of kalshi from .* to .*\. Pull them from object storage/)
  }
  const wrong = await rebuild(lake, '--from', 'noon')
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /--from must be a date/)
  const swapped = await rebuild(lake, '--from', DATES[1]!, '--to', DATES[0]!)
  assert.equal(swapped.code, 2)
})

test('derives all dates from their segments alone, with books that continue over midnight', async (t) => {
  const lake = await lakeOfThreeDates(await temporaryDirectory(t))
  const whole = await bytesOf(lake)
  const isSegment = (name: string): boolean => name.endsWith('.ndjson.gz')
  for (const dates of [DATES, DATES.slice(1)]) {
    const isOfDates = (name: string): boolean => dates.some((date) => name.includes(date))
    for (const name of whole.keys())
      if (isOfDates(name) && !isSegment(name)) await rm(join(lake, name), { force: true })
    const done = await rebuild(lake)
    assert.equal(done.code, 0, done.stderr)
    assert.deepEqual(await bytesOf(lake), whole)
  }
})

test('derives two dates with added segments, with books that continue from one to the other', async (t) => {
  const directory = await temporaryDirectory(t)
  const whole = await lakeOfThreeDates(directory)
  const added = await bytesOf(whole)
  const lake = join(directory, 'other')
  // A connection that ends on the first date. Its hour is already in the lake when the other segments are added.
  await runImport(lake, 'kalshi', { lines: [JSON.stringify(snapshot(1, { yes: [[30, 5]], ts_ms: MS }))] })
  await bookcast(['import', '--lake', whole, '--source', 'kalshi', ...(await segmentPaths(lake))])
  for (const name of added.keys()) {
    if (!name.endsWith('.ndjson.gz')) continue
    await mkdir(dirname(join(lake, name)), { recursive: true })
    await copyFile(join(whole, name), join(lake, name))
  }
  const done = await rebuild(lake)
  assert.equal(done.code, 0, done.stderr)
  assert.deepEqual(await bytesOf(lake), await bytesOf(whole))
})

test('names a damaged or missing segment, and derives the date without it on request', async (t) => {
  const lake = await lakeOfThreeDates(await temporaryDirectory(t))
  const directory = rawDateDirectory(lake, 'kalshi', DATES[1]!)
  const segments = (await readdir(directory)).filter((name) => name.endsWith('.ndjson.gz'))
  const [damaged, missing] = [join(directory, segments[2]!), join(directory, segments[4]!)]
  await copyFile(damaged, `${damaged}.whole`)
  await writeFile(damaged, (await readFile(damaged)).subarray(0, -9))
  const before = await bytesOf(lake)
  const range = ['--from', DATES[1]!, '--to', DATES[1]!]
  const failed = await rebuild(lake, ...range)
  assert.equal(failed.code, 1)
  assert.ok(failed.stderr.includes(`Segment ${damaged} is damaged`), failed.stderr)
  assert.deepEqual(await bytesOf(lake), before)
  await rm(missing)
  await rename(`${damaged}.whole`, damaged)
  const lacking = await rebuild(lake, ...range)
  assert.match(lacking.stderr, new RegExp(`^bookcast rebuild: Segment ${missing} is missing\\. Restore`, 'm'))
  await writeFile(damaged, (await readFile(damaged)).subarray(0, -9))
  const repaired = await rebuild(lake, ...range, '--without-damaged')
  assert.equal(repaired.code, 0, repaired.stderr)
  assert.match(repaired.stdout, /^left out: raw\/source=kalshi\/date=2026-06-25\/import-\S+\nleft out: raw\//)
  assert.ok((await readdir(directory)).includes(`${segments[2]!}.damaged`))
  const manifest = await readManifest(lake, 'kalshi', DATES[1]!)
  assert.equal(manifest!.segments.length, segments.length - 2)
  assert.match((await rebuild(lake, ...range)).stdout, /^0 files changed/)
})

test('derives dates without damaged segments, also if the fold of one date reads those of the next', async (t) => {
  const lake = await lakeOfThreeDates(await temporaryDirectory(t))
  const directory = rawDateDirectory(lake, 'kalshi', DATES[1]!)
  const [first] = (await readdir(directory)).filter((name) => name.endsWith('.ndjson.gz')).toSorted()
  await rm(join(directory, first!))
  const repaired = await rebuild(lake, '--from', DATES[0]!, '--to', DATES[1]!, '--without-damaged')
  assert.equal(repaired.code, 0, repaired.stderr)
  assert.equal(repaired.stdout.split('\n').filter((line) => line.startsWith('left out: ')).length, 1)
  assert.match((await rebuild(lake, '--from', DATES[0]!)).stdout, /^0 files changed/)
})

test('segments can be added to a date that has lost all its segments, unless it has order-book files', async (t) => {
  const lake = await lakeOfThreeDates(await temporaryDirectory(t))
  const date = DATES[1]!
  const directory = rawDateDirectory(lake, 'kalshi', date)
  for (const name of await readdir(directory))
    if (name.endsWith('.ndjson.gz')) await rm(join(directory, name))
  const added = [{ date, name: '' }]
  const rules = { lake, source: 'kalshi', replace: false } as const
  await assert.rejects(dateRules(rules, added), /its manifest lists/)
  const repaired = await rebuild(lake, '--from', date, '--to', date, '--without-damaged')
  assert.equal(repaired.code, 0, repaired.stderr)
  assert.deepEqual(await readdir(directory), [])
  await assert.rejects(dateRules(rules, added), /written without raw segments/)
  await rm(join(lake, 'lob'), { recursive: true })
  assert.equal((await dateRules(rules, added)).size, 1)
})

test('a rebuild completes one that was killed while it set aside the damaged segments of a whole date', async (t) => {
  const directory = await temporaryDirectory(t)
  const base = await lakeOfThreeDates(directory)
  for (const path of await segmentPaths(base)) if (path.includes(DATES[0]!)) await writeFile(path, 'damaged')
  const again = async (lake: string): Promise<Map<string, string>> => {
    const done = await rebuild(lake, '--from', DATES[0]!, '--without-damaged')
    assert.equal(done.code, 0, done.stderr)
    return await bytesOf(lake)
  }
  const whole = join(directory, 'whole')
  await cp(base, whole, { recursive: true })
  const expected = await again(whole)
  // The process ends before its call number `kill` that changes a name or removes a file.
  for (let kill = 0, isDone = false; !isDone; kill++) {
    const lake = join(directory, `lake-${kill}`)
    await cp(base, lake, { recursive: true })
    const revive = failAfter(kill)
    const options = { lake, source: 'kalshi', from: DATES[0], to: DATES[0], isDryRun: false } as const
    const rest = { withoutDamaged: true, folding: foldRawDates, listeners: {} }
    const signal = new AbortController().signal
    try {
      for await (const _ of rebuildDates({ ...options, ...rest, signal }, [DATES[0]!]));
      isDone = true
    } catch (error) {
      assert.match(String(error), /killed/)
    } finally {
      revive()
    }
    assert.deepEqual(await again(lake), expected, `${kill} calls`)
  }
})

/** Calls after the first `calls` fail, as if the process were killed. Locks are released nevertheless. */
function failAfter(calls: number): () => void {
  const real = { rename: fsPromises.rename, rm: fsPromises.rm }
  let left = calls
  const failing =
    <A extends unknown[]>(call: (...args: A) => Promise<void>) =>
    async (...args: A): Promise<void> => {
      if (String(args[0]).includes(`date=${DATES[0]}`) && left-- <= 0) throw new Error('killed')
      await call(...args)
    }
  Object.assign(fsPromises, { rename: failing(real.rename), rm: failing(real.rm) })
  syncBuiltinESMExports()
  return () => {
    Object.assign(fsPromises, real)
    syncBuiltinESMExports()
  }
}

test('a sealed date is not changed', async (t) => {
  const directory = await temporaryDirectory(t)
  const lake = join(directory, 'lake')
  const lines = [snapshot(1, { ts_ms: MS }), delta(2)].map((line) => JSON.stringify(line))
  const { sealed } = await runImport(lake, 'kalshi', { lines }, { keepsRaw: false })
  assert.deepEqual(sealed, [DATES[0]])
  const before = await bytesOf(lake)
  const done = await rebuild(lake, '--from', DATES[0]!)
  assert.equal(
    done.stdout,
    'kalshi 2026-06-24 is sealed and stays as it is\n0 files changed, 0 files unchanged, in 0 dates\n',
  )
  assert.deepEqual(await bytesOf(lake), before)
})
