import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createSources } from '../../server/ingest/registry.ts'
import { backfillSource, pollSource } from '../../server/ingest/run-source.ts'
import type { SourceName } from '../../server/ingest/source.ts'
import { UpstreamError } from '../../server/upstream/upstream-error.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import type { TimeWindow } from '../../server/storage/cursor-store.ts'
import { migrate, readMigrations } from '../../server/storage/migrations.ts'
import { runs } from '../support/effort.ts'
import {
  type Answer,
  type AskedRequest,
  send,
  stall,
  startRoutedUpstream,
} from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { randomExchange, type RandomExchange, STORED_CANDLES } from '../support/random-exchange.ts'
import { worldConfig } from '../support/upstream-world.ts'

const SEED = Number(process.env['BACKFILL_SEED'] ?? 2026)
const SEQUENCES = Number(process.env['BACKFILL_SEQUENCES'] ?? 2)
const RUNS = runs(5, 50)
const DAY_MS = 86_400_000
const FIRST_MS = Date.parse('2026-09-10T00:00:00Z')
const DAYS = 18
const LAST_MS = FIRST_MS + DAYS * DAY_MS
/** Everything: markets open up to three days before the first date, and trade on after the last. */
const ALL: TimeWindow = { fromMs: FIRST_MS - 4 * DAY_MS, toMs: LAST_MS + 25 * DAY_MS }
/** Every window of it is settled. */
const END_MS = ALL.toMs + 4 * DAY_MS
const BOTH = ['exchange-catalogue', 'exchange-candles'] as const

const file = storeOfThisFile()

/** An exchange, a store, and faults in front of the exchange. */
interface Bench {
  readonly exchange: RandomExchange
  readonly asked: readonly AskedRequest[]
  readonly baseUrl: string
  fault: () => Answer | undefined
}

async function startBench(t: TestContext, random: SeededRandom): Promise<Bench> {
  const exchange = randomExchange(random, FIRST_MS, LAST_MS)
  const state: Pick<Bench, 'fault'> = { fault: () => undefined }
  const upstream = await startRoutedUpstream(
    t,
    (request) => state.fault() ?? exchange.answer(request, '/kalshi') ?? send(404, `no route ${request.url}`),
  )
  return Object.assign(state, { exchange, asked: upstream.asked, baseUrl: upstream.baseUrl })
}

interface Run {
  readonly names: readonly SourceName[]
  /** Null means the repeated polls of a collecting process. */
  readonly span: TimeWindow | null
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

/** A run of a command: its sources one after the other, with new clients. Returns the number of errors. */
async function run(bench: Bench, { names, span, signal, timeoutMs }: Run): Promise<number> {
  const clock = { nowMs: () => bench.exchange.nowMs, sleep: async () => {} }
  const sources = createSources(
    { ...worldConfig(bench.baseUrl), kalshiRequestsPerSecond: 1_000 },
    { names, http: { clock, random: () => 0, timeoutMs } },
  )
  let errorCount = 0
  try {
    for (const source of sources) {
      const options = { postgres: file.store.postgres, clock, signal }
      const outcome =
        span === null ? await pollSource(source, options) : await backfillSource(source, span, options)
      errorCount += outcome.errorCount
    }
  } catch (error) {
    // A list that fails before the first step, or no catalogue at all.
    const isKnown = error instanceof UpstreamError || /run exchange-catalogue first/.test(String(error))
    if (!signal.aborted && !isKnown) throw error
    errorCount += 1
  } finally {
    await Promise.all(sources.map((source) => source.close()))
  }
  return errorCount
}

function cleanRun(bench: Bench, names: readonly SourceName[], span: TimeWindow | null): Promise<number> {
  bench.fault = () => undefined
  return run(bench, { names, span, signal: new AbortController().signal, timeoutMs: 20_000 })
}

/** A run that is killed, or whose exchange fails in bursts, or both. */
async function troubledRun(
  bench: Bench,
  names: readonly SourceName[],
  span: TimeWindow | null,
  random: SeededRandom,
): Promise<void> {
  const controller = new AbortController()
  const killAt = random.isWithin(0.5) ? 1 + random.below(60) : Infinity
  const rate = random.pick([0, 0.05, 0.3])
  const answers = [send(500, 'busy'), send(502), send(200, '<html>'), stall(), send(429), send(400)] as const
  let count = 0
  let left = 0
  let answer: Answer = answers[0]
  bench.fault = () => {
    count += 1
    if (count >= killAt) controller.abort(new Error('killed'))
    if (left === 0 && random.isWithin(rate)) {
      left = 1 + random.below(12)
      answer = random.pick(answers)
    }
    if (left === 0) return undefined
    left -= 1
    return answer
  }
  await run(bench, { names, span, signal: controller.signal, timeoutMs: 40 })
}

async function stored(): Promise<Set<string>> {
  const rows = await file.store.postgres.run<{ readonly text: string }>({
    text: STORED_CANDLES,
    parameters: [],
  })
  return new Set(rows.map(({ text }) => text))
}

/** The store of a version that marked windows complete for markets it did not know. */
async function oldStore(random: SeededRandom, exchange: RandomExchange): Promise<void> {
  const { postgres } = file.store
  const command = (text: string): Promise<unknown> => postgres.run({ text, parameters: [] })
  await command('DROP SCHEMA public CASCADE')
  await command('CREATE SCHEMA public')
  await migrate(postgres, (await readMigrations()).slice(0, 5))
  for (const series of exchange.series) {
    for (const source of BOTH) {
      const span = random.isWithin(0.5) ? ALL : randomSpan(random)
      const [from, to] = [new Date(span.fromMs).toISOString(), new Date(span.toMs).toISOString()]
      await command(
        `INSERT INTO ingest_cursors (source, scope, completed) VALUES ('${source}', '${series}', '{[${from},${to})}')`,
      )
    }
  }
  await file.store.migrate()
}

function randomSpan(random: SeededRandom): TimeWindow {
  const from = random.below(DAYS + 4) - 4
  const days = 1 + random.below(random.pick([2, 5, DAYS]))
  return { fromMs: FIRST_MS + from * DAY_MS, toMs: FIRST_MS + (from + days) * DAY_MS }
}

interface Mark {
  readonly ticker: string
  readonly from_ts: number
  readonly to_ts: number
}

/** Candles of the markets without a due poll after their settlement. */
async function completedWindows({ exchange }: Bench): Promise<readonly Mark[]> {
  const marks = await file.store.postgres.run<Mark & { readonly candles_look: number }>({
    text: `SELECT ticker, candles_look, lower(part) AS from_ts, upper(part) AS to_ts
      FROM markets, unnest(candles_completed) AS part`,
    parameters: [],
  })
  const settled = new Map(exchange.markets.map(({ ticker, settledMs }) => [ticker, settledMs]))
  return marks.filter(({ ticker, candles_look }) => {
    const settledMs = settled.get(ticker) ?? 0
    return candles_look >= [1, 3, 7].filter((days) => settledMs + days * DAY_MS <= exchange.nowMs).length
  })
}

/** Requests for candles whose ends are in a window that was already complete. */
function askedTwice(requests: readonly AskedRequest[], marks: readonly Mark[]): readonly string[] {
  const urls = requests.map(({ url }) => url)
  return urls.filter((url) => {
    const ticker = /\/markets\/([^/]+)\/candlesticks\?/.exec(url)?.[1]
    const query = new URL(url, 'http://local').searchParams
    const [startMs, endMs] = [Number(query.get('start_ts')) * 1000, Number(query.get('end_ts')) * 1000]
    return marks.some((mark) => mark.ticker === ticker && mark.from_ts < endMs && mark.to_ts >= startMs)
  })
}

function lacking(bench: Bench, { fromMs, toMs }: TimeWindow, found: ReadonlySet<string>): readonly string[] {
  return [...bench.exchange.candles(fromMs, toMs)].filter((candle) => !found.has(candle))
}

async function oneRandomRun(bench: Bench, random: SeededRandom, pollRate: number): Promise<void> {
  const names = random.pick([BOTH, BOTH, ['exchange-candles'], ['exchange-catalogue']] as const)
  const isPoll = random.isWithin(pollRate)
  const span = isPoll ? null : randomSpan(random)
  const marks = await completedWindows(bench)
  const before = bench.asked.length
  if (random.isWithin(0.6)) {
    await troubledRun(bench, names, span, random)
  } else {
    const errorCount = await cleanRun(bench, names, span)
    if (names === BOTH) assert.equal(errorCount, 0)
    if (names === BOTH && span !== null) assert.deepEqual(lacking(bench, span, await stored()), [])
  }
  if (span !== null) assert.deepEqual(askedTwice(bench.asked.slice(before), marks), [])
}

test('a run of candles alone reports dates that the catalogue lacks, and completes them once it has them', async (t) => {
  const bench = await startBench(t, new SeededRandom(SEED, 'alone'))
  bench.exchange.nowMs = END_MS
  await file.store.postgres.run({ text: 'TRUNCATE series, markets, candles, ingest_cursors', parameters: [] })
  const span = { fromMs: FIRST_MS, toMs: LAST_MS }
  assert.equal(await cleanRun(bench, ['exchange-candles'], span), 1)
  // A live store knows the markets that trade now, and none that have settled.
  await cleanRun(bench, ['exchange-catalogue'], null)
  assert.equal(await cleanRun(bench, ['exchange-candles'], span), bench.exchange.series.length)
  assert.equal(await cleanRun(bench, BOTH, span), 0)
  assert.deepEqual(lacking(bench, span, await stored()), [])
})

for (let sequence = 0; sequence < SEQUENCES; sequence += 1) {
  test(`${RUNS} random runs end with the candles of one clean run, sequence ${SEED}/${sequence}`, async (t) => {
    const random = new SeededRandom(SEED, `backfill ${sequence}`)
    const bench = await startBench(t, random)
    const { exchange } = bench
    await oldStore(random, exchange)
    // Some stores are updated by polls, some are filled long after.
    const pollRate = random.pick([0, 0, 0.3])
    exchange.nowMs = FIRST_MS + random.pick([1, DAYS, 40]) * DAY_MS
    for (let index = 0; index < RUNS; index += 1) {
      await oneRandomRun(bench, random, pollRate)
      const stepMs = random.pick([0, 0, 0, 3_600_000, 7 * 3_600_000, DAY_MS, 6 * DAY_MS])
      exchange.nowMs = Math.min(exchange.nowMs + stepMs, END_MS)
    }
    exchange.nowMs = END_MS
    const marks = await completedWindows(bench)
    const before = bench.asked.length
    assert.equal(await cleanRun(bench, BOTH, ALL), 0)
    assert.deepEqual(askedTwice(bench.asked.slice(before), marks), [])
    const found = await stored()
    assert.deepEqual([...found].toSorted(), [...exchange.candles(ALL.fromMs, ALL.toMs)].toSorted())
    const done = bench.asked.length
    assert.equal(await cleanRun(bench, BOTH, ALL), 0)
    assert.equal(bench.asked.length, done, 'what is complete is asked for again')
    t.diagnostic(`${found.size} candles, ${bench.asked.length} requests`)
  })
}
