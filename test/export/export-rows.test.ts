// The rows of an export are those of the HTTP responses for the same dates.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { cp, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { createGunzip } from 'node:zlib'
import { pino } from 'pino'
import { storeServices } from '../../server/catalogue/store-services.ts'
import { finishExport, SUMS_KEY } from '../../server/export/export-manifest.ts'
import { digestOf, readText } from '../../server/export/export-target.ts'
import { openExportTarget } from '../../server/export/open-target.ts'
import type { PartThreads } from '../../server/export/part-threads.ts'
import { runPart } from '../../server/export/run-part.ts'
import { benchmarkMarketIds, generateBenchmarkLake } from '../../server/sample-data/benchmark-lake.ts'
import { sampleRecords } from '../../server/sample-data/sample-records.ts'
import { loadSampleRecords } from '../../server/sample-data/sample-store.ts'
import { writeMarkets } from '../../server/storage/catalogue-store.ts'
import { EVENT_CLEAR, EVENT_SET } from '../../shared/lob-v1.ts'
import { addDays, utcDatesBetween } from '../../shared/utc-date.ts'
import { candleSet, distribute } from '../support/candle-sets.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { IS_WHOLE_EFFORT } from '../support/effort.ts'
import {
  exported,
  exportedRows,
  exportThreads,
  NEVER,
  planned,
  type PlanWishes,
  rowsOf,
} from '../support/exports.ts'
import { distributeObservations, observationSet } from '../support/observation-sets.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { bookEvent, HOUR } from '../support/recorded-events.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'
import { DATES, dateStartNs, SERIES, writeLake } from '../support/truth-lakes.ts'

const place = storeOfThisFile()
const REPORTS = observationSet(5, Date.parse('2025-12-28T00:00:00Z'), 9 * 24)
/** Later reports are in the store. */
const REPORTS_CUT_MS = Date.parse('2026-01-03T00:00:00Z')
const FORMATS = ['parquet', 'ndjson', 'csv'] as const

async function serve(t: TestContext, lake: string): Promise<string> {
  const { postgres } = place.store
  const dependencies = { store: storeServices(postgres), storeAddress: postgres.address }
  const logger = pino({ level: 'silent' })
  const server = await startColdServer({ ...TEST_CONFIG, lake }, { logger, ...dependencies })
  t.after(() => server.close())
  return `http://127.0.0.1:${server.port}/api/v1`
}

/** A server and the threads of exports over one lake that has all datasets. */
async function makeWorld(t: TestContext) {
  const lake = await temporaryDirectory(t)
  const { postgres } = place.store
  await cp(SAMPLE_LAKE, lake, { recursive: true })
  await loadSampleRecords(postgres)
  const candles = candleSet(3, Date.parse('2026-06-28T00:00:00Z'), 6)
  await distribute(candles, (_, { toMs }) => toMs, { lake, postgres, isDoubled: false })
  await distributeObservations(REPORTS, () => REPORTS_CUT_MS, { lake, postgres })
  return { url: await serve(t, lake), threads: exportThreads(t, lake) }
}

/** The rows of the responses to one request for each series or station. */
async function servedRows(url: string, wishes: PlanWishes, scopeName: string): Promise<string[]> {
  const rows: string[] = []
  for (const scope of wishes.scopes ?? []) {
    const query = new URLSearchParams({ ...wishes.parameters, ...wishes.range, [scopeName]: scope })
    if (wishes.dataset !== 'lob') query.set('limit', '500000')
    const response = await fetch(`${url}/${wishes.dataset}?${query.toString()}`)
    const body = Buffer.from(await response.arrayBuffer())
    assert.equal(response.status, 200, body.toString('utf8', 0, 400))
    rows.push(...(await rowsOf(wishes.parameters['format']!, body)))
  }
  return rows
}

/** Plans and makes an export in each format and compares it with the responses. */
async function compare(
  t: TestContext,
  { url, threads }: { readonly url: string; readonly threads: PartThreads },
  wishes: Omit<PlanWishes, 'target'>,
  scopeName = 'series',
) {
  const store = place.store.postgres
  const plans = []
  for (const format of FORMATS) {
    const parameters = { ...wishes.parameters, format }
    const target = await temporaryDirectory(t)
    const plan = await planned(threads, { ...wishes, store, parameters, target })
    const manifest = await exported(threads, plan)
    const rows = await exportedRows(plan)
    assert.deepEqual(rows, await servedRows(url, { ...wishes, parameters, target }, scopeName))
    assert.ok(rows.length > 100)
    assert.equal(manifest.rows, rows.length)
    for (const { key, bytes, sha256 } of manifest.parts) {
      const content = await readFile(join(target, key))
      assert.deepEqual([content.length, createHash('sha256').update(content).digest('hex')], [bytes, sha256])
    }
    plans.push({ plan, manifest })
  }
  return plans
}

test('the rows of an export are those of the responses for the same dates', async (t) => {
  const world = await makeWorld(t)
  await t.test(
    'parts of order books equal the responses of /lob, including close times of markets',
    async () => {
      const scopes = ['KXHIGHNY', 'KXHIGHCHI']
      const range = { from: '2026-07-01', to: '2026-07-04' }
      const parameters = { interval: '300', levels: '2', columns: 'ts,market_id,bids,mid', nulls: 'true' }
      const [first] = await compare(t, world, { dataset: 'lob', scopes, range, parameters })
      assert.ok(first)
      const { plan, manifest } = first
      assert.deepEqual(
        plan.parts.map(({ scope, period }) => `${scope} ${period}`),
        scopes.flatMap((scope) => ['01', '02', '03'].map((day) => `${scope} 2026-07-${day}`)),
      )
      assert.deepEqual(
        plan.left_out,
        scopes.map((scope) => ({ scope, from: '2026-07-04', to: '2026-07-04', reason: 'no_file' })),
      )
      const { key, first_ts, last_ts, known_s, gap_s } = manifest.parts[1]!
      assert.match(key, /^lob\/source=kalshi\/series=KXHIGHNY\/date=2026-07-02\/lob-[0-9a-f]{16}\.parquet$/)
      assert.deepEqual([first_ts, last_ts], ['2026-07-02T00:00:00.000Z', '2026-07-02T23:55:00.000Z'])
      assert.deepEqual([known_s, gap_s], [86_400, 0])
      // Without a store no close time is known: the plan states that no store was used, and its parts have other names.
      const target = await temporaryDirectory(t)
      const blind = await planned(world.threads, { dataset: 'lob', scopes, range, parameters, target })
      assert.deepEqual([blind.store_asked, plan.store_asked], [false, true])
      assert.ok(blind.rows > plan.rows)
    },
  )

  await t.test('parts of trades equal the responses of /trades, one date of a series each', async () => {
    const scopes = ['KXHIGHNY']
    const range = { from: '2026-06-30', to: '2026-07-03' }
    const made = await compare(t, world, { dataset: 'trades', scopes, range, parameters: {} })
    const [first] = await compare(t, world, {
      dataset: 'trades',
      scopes,
      range,
      parameters: { source: 'kalshi', columns: 'price,qty,trade_id' },
    })
    for (const { plan, manifest } of [...made, first!]) {
      assert.deepEqual(
        plan.parts.map(({ period, files }) => [period, files.map(({ path }) => path)]),
        ['01', '02', '03'].map((day) => [
          `2026-07-${day}`,
          [`trades/source=kalshi/series=KXHIGHNY/date=2026-07-${day}/trades.parquet`],
        ]),
      )
      assert.deepEqual(plan.left_out, [
        { scope: 'KXHIGHNY', from: '2026-06-30', to: '2026-06-30', reason: 'no_file' },
      ])
      for (const { key, first_ts, last_ts } of manifest.parts) {
        const [, date, digest] =
          /^trades\/source=kalshi\/series=KXHIGHNY\/date=(.+)\/trades-(\w+)\./.exec(key) ?? []
        assert.ok(digest !== undefined && first_ts !== null && last_ts !== null && first_ts < last_ts, key)
        assert.deepEqual([first_ts.slice(0, 10), last_ts.slice(0, 10)], [date, date])
      }
    }
  })

  await t.test('parts of candles equal the responses of /candles, across the end of a month', async () => {
    const scopes = ['KXHIGHNY', 'KXHIGHCHI']
    // The candle that ends at the end of the range is in the next month's file.
    for (const [range, parameters, months] of [
      [{ from: '2026-06-29', to: '2026-06-30' }, { interval: '1' }, ['2026-06', '2026-07']],
      [{ from: '2026-06-01', to: '2026-07-31' }, { interval: '15' }, ['2026-06', '2026-07']],
    ] as const) {
      const made = await compare(t, world, { dataset: 'candles', scopes, range, parameters })
      const found = new Set(made.flatMap(({ plan }) => plan.parts.map(({ period }) => period)))
      for (const month of found) assert.ok((months as readonly string[]).includes(month))
      const { first_ts, last_ts } = made[0]!.manifest.parts[0]!
      assert.ok(first_ts !== null && last_ts !== null && first_ts < last_ts && first_ts >= range.from)
    }
  })

  await t.test(
    'an earlier month that was added to the lake after the plan is named, because aggregates read it',
    async () => {
      const { threads } = world
      const month = join(threads.lake, 'candles', 'series=KXHIGHNY', 'month=2026-06')
      await rename(month, `${month}-away`)
      const plan = await planned(threads, {
        dataset: 'candles',
        scopes: ['KXHIGHNY'],
        range: { from: '2026-07-01', to: '2026-07-02' },
        parameters: { interval: '1', aggregate: '60', format: 'csv' },
        target: await temporaryDirectory(t),
      })
      await rename(`${month}-away`, month)
      await assert.rejects(exported(threads, plan), /month=2026-06\/candles.parquet was added since the plan/)
    },
  )

  await t.test(
    'parts of observations equal the responses of /observations, and rows of the store are named',
    async () => {
      const wishes = { dataset: 'observations', scopes: ['NYC', 'MDW'] } as const
      const parameters = { units: 'metric', columns: 'observed_at,station_code,temp_f,sky_cover_1' }
      const range = { from: '2025-12-29', to: '2026-01-02' }
      const [first] = await compare(t, world, { ...wishes, range, parameters }, 'station')
      assert.equal(first?.plan.parts.length, 4)
      assert.deepEqual(first.plan.left_out, [])
      const late = await planned(world.threads, {
        ...wishes,
        range: { ...range, to: '2026-02-01' },
        parameters: { format: 'csv' },
        target: await temporaryDirectory(t),
        store: place.store.postgres,
      })
      const hot = REPORTS.filter(
        (row) => row.station_code === 'NYC' && row.observed_at >= REPORTS_CUT_MS,
      ).length
      assert.deepEqual(late.left_out[0], {
        scope: 'NYC',
        from: '2026',
        to: '2026',
        reason: 'rows_in_store',
        rows: hot,
      })
      assert.ok(hot > 0)
    },
  )
})

test('open dates and dates without rows are left out', async (t) => {
  const lake = await temporaryDirectory(t)
  await cp(SAMPLE_LAKE, lake, { recursive: true })
  const plan = await planned(exportThreads(t, lake), {
    dataset: 'lob',
    scopes: null,
    range: { from: '2026-07-01', to: '2026-07-05' },
    parameters: { interval: '3600', format: 'csv' },
    target: await temporaryDirectory(t),
    nowMs: Date.parse('2026-07-03T12:00:00Z'),
  })
  assert.deepEqual(
    new Set(plan.parts.map(({ scope }) => scope)),
    new Set(['KXHIGHCHI', 'KXHIGHDEN', 'KXHIGHNY']),
  )
  assert.ok(plan.parts.every(({ period }) => period <= '2026-07-02'))
  assert.deepEqual(
    plan.left_out.map(({ from, to, reason }) => [from, to, reason]),
    Array.from({ length: 3 }, () => ['2026-07-03', '2026-07-05', 'open_date']),
  )
})

const LONG_FIRST_DATE = '2025-01-01'
const LONG_SERIES = ['KXHIGHCHI', 'KXHIGHDEN', 'KXHIGHNY']
/** Five markets have 432,000 rows a date at interval 1; a response has at most 500,000. */
const LONG_MARKETS = 5
/** Otherwise the server would compress responses that are only hashed. */
const PLAIN = { 'accept-encoding': 'identity' }

/** Three series. The quietest market of each closes during the range and is not quoted on later dates. */
async function makeLongWorld(t: TestContext, days: number) {
  const lake = await temporaryDirectory(t)
  const { postgres } = place.store
  const closing = addDays(LONG_FIRST_DATE, Math.floor(days / 2))
  for (const [seed, series] of LONG_SERIES.entries())
    for (const date of utcDatesBetween(LONG_FIRST_DATE, addDays(LONG_FIRST_DATE, days - 1))) {
      const markets = date <= closing ? LONG_MARKETS : LONG_MARKETS - 1
      await generateBenchmarkLake({ lake, series, date, markets, deltas: 2_000, seed })
    }
  await loadSampleRecords(postgres)
  const [like] = sampleRecords(1).markets
  const markets = LONG_SERIES.map((series) => ({
    ...like!,
    ticker: benchmarkMarketIds(series, LONG_MARKETS).at(-1)!,
    event_ticker: `${series}-DAY`,
    series_ticker: series,
    close_time: Date.parse(`${closing}T17:00:10Z`),
  }))
  await postgres.transaction((transaction) => writeMarkets(transaction, markets))
  return { url: await serve(t, lake), threads: exportThreads(t, lake) }
}

async function sha256Of(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

/** Makes an export in a directory and in a bucket, and compares the bytes of both with the responses. */
async function compareBytes(
  t: TestContext,
  { url, threads }: { readonly url: string; readonly threads: PartThreads },
  days: number,
  parameters: Readonly<Record<string, string>>,
  endpoint: string,
): Promise<void> {
  const target = await temporaryDirectory(t)
  const range = { from: LONG_FIRST_DATE, to: addDays(LONG_FIRST_DATE, days - 1) }
  const store = place.store.postgres
  const plan = await planned(threads, {
    dataset: 'lob',
    scopes: LONG_SERIES,
    range,
    parameters,
    target,
    store,
  })
  assert.equal(plan.parts.length, days * LONG_SERIES.length)
  const { rows, bytes } = await exported(threads, plan)
  const bucket = openExportTarget(`s3://${BUCKET}/${Object.values(parameters).join('-')}`, { endpoint })
  for (const part of plan.parts) {
    const query = new URLSearchParams({ ...parameters, series: part.scope, date: part.period })
    const answer = await fetch(`${url}/lob?${query.toString()}`, { headers: PLAIN })
    assert.equal(answer.status, 200)
    const path = join(target, part.key)
    const file = createReadStream(path)
    const made = part.key.endsWith('.gz') ? file.pipe(createGunzip()) : file
    const [answered, exportedSum] = await Promise.all([sha256Of(answer.body!), sha256Of(made)])
    assert.equal(exportedSum, answered, part.key)
    const { sha256 } = await runPart(plan, part, { threads, target: bucket }, NEVER)
    assert.equal((await digestOf(bucket, part.key, NEVER))?.sha256, sha256, part.key)
    // A month at interval 1 as csv is too large to keep two copies of it on a disk.
    await rm(path)
  }
  await finishExport(plan, bucket, NEVER)
  const sums = await readFile(join(target, SUMS_KEY), 'utf8')
  assert.equal(await readText(bucket, SUMS_KEY, NEVER), sums)
  bucket.close()
  await rm(target, { recursive: true })
  const digest = createHash('sha256').update(sums).digest('hex')
  t.diagnostic(`${JSON.stringify(parameters)}: ${rows} rows, ${bytes} bytes, SHA256SUMS ${digest}`)
}

/** With the whole effort each case is a separate test, so that --test-name-pattern can select one of the long ones. */
const TOGETHER = IS_WHOLE_EFFORT ? FORMATS.map((format) => [format]) : [FORMATS]

for (const [interval, days, skip] of [
  [60, IS_WHOLE_EFFORT ? 365 : 1, false],
  [1, 31, IS_WHOLE_EFFORT ? false : 'with full effort'],
] as const)
  for (const formats of TOGETHER)
    test(
      `parts of ${days} dates at interval ${interval} have the bytes of the answers, also in a bucket: ${formats.join(', ')}`,
      { skip },
      async (t) => {
        const world = await makeLongWorld(t, days)
        const { endpoint } = await startS3Server(t)
        for (const format of formats)
          await compareBytes(t, world, days, { interval: String(interval), levels: '10', format }, endpoint)
      },
    )

test('order books of another writer are exported also if the date before has no file', async (t) => {
  const lake = await temporaryDirectory(t)
  const events = DATES.flatMap((date) => [
    { ...bookEvent('M0', dateStartNs(date), EVENT_CLEAR) },
    { ...bookEvent('M0', dateStartNs(date) + 20n * HOUR, EVENT_SET, 0, 4_000, 5_000_000) },
  ])
  const file = { codec: 'zstd', isNullable: false, hasDictionary: true, hasStatistics: true } as const
  const shape = { layout: 'byHour', hasKeyframes: false } as const
  writeLake(lake, events, { ...shape, file: { ...file, rowGroupRows: 64, keyValues: {} } })
  const world = { url: await serve(t, lake), threads: exportThreads(t, lake) }
  const range = { from: DATES[0]!, to: DATES[1]! }
  const wishes = { scopes: [SERIES], range, parameters: { interval: '300' } }
  const [first] = await compare(t, world, { dataset: 'lob', ...wishes })
  assert.deepEqual(
    first!.plan.parts.map(({ files }) => files.length),
    [1, 2],
  )
})
