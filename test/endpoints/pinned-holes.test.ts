// Versions without some rows: if rows were only in the store when a response named a version, the same request pinned to this
// version does not omit them after they have moved to the lake. Also damaged kept files.

import assert from 'node:assert/strict'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { SYSTEM_CLOCK } from '../../server/tasks/clock.ts'
import { keptFilePath } from '../../shared/lake-pin.ts'
import { MS_PER_DAY, MS_PER_HOUR } from '../../shared/utc-date.ts'
import { candleAt, JULY_MS, observationAt } from '../support/moved-rows.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { eventually } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { startVersionWorld, type VersionWorld, versionNamed } from '../support/version-world.ts'

const place = storeOfThisFile()
/** The shortest pause between two looks at the lake's files. */
const PAUSE_MS = 5_000
const YEAR_MS = Date.UTC(2026, 0, 1)

async function write(instants: readonly number[], series = 'KXHIGHNY', station = 'NYC'): Promise<void> {
  const names = { series_ticker: series, event_ticker: `${series}-A`, market_ticker: `${series}-A-B1` }
  await place.store.postgres.transaction(async (transaction) => {
    await writeCandles(
      transaction,
      instants.map((ms) => candleAt(ms, names)),
    )
    const rows = instants.map((ms) => observationAt(ms, { station_code: station, temp_f: 70 }))
    await writeObservations(
      transaction,
      rows.map((observation) => ({ observation, filled: {} })),
      (_, incoming) => incoming,
    )
  })
}

async function compact(lake: string, days = 3, retireBeforeMs?: number): Promise<void> {
  const clock = { nowMs: () => JULY_MS + days * MS_PER_DAY, sleep: async () => {} }
  const { postgres } = place.store
  const retiring = retireBeforeMs === undefined ? {} : { retireBeforeMs }
  const { failures } = await compactClosedDays({ postgres, lake, delayMs: 0, clock, ...retiring })
  assert.deepEqual(failures, [])
}

/** A server over files with candles and observations of the first hours of July and of the year. */
async function startWorld(t: TestContext, keepVersionsDays = 30): Promise<VersionWorld> {
  const { postgres } = place.store
  await postgres.run({ text: 'TRUNCATE candles, observations, lake_manifest', parameters: [] })
  const lake = join(await temporaryDirectory(t), 'lake')
  await write([1, 2, 3].flatMap((hour) => [JULY_MS, YEAR_MS].map((ms) => ms + hour * MS_PER_HOUR)))
  await compact(lake)
  return startVersionWorld(t, lake, { postgres, keepVersionsDays })
}

/** Publishes rows as `compact` with a grace time does; returns the version that each path names afterwards. */
async function published(
  world: VersionWorld,
  paths: readonly string[],
  instants: readonly number[],
): Promise<string[]> {
  const before = await Promise.all(paths.map((path) => versionNamed(world, path)))
  await write(instants)
  await compact(world.lake, 5, 0)
  return await Promise.all(paths.map((path, at) => versionNamed(world, path, before[at])))
}

/** Waits until every path can be pinned; pinned answers are those without a version. */
async function canBePinned(
  world: VersionWorld,
  paths: readonly string[],
  versions: readonly string[],
): Promise<void> {
  const pinned = () => Promise.all(paths.map((path, at) => world.ask(`${path}&version=${versions[at]}`)))
  await eventually(async () => (await pinned()).every(({ status }) => status === 200), 'both can be pinned')
  const plain = await Promise.all(paths.map((path) => world.ask(path)))
  assert.deepEqual(
    (await pinned()).map(({ body }) => body),
    plain.map(({ body }) => body),
  )
}

const HOLES = {
  'a period before': [
    'KXHIGHNY',
    'NYC',
    -MS_PER_HOUR,
    [
      'candles?series=KXHIGHNY&from=2026-06-30&to=2026-07-01&fill=false',
      'candles?series=KXHIGHNY&from=2026-06-30&to=2026-07-01&format=parquet',
      'candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-01&aggregate=1440&tz=America/New_York&format=csv',
      'observations?station=NYC&from=2025-12-31&to=2026-01-01',
      'observations?from=2025-12-31&to=2026-01-01&format=parquet',
    ],
  ],
  'another series or station': [
    'KXLOWTNYC',
    'BOS',
    2 * MS_PER_HOUR,
    [
      'candles?station=NYC&from=2026-07-01&to=2026-07-02&fill=false',
      'candles?from=2026-07-01&to=2026-07-02&format=ndjson',
      'observations?from=2026-01-01&to=2026-01-02&format=csv',
    ],
  ],
} as const

for (const [where, [series, station, laterMs, paths]] of Object.entries(HOLES)) {
  test(`a request with rows of ${where} that were only in the store cannot be pinned after they have moved`, async (t) => {
    const world = await startWorld(t)
    const plain = async (): Promise<Buffer[]> =>
      Promise.all(paths.map(async (path) => (await world.ask(path)).body))
    const empty = await plain()
    const versions = await Promise.all(paths.map((path) => versionNamed(world, path)))
    const pinned = () => Promise.all(paths.map((path, at) => world.ask(`${path}&version=${versions[at]}`)))
    for (const [at, { status, body }] of (await pinned()).entries())
      assert.ok(status === 200 && body.equals(empty[at]!), `${paths[at]} ${body.toString()}`)
    await write([JULY_MS + laterMs, YEAR_MS + laterMs], series, station)
    for (const [at, body] of (await plain()).entries()) assert.ok(!body.equals(empty[at]!), paths[at])
    for (const isMoved of [false, true]) {
      if (isMoved) await compact(world.lake)
      for (const [at, { status, body }] of (await pinned()).entries()) {
        assert.equal(status, 409, `${paths[at]} moved=${isMoved} ${body.toString()}`)
        assert.match(body.toString(), /"not_pinnable"/)
      }
    }
  })
}

test('a pinned request does not omit a row that was added while the rows of a published file were served from the store', async (t) => {
  const world = await startWorld(t)
  const dayMs = JULY_MS + 3 * MS_PER_DAY
  const paths = [
    'candles?series=KXHIGHNY&from=2026-07-04&to=2026-07-04T02:00:00Z&fill=false',
    'observations?station=NYC&from=2026-07-04&to=2026-07-04T02:00:00Z',
  ]
  const versions = await published(world, paths, [dayMs + MS_PER_HOUR, dayMs + 3 * MS_PER_HOUR])
  const asked = await Promise.all(paths.map((path) => world.ask(path)))
  await write([dayMs + 1.5 * MS_PER_HOUR])
  for (const [at, path] of paths.entries()) {
    const plain = await world.ask(path)
    assert.deepEqual([plain.version, plain.body.equals(asked[at]!.body)], [versions[at], false])
    const pinned = await world.ask(`${path}&version=${versions[at]}`)
    assert.equal(pinned.status, 409, `${plain.body.toString()} ${pinned.body.toString()}`)
  }
})

test('rows that have left the store can be pinned without another look at unchanged files', async (t) => {
  // A look comes only when something wakes it.
  const sleep = SYSTEM_CLOCK.sleep.bind(SYSTEM_CLOCK)
  t.mock.method(SYSTEM_CLOCK, 'sleep', (ms: number, signal?: AbortSignal) =>
    sleep(ms >= PAUSE_MS ? 3_600_000 : ms, signal),
  )
  const world = await startWorld(t)
  const paths = [
    'candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-04T02:00:00Z&fill=false',
    'observations?station=NYC&from=2026-07-01&to=2026-07-04T02:00:00Z',
  ]
  const versions = await published(
    world,
    paths,
    [1, 3].map((hour) => JULY_MS + 3 * MS_PER_DAY + hour * MS_PER_HOUR),
  )
  for (const [at, path] of paths.entries())
    assert.equal((await world.ask(`${path}&version=${versions[at]}`)).status, 409)
  await compact(world.lake, 5)
  await canBePinned(world, paths, versions)
})

test('rows of a registered file stay pinnable while later rows of its successor are in the store', async (t) => {
  const world = await startWorld(t)
  const paths = [
    'candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-02&fill=false',
    'observations?station=NYC&from=2026-01-01&to=2026-01-02',
  ]
  const versions = await published(world, paths, [JULY_MS + 3 * MS_PER_DAY + MS_PER_HOUR])
  await canBePinned(world, paths, versions)
})

test('an ended series or station does not prevent pinning a range of all of them', async (t) => {
  const world = await startWorld(t)
  await write([JULY_MS + MS_PER_HOUR], 'KXLOWTNYC', 'BOS')
  await compact(world.lake)
  await write([JULY_MS + 3.5 * MS_PER_DAY])
  await compact(world.lake, 6)
  const paths = [
    'candles?from=2026-07-01&to=2026-07-04&fill=false&format=ndjson',
    'observations?from=2026-07-01&to=2026-07-04&format=csv',
  ]
  for (const path of paths) {
    const plain = await world.ask(path)
    // The server may see a new file before it has read from the store how far the file is complete.
    await eventually(async () => {
      const version = await versionNamed(world, path)
      const pinned = await world.ask(`${path}&version=${version}`)
      return pinned.status === 200 && pinned.body.equals(plain.body)
    }, `${path} can be pinned`)
  }
})

test('the error for a damaged kept file names its kept path', async (t) => {
  const world = await startWorld(t)
  const paths = [
    'candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-01T03:00:00Z&fill=false',
    'observations?station=NYC&from=2026-01-01&to=2026-01-01T03:00:00Z',
  ]
  const versions = await Promise.all(paths.map((path) => versionNamed(world, path)))
  await write([JULY_MS + 5 * MS_PER_HOUR, YEAR_MS + 5 * MS_PER_HOUR])
  await compact(world.lake)
  for (const sha256 of await readdir(keptFilePath(world.lake, ''))) {
    const path = keptFilePath(world.lake, sha256)
    const bytes = await readFile(path)
    bytes[20]! ^= 1
    // A damaged disk changes no time of a file, as writing to it would.
    await writeFile(`${path}.damaged`, bytes)
    await rename(`${path}.damaged`, path)
  }
  for (const [at, path] of paths.entries()) {
    const { status, body } = await world.ask(`${path}&version=${versions[at]}`)
    assert.equal(status, 503, body.toString())
    assert.match(body.toString(), /The lake file \.versions\/files\/[0-9a-f]{64} cannot be read/)
  }
})
