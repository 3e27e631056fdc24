// Entity tags of record responses: they stay valid until the data or a lake file changes, however many series or stations a
// response spans. A response has no tag if its range moves with the clock.

import assert from 'node:assert/strict'
import { utimesSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { storeServices } from '../../server/catalogue/store-services.ts'
import { recordFileName } from '../../shared/lake-layout.ts'
import { candleSet, distribute, SET_SERIES } from '../support/candle-sets.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { distributeObservations, observationSet } from '../support/observation-sets.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { writeCandleFile } from '../support/record-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'

const place = storeOfThisFile()

const SERIES = 'KXHIGHNY'
const MARKET = `${SERIES}-26JUL01-B81.5`
const CANDLES = `candles?market=${MARKET}&from=2026-07-01&to=2026-07-01`
const CLIMATE = 'climate?station=NYC'

interface Got {
  readonly status: number
  readonly etag: string
  readonly cacheControl: string | null
  readonly body: string
}

/** Starts a server over the store of this file and a lake, and returns a function that sends it requests. */
async function startGetter(
  t: TestContext,
  lake: string,
): Promise<(target: string, held?: string) => Promise<Got>> {
  const { postgres } = place.store
  const server = await startColdServer(
    { ...TEST_CONFIG, lake },
    {
      logger: pino({ level: 'silent' }),
      store: storeServices(postgres),
      storeAddress: postgres.address,
    },
  )
  t.after(() => server.close())
  return async (target, held = '') => {
    const headers = held === '' ? {} : { 'if-none-match': held }
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/${target}`, { headers })
    const body = await response.text()
    const { status, headers: answered } = response
    const etag = answered.get('etag') ?? ''
    return { status, etag, cacheControl: answered.get('cache-control'), body }
  }
}

test('record responses are 304 until their data changes', async (t) => {
  const { postgres } = place.store
  const put = (dataset: 'candles' | 'climate', text: string): Promise<void> =>
    postgres.transaction(async (transaction) => {
      await transaction.run({ text, parameters: [] })
      transaction.markChanged(dataset)
    })
  const putCandle = (hour: number): Promise<void> =>
    put(
      'candles',
      `INSERT INTO candles VALUES ('${MARKET}', '${SERIES}-26JUL01', '${SERIES}', 60, '2026-07-01T${hour}:00:00Z',
        4000, 4100, 3900, 4050, 1200, 500)`,
    )
  await putCandle(12)
  const lake = await temporaryDirectory(t)
  const file = await writeCandleFile(lake, SERIES, '2026-06', [])
  const get = await startGetter(t, lake)
  const whole = `${CANDLES}&interval=60`
  const candles = await get(whole)
  const climate = await get(CLIMATE)
  for (const [target, { status, etag }] of [
    [whole, candles],
    [CLIMATE, climate],
  ] as const) {
    assert.equal(status, 200)
    assert.match(etag, /^"[\w-]{22}(?:-gzip)?"$/)
    assert.equal((await get(target, etag)).status, 304, target)
  }
  assert.equal((await get(whole, '*')).status, 304)
  assert.equal((await get(whole.replace(MARKET, 'KXNONE-1'), '*')).status, 404, 'there is no answer')
  assert.notEqual((await get(`${whole}&limit=1`)).etag, candles.etag)
  for (const moving of [
    `candles?market=${MARKET}&interval=60`,
    `${CANDLES.replace('&to=2026-07-01', '')}&interval=60`,
    'observations?from=2026-07-01&station=NYC',
  ]) {
    const { etag, cacheControl } = await get(moving)
    assert.deepEqual({ etag, cacheControl }, { etag: '', cacheControl: 'no-store' }, moving)
  }
  utimesSync(join(lake, file), 1, 1)
  // A file outside the range is checked once a second.
  while ((await get(whole, candles.etag)).etag === candles.etag);
  const afterFile = (await get(whole)).etag
  await putCandle(13)
  let changed = await get(whole, afterFile)
  while (changed.status === 304) changed = await get(whole, afterFile)
  assert.notEqual(changed.etag, afterFile)
  assert.equal((await get(CLIMATE, climate.etag)).status, 304, 'candles do not concern the climate')
})

const DAY = 86_400_000
const JUNE_MS = Date.parse('2026-06-29T00:00:00Z')
const JULY_MS = Date.parse('2026-07-01T00:00:00Z')

/** Answers that span series, stations, months and stores. */
const WIDE = {
  'every series': 'candles?from=2026-06-29&to=2026-07-02&interval=60',
  'one station': 'candles?station=NYC&from=2026-06-29&to=2026-07-02&interval=60&tz=station',
  'June only': 'candles?from=2026-06-29&to=2026-06-30T12:00:00Z&fill=false&interval=60',
  'every station':
    'observations?from=2026-06-29&to=2026-07-02&columns=observed_at,station_code,temp_f,source',
  gaps: 'analysis/climate-gaps?station=NYC&from=2026-06-01&to=2026-06-30',
} as const
type Wide = keyof typeof WIDE

test('a response over several partitions gets a new tag when any of them changes, and never a wrong 304', async (t) => {
  const { postgres } = place.store
  const lake = await temporaryDirectory(t)
  const candles = candleSet(5, JUNE_MS, 4)
  const spread = (seed: number, coldDays: number) => () =>
    distribute(
      seed === 5 ? candles : candleSet(seed, JUNE_MS, 4),
      (_, { fromMs, toMs }) => Math.min(Math.max(JULY_MS + coldDays * DAY, fromMs), toMs),
      {
        lake,
        postgres,
        isDoubled: false,
      },
    )
  await spread(5, 1)()
  await distributeObservations(observationSet(5, JUNE_MS, 90), () => JULY_MS, { lake, postgres })
  const get = await startGetter(t, lake)
  /** The body of each tag seen: a tag with two bodies would cause a wrong 304. */
  const bodies = new Map<string, string>()
  const tags = new Map<Wide, string>()
  const look = async (): Promise<void> => {
    for (const name of Object.keys(WIDE) as Wide[]) {
      const { status, etag, body } = await get(WIDE[name])
      assert.equal(status, 200, `${name}: ${body}`)
      assert.equal(bodies.get(`${name} ${etag}`) ?? body, body, `${name} has two bodies for one tag`)
      bodies.set(`${name} ${etag}`, body)
      tags.set(name, etag)
      assert.equal((await get(WIDE[name], etag)).status, 304, name)
    }
  }
  /** Makes a change and waits until the tags of `changed` differ; those of `kept` must stay the same. */
  const change = async (changed: readonly Wide[], kept: readonly Wide[], make: () => Promise<unknown>) => {
    const before = new Map(tags)
    await make()
    for (const name of changed) {
      const held = before.get(name) ?? ''
      let now = await get(WIDE[name], held)
      while (now.status === 304 || now.etag === held) now = await get(WIDE[name], held)
    }
    await look()
    for (const name of kept) assert.equal(tags.get(name), before.get(name), name)
  }
  await look()
  for (const series of SET_SERIES) {
    const file = join(lake, recordFileName('candles', series, '2026-06'))
    const concerned: Wide[] = [
      'every series',
      'June only',
      ...(series === SERIES ? (['one station'] as const) : []),
    ]
    const others: Wide[] = ['every station', 'gaps', ...(series === SERIES ? [] : (['one station'] as const))]
    await change(concerned, others, async () => utimesSync(file, 1, 1))
  }
  await change(['every series', 'one station'], ['June only', 'every station'], async () => {
    utimesSync(join(lake, recordFileName('candles', SERIES, '2026-07')), 2, 2)
  })
  for (const station of ['NYC', 'MDW']) {
    await change(['every station'], ['every series', 'June only', 'gaps'], async () => {
      utimesSync(join(lake, recordFileName('observations', station, '2026')), 3, 3)
    })
  }
  // All changes of the manifest share one version, so the observations get a new tag as well.
  const all = ['every series', 'one station', 'June only', 'every station'] as const
  await change(all, ['gaps'], spread(5, 0))
  await change(all, ['gaps'], spread(6, 2))
  await change(['every series'], ['one station', 'every station'], async () => {
    await writeCandleFile(
      lake,
      'KXNEW',
      '2026-06',
      candles
        .map((candle) => ({
          ...candle,
          series_ticker: 'KXNEW',
          market_ticker: `KXNEW-A-${candle.market_ticker}`,
        }))
        .filter(({ end_period_ts: endMs }) => endMs < JULY_MS),
    )
  })
  await change(['every series'], ['one station', 'every station'], () =>
    rm(join(lake, recordFileName('candles', 'KXNEW', '2026-06'))),
  )
  await change(['every station'], ['every series', 'one station', 'gaps'], () =>
    postgres.transaction(async (transaction) => {
      await transaction.run({
        text: 'UPDATE observations SET temp_f = -1 WHERE station_code = $1',
        parameters: ['MDW'],
      })
      transaction.markChanged('observations')
    }),
  )
})

test('tags follow the catalogue: a series that moves to another station', async (t) => {
  const { postgres } = place.store
  const lake = await temporaryDirectory(t)
  const get = await startGetter(t, lake)
  const moveTo = (station: string): Promise<void> =>
    postgres.transaction(async (transaction) => {
      await transaction.run({
        text: `INSERT INTO series VALUES ('KXMOVES', 'high', 'x', $1, 'x', 'daily', '[]', true, DEFAULT, NULL, NULL, NULL, now())
          ON CONFLICT (ticker) DO UPDATE SET station_code = $1`,
        parameters: [station],
      })
      transaction.markChanged('series')
    })
  await writeCandleFile(lake, 'KXMOVES', '2026-06', [
    {
      ...candleSet(5, JUNE_MS, 1)[0]!,
      series_ticker: 'KXMOVES',
      event_ticker: 'KXMOVES-A',
      market_ticker: 'KXMOVES-A-1',
      period_interval: 60,
      end_period_ts: JUNE_MS + 3_600_000,
    },
  ])
  const target = 'candles?market=KXMOVES-A-1&from=2026-06-29&to=2026-06-30&interval=60&tz=station'
  for (const [station, label] of [
    ['NYC', '2026-06-28T21:00:00-04:00'],
    ['DEN', '2026-06-28T19:00:00-06:00'],
    ['NYC', '2026-06-28T21:00:00-04:00'],
  ] as const) {
    const { etag: held } = await get(target)
    await moveTo(station)
    // Both threads must notice the change; until then a response may still have the old tag.
    let seen = 0
    while (seen < 8) {
      const { status, etag, body } = await get(target, held)
      if (status === 304 || etag === held) continue
      seen += 1
      if (etag !== '') assert.ok(body.includes(label), body)
    }
  }
})
