// Versions of the lake: a pinned response keeps its bytes whatever changes, or is refused with the name of the file; it never has
// other bytes.

import assert from 'node:assert/strict'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { contentIdentity } from '../../shared/content-identity.ts'
import { VERSIONS_DIRECTORY } from '../../shared/lake-pin.ts'
import { EVENT_CLEAR, EVENT_SET } from '../../shared/lob-v1.ts'
import { MS_PER_DAY, MS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { runs } from '../support/effort.ts'
import { runImport } from '../support/import-harness.ts'
import { delta, MS, snapshot, T } from '../support/kalshi-frames.ts'
import { candleAt, JULY_MS, manyCandles, manyObservations } from '../support/moved-rows.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { bookEvent, writeEvents } from '../support/recorded-events.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { readProblem } from '../support/test-server.ts'
import { startVersionWorld, type VersionWorld, versionNamed } from '../support/version-world.ts'

const place = storeOfThisFile()
const DATES = ['2026-06-24', '2026-06-25']
const BOOK = `lob/source=kalshi/series=KXHIGHNY/date=${DATES[0]}/lob.parquet`
const NEVER = new AbortController().signal
const DAYS = 3

/** The requests that are pinned to a version, by dataset. */
const TARGETS = {
  lob: [
    `lob?series=KXHIGHNY&from=${DATES[0]}&to=${DATES[1]}&interval=600&format=csv`,
    `lob?market=${T}&date=${DATES[0]}&interval=3600&format=parquet`,
    `lob/at?market=${T}&ts=${DATES[0]}T20:00:00Z`,
    `lob/receipt?market=${T}&date=${DATES[0]}&interval=600`,
  ],
  trades: [`trades?series=KXHIGHNY&date=${DATES[0]}&format=csv`],
  candles: [
    `candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-02T12:00:00Z`,
    'candles?market=KXHIGHNY-26JUL01-T90&from=2026-07-01&to=2026-07-02&fill=false&format=parquet',
  ],
  observations: [
    'observations?station=NYC&from=2026-07-01&to=2026-07-02&format=csv',
    'observations?from=2026-07-01&to=2026-07-02',
  ],
} as const
type Dataset = keyof typeof TARGETS
const DATASETS = Object.keys(TARGETS) as Dataset[]

function trade(id: number, ms: number): object {
  const terms = {
    yes_price_dollars: '0.4100',
    no_price_dollars: '0.5900',
    count_fp: '3.00',
    taker_side: 'yes',
  }
  const ts = Math.floor(ms / 1000)
  return {
    type: 'trade',
    sid: 2,
    seq: 1,
    msg: { trade_id: `t${id}`, market_ticker: T, ...terms, ts_ms: ms, ts },
  }
}

async function importBooks(lake: string, round: number): Promise<void> {
  const frames = [snapshot(1, { yes: [[40, 9]], ts_ms: MS + round }), trade(round, MS + round)]
  for (let seq = 2; seq < 30; seq++)
    frames.push(
      delta(seq, { price_dollars: `0.${10 + ((seq + round) % 80)}`, ts_ms: MS + round + seq * 3_000_000 }),
    )
  await runImport(lake, 'kalshi', { lines: frames.map((frame) => JSON.stringify(frame)) })
}

async function moveRecords(lake: string, days: number): Promise<void> {
  const { postgres } = place.store
  await postgres.transaction(async (transaction) => {
    await writeCandles(
      transaction,
      manyCandles(days).map((row) => ({ ...row, close: 4_000 + days })),
    )
    const rows = manyObservations(days).map((row) => ({ ...row, wind_speed_kt: days }))
    await writeObservations(
      transaction,
      rows.map((observation) => ({ observation, filled: {} })),
      (_, incoming) => incoming,
    )
  })
  const clock = { nowMs: () => JULY_MS + days * MS_PER_DAY, sleep: async () => {} }
  const { failures } = await compactClosedDays({ postgres, lake, delayMs: 0, clock })
  assert.deepEqual(failures, [])
}

/** Each function changes the lake like its command. */
const CHANGES: readonly ((lake: string, round: number) => Promise<void>)[] = [
  importBooks,
  (lake, round) => moveRecords(lake, DAYS + 1 + (round % 20)),
  async function fold(lake, round) {
    const ts = BigInt(MS + round) * 1_000_000n
    await writeEvents(
      lake,
      [bookEvent(T, ts, EVENT_CLEAR), bookEvent(T, ts, EVENT_SET, 0, 30, 5_000_000 + round)],
      { onExisting: 'replace' },
    )
  },
  async function rebuild(lake) {
    await rm(join(lake, BOOK))
    await foldRawDates({ lake, source: 'kalshi', dates: DATES }, {}, NEVER)
  },
  async function synchronize(lake, round) {
    const other = `${lake}-other`
    const remote = new DirectoryStore(other)
    await mkdir(other, { recursive: true })
    await syncLake({ lake, remote, direction: 'push' })
    await importBooks(other, 100_000 + round)
    const before = await readFile(join(lake, BOOK))
    await syncLake({ lake, remote, direction: 'pull', raw: true })
    assert.ok(!before.equals(await readFile(join(lake, BOOK))), 'the pull has replaced the file')
  },
]

const start = (t: TestContext, lake: string, keepVersionsDays: number): Promise<VersionWorld> =>
  startVersionWorld(t, lake, { postgres: place.store.postgres, keepVersionsDays })

const versionOf = (world: VersionWorld, dataset: Dataset, before?: string): Promise<string> =>
  versionNamed(world, TARGETS[dataset][0], before)

async function freshLake(t: TestContext): Promise<string> {
  const tables = 'TRUNCATE candles, observations, lake_manifest'
  await place.store.postgres.run({ text: tables, parameters: [] })
  const lake = join(await temporaryDirectory(t), 'lake')
  await importBooks(lake, 0)
  await moveRecords(lake, DAYS)
  return lake
}

for (const keepDays of [30, 0]) {
  const outcome =
    keepDays > 0 ? 'the same bytes from kept files' : 'the same bytes or the name of the changed file'
  test(`a version after many changes of the lake: ${outcome}`, async (t) => {
    const world = await start(t, await freshLake(t), keepDays)
    const pinned: { target: string; first: Awaited<ReturnType<VersionWorld['ask']>>; plain: Buffer }[] = []
    for (const dataset of DATASETS) {
      const version = await versionOf(world, dataset)
      for (const path of TARGETS[dataset]) {
        const target = `${path}&version=${version}`
        const [plain, first] = [await world.ask(path), await world.ask(target)]
        assert.equal(first.status, 200, first.body.toString())
        assert.equal(first.version, version)
        assert.ok(first.body.equals(plain.body) || path.includes('receipt'), path)
        pinned.push({ target, first, plain: plain.body })
      }
    }
    const changes = runs(CHANGES.length, 50)
    const gone = new Set<string>()
    let others = 0
    for (let round = 0; round < changes; round++) {
      await CHANGES[round % CHANGES.length]!(world.lake, round + 1)
      for (const { target, first } of pinned) {
        const now = await world.ask(target)
        if (now.status === 410 && keepDays === 0) {
          const { code, detail } = JSON.parse(now.body.toString()) as { code: string; detail: string }
          assert.equal(code, 'version_gone')
          assert.match(
            detail,
            new RegExp(`The file ${target.split(/[/?]/, 1)[0]}/\\S+\\.parquet of version `),
          )
          gone.add(target)
        } else {
          assert.equal(now.status, 200, `${target} ${now.body.toString()}`)
          assert.ok(now.body.equals(first.body), target)
          assert.equal(now.etag === first.etag || keepDays === 0, true, `${target}: the ETag`)
        }
      }
    }
    for (const { target, plain } of pinned)
      others += (await world.ask(target.replace(/&version=.*/, ''))).body.equals(plain) ? 0 : 1
    assert.ok(others > 0, 'some unpinned answers have changed')
    assert.equal(gone.size, keepDays === 0 ? pinned.length : 0)
  })
}

test('versions are listed with their changes, equally on all servers, and are known after a restart', async (t) => {
  const lake = await freshLake(t)
  const world = await start(t, lake, 0)
  const first = await versionOf(world, 'lob')
  await importBooks(lake, 7)
  await versionOf(world, 'lob', first)
  const second = await versionOf(world, 'lob', first)
  for (const path of ['coverage', 'gaps'])
    assert.equal((await world.ask(`${path}?series=KXHIGHNY`)).version, second)
  const copy = join(lake, '..', 'copy')
  await cp(lake, copy, { recursive: true, filter: (path) => !path.endsWith(VERSIONS_DIRECTORY) })
  const other = await start(t, copy, 30)
  assert.equal(await versionOf(other, 'lob'), second)
  const list = async ({ ask }: VersionWorld) =>
    JSON.parse((await ask('versions?dataset=lob&limit=5')).body.toString()) as {
      id: string
      partitions: string[]
      changed: number
    }[]
  const [newest, oldest] = await list(world)
  assert.deepEqual([newest!.id, oldest!.id], [second, first])
  assert.equal(newest!.changed, newest!.partitions.length)
  assert.ok(newest!.partitions.includes(BOOK))
  // A truncated line, as after a crash.
  const path = join(lake, VERSIONS_DIRECTORY, 'lob.ndjson')
  await writeFile(path, `${await readFile(path, 'utf8')}\n{"id":"lob-cut`)
  const again = await start(t, lake, 0)
  assert.deepEqual(
    (await list(again)).map(({ id }) => id),
    [second, first],
  )
  const response = await fetch(`${again.url}/api/v1/${TARGETS.lob[0]}&version=${second}`, {
    headers: { origin: 'http://localhost' },
  })
  assert.equal(response.status, 200, await response.text())
  assert.ok(response.headers.get('access-control-expose-headers')?.includes('Lake-Version'))
  const metrics = await (await fetch(`${again.url}/metrics`)).text()
  assert.match(metrics, /bookcast_http_pinned_total\{path="\/api\/v1\/lob"\} 1\n/)
  const gone = await again.ask(`${TARGETS.lob[0]}&version=${first}`)
  assert.equal(gone.status, 410)
  assert.ok(gone.body.toString().includes(BOOK))
})

test('a response without a file of the version names no version until the server has noticed the removal', async (t) => {
  const world = await start(t, await freshLake(t), 0)
  const before = await versionOf(world, 'lob')
  await rm(join(world.lake, BOOK.replace(DATES[0]!, DATES[1]!)))
  const { status, version } = await world.ask(TARGETS.lob[0])
  assert.deepEqual([status, version], [200, null])
  await versionOf(world, 'lob', before)
})

test('a response without a trades file of the version names no version until the server has noticed the removal', async (t) => {
  const world = await start(t, await freshLake(t), 30)
  const [target] = TARGETS.trades
  const before = await versionOf(world, 'trades')
  const { body } = await world.ask(target)
  await rm(join(world.lake, 'trades/source=kalshi/series=KXHIGHNY'), { recursive: true })
  for (const path of [target, target.replace('series=KXHIGHNY', `market=${T}`)]) {
    const answer = await world.ask(path)
    assert.ok(answer.status === 404 || answer.body.length < body.length, path)
    assert.equal(answer.version, null)
  }
  await versionOf(world, 'trades', before)
  assert.ok((await world.ask(`${target}&version=${before}`)).body.equals(body))
})

test('trades of a series name a version also if the beginning of its name is another series', async (t) => {
  const lake = await freshLake(t)
  const series = 'KXHIGHNY-OLD'
  const lines = [JSON.stringify(trade(500, MS + 500)).replace(T, `${T}9`)]
  await runImport(lake, 'kalshi', { lines }, { series })
  const world = await start(t, lake, 0)
  await versionNamed(world, TARGETS.trades[0].replace('KXHIGHNY', series))
})

test('candles carried forward up to a trade that the version lacks cannot be pinned', async (t) => {
  const world = await start(t, await freshLake(t), 0)
  const path = 'candles?series=KXHIGHNY&from=2026-07-03T20:00:00Z&to=2026-07-03T23:59:00Z'
  const version = `&version=${await versionOf(world, 'candles')}`
  const before = await world.ask(path)
  assert.ok((await world.ask(path + version)).body.equals(before.body))
  // Markets that start in the range have no candle before it.
  const hours = 'candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-02&aggregate=60&tz=America/New_York'
  const [zoned, pinned] = [await world.ask(hours), await world.ask(hours + version)]
  assert.equal(pinned.status, 200, pinned.body.toString())
  assert.ok(pinned.body.equals(zoned.body))
  const later = manyCandles(9).at(-1)!
  await place.store.postgres.transaction(async (transaction) => writeCandles(transaction, [later]))
  const after = await world.ask(path)
  assert.ok(after.body.length > before.body.length, 'the last candle is carried to the end of the range')
  const refused = await world.ask(path + version)
  assert.equal(refused.status, 409)
  assert.match(refused.body.toString(), /"not_pinnable".*KXHIGHNY-26JUL01-T90 are carried forward/)
  const traded = await world.ask(`${path}&fill=false${version}`)
  assert.ok(traded.body.equals((await world.ask(`${path}&fill=false`)).body))
  // There is no bucket to fill.
  const full = 'candles?series=KXHIGHNY&interval=15&from=2026-07-03T20:00:00Z&to=2026-07-03T23:16:00Z'
  assert.ok((await world.ask(full + version)).body.equals((await world.ask(full)).body))
})

test('candles carried forward from a trade that the version lacks cannot be pinned', async (t) => {
  const lake = await freshLake(t)
  const market_ticker = 'KXHIGHNY-26JUL01-B75'
  const write = (endMs: number) =>
    place.store.postgres.transaction(async (transaction) =>
      writeCandles(transaction, [candleAt(endMs, { market_ticker })]),
    )
  await write(JULY_MS + 10 * MS_PER_HOUR)
  await moveRecords(lake, DAYS + 1)
  const world = await start(t, lake, 30)
  const first = await versionOf(world, 'candles')
  const path = `candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-01T12:00:00Z&limit=5000`
  const later = path.replaceAll('07-01', '07-02')
  const before = await world.ask(later)
  await write(JULY_MS - MS_PER_HOUR)
  assert.equal((await world.ask(`${path}&version=${first}`)).status, 409)
  assert.ok((await world.ask(path)).body.length > 0)
  // A late candle for an instant that the version's files cover: no response had it before it moved to a file.
  await write(JULY_MS + 30 * MS_PER_HOUR)
  assert.ok((await world.ask(later)).body.equals(before.body))
  await moveRecords(lake, DAYS + 2)
  await versionOf(world, 'candles', first)
  assert.ok((await world.ask(later)).body.length > before.body.length)
  assert.ok((await world.ask(`${later}&version=${first}`)).body.equals(before.body))
})

test('a request that cannot be pinned is refused with the reason', async (t) => {
  const world = await start(t, await freshLake(t), 0)
  const ids = Object.fromEntries(
    await Promise.all(DATASETS.map(async (dataset) => [dataset, await versionOf(world, dataset)] as const)),
  ) as Record<Dataset, string>
  const today = utcDateOf(Date.now())
  const none = `lob-${contentIdentity([]).slice(0, 12)}`
  const cases: readonly (readonly [string, number, string, RegExp])[] = [
    [`lob?series=KXHIGHNY&date=${DATES[0]}&version=${none}`, 404, 'unknown_version', /knows no version lob-/],
    [`lob?series=KXHIGHNY&date=${DATES[0]}&version=`, 400, 'invalid_parameter', /version must be/],
    [
      `lob?series=KXHIGHNY&date=${DATES[0]}&version=${ids.trades}`,
      400,
      'invalid_parameter',
      /id of .*dataset=lob/,
    ],
    [`trades?series=KXHIGHNY&date=${DATES[0]}&version=x`, 400, 'invalid_parameter', /dataset=trades/],
    [
      `lob?series=KXHIGHNY&date=${today}&version=${ids.lob}`,
      409,
      'not_pinnable',
      /can be pinned to a version from \S+T00:00:00Z on/,
    ],
    [`lob/receipt?series=KXHIGHNY&date=${today}&version=${ids.lob}`, 409, 'not_pinnable', new RegExp(today)],
    [`trades?series=KXHIGHNY&date=${today}&version=${ids.trades}`, 409, 'not_pinnable', new RegExp(today)],
    [
      `candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-30&version=${ids.candles}`,
      409,
      'not_pinnable',
      /from 2026-07-01T00:00:00.000Z until before 2026-07-04T00:00:00.000Z/,
    ],
    [
      `observations?station=NYC&from=2026-07-01&to=2026-07-30&version=${ids.observations}`,
      409,
      'not_pinnable',
      /until before 2026-07-04/,
    ],
    [
      `climate?station=NYC&from=2026-07-01&to=2026-07-02&version=${ids.lob}`,
      400,
      'invalid_parameter',
      /answers from the newest data/,
    ],
    [`series?version=${ids.lob}`, 400, 'invalid_parameter', /answers from the newest data/],
    [`markets?version=${ids.lob}`, 400, 'invalid_parameter', /answers from the newest data/],
    ['versions', 400, 'invalid_parameter', /dataset is missing/],
    ['versions?dataset=climate', 400, 'invalid_parameter', /one of lob, trades, candles, observations/],
    [`lob?series=KXNONE&date=${DATES[0]}&version=${ids.lob}`, 404, 'unknown_series', /KXNONE/],
    [`trades?series=KXNONE&date=${DATES[0]}&version=${ids.trades}`, 404, 'unknown_series', /KXNONE/],
    [
      `candles?series=KXNONE&from=2026-07-01&to=2026-07-02&version=${ids.candles}`,
      404,
      'unknown_series',
      /KXNONE/,
    ],
  ]
  for (const [target, status, code, detail] of cases) {
    const response = await fetch(`${world.url}/api/v1/${target}`)
    const problem = await readProblem(response)
    assert.equal(response.status, status, `${target}: ${problem.detail}`)
    assert.equal(problem.code, code)
    assert.match(problem.detail, detail)
  }
})
