// /api/v1/trades against a naive reference: random requests in four formats and by pages, and what it refuses.

import assert from 'node:assert/strict'
import { link, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { stageTradesFile } from '../../server/trades/trades-file.ts'
import { publishTrades } from '../../server/trades/trades-fold.ts'
import { tradesKey } from '../../shared/lake-layout.ts'
import { LOB_SOURCES, type LobSource } from '../../shared/lob-sources.ts'
import { RECORD_LAKE_FILES_MAX } from '../../shared/limits.ts'
import { TRADE_FIELDS } from '../../shared/trade-fields.ts'
import type { Trade } from '../../shared/trades-v1.ts'
import { addDays } from '../../shared/utc-date.ts'
import { withDuckDb } from '../support/duckdb.ts'
import { runs } from '../support/effort.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { recordServerOfThisFile } from '../support/record-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { randomOf } from './random-trades.ts'

const place = storeOfThisFile()
const served = recordServerOfThisFile(place)
const DATES = ['2026-07-01', '2026-07-02', '2026-07-03']
const DAY_NS = 86_400_000_000_000n
/** The existing exchanges; another one has no trades here. */
type Source = Extract<LobSource, 'kalshi' | 'polymarket'>
const MARKETS: Readonly<Record<Source, readonly string[]>> = {
  kalshi: ['KXHIGHNY-26JUL01-B80.5', 'KXHIGHNY-26JUL01-T82', 'KXHIGHNY-26JUL02-T82', 'KXRAIN-26JUL01-T1'],
  polymarket: ['0xaa:11', '0xaa:12', '0xbb:21'],
}
/** A series is what the lake's directory says. */
const seriesOf = (source: Source, market: string): string =>
  source === 'polymarket' ? 'weather' : LOB_SOURCES[source].seriesOf(market)

type Wanted = (trade: Trade) => boolean
type Choice = readonly [Readonly<Record<string, string>>, Wanted]
type Row = Readonly<Record<string, string | number | boolean | null>>

function randomTrade(source: Source, dayNs: bigint, random: () => number, index: number): Trade {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  // Few times, so that the other keys decide the order.
  const ts = dayNs + BigInt(Math.floor(random() * 400)) * 216_000_000_001n
  return {
    ts,
    recvTs: random() < 0.3 ? null : ts + 20_000_123n,
    marketId: pick(MARKETS[source]),
    tradeId: random() < 0.2 ? null : `id-${Math.floor(random() * 1e6)}-${index}`,
    price: Math.floor(random() * 10_001),
    qty: Math.floor(random() * 5_000_000_000),
    aggressor: pick(['bid', 'ask', 'unknown'] as const),
    block: pick([true, false, null]),
    origin: pick(['ws', 'import', 'rest'] as const),
  }
}

function compare(a: Trade, b: Trade): number {
  if (a.ts !== b.ts) return a.ts < b.ts ? -1 : 1
  if (a.marketId !== b.marketId) return a.marketId < b.marketId ? -1 : 1
  if (a.tradeId !== b.tradeId)
    return a.tradeId === null ? 1 : b.tradeId === null || a.tradeId < b.tradeId ? -1 : 1
  return a.price - b.price || a.qty - b.qty
}

async function fill(lake: string, random: () => number): Promise<Record<Source, Trade[]>> {
  const all: Record<Source, Trade[]> = { kalshi: [], polymarket: [] }
  for (const source of ['kalshi', 'polymarket'] as const) {
    for (const date of DATES) {
      const dayNs = BigInt(Date.parse(date)) * 1_000_000n
      const trades = Array.from({ length: 300 }, (_, index) => randomTrade(source, dayNs, random, index))
      trades.sort(compare)
      all[source].push(...trades)
      for (const series of new Set(trades.map(({ marketId }) => seriesOf(source, marketId)))) {
        const own = trades.filter(({ marketId }) => seriesOf(source, marketId) === series)
        await writeTrades(lake, source, series, date, own)
      }
    }
    all[source].sort(compare)
  }
  return all
}

async function writeTrades(
  lake: string,
  source: LobSource,
  series: string,
  date: string,
  trades: readonly Trade[],
): Promise<void> {
  const path = join(lake, tradesKey(source, series, date))
  await mkdir(dirname(path), { recursive: true })
  const temporary = await stageTradesFile(path, trades, { source, series, date, rounded: 0 })
  publishTrades([{ path, status: 'written', temporary }])
}

function rowOf(trade: Trade, columns: readonly string[]): Row {
  const all: Row = {
    ts: String(trade.ts),
    recv_ts: trade.recvTs === null ? null : String(trade.recvTs),
    market_id: trade.marketId,
    trade_id: trade.tradeId,
    price: trade.price / 100,
    qty: trade.qty / 1_000_000,
    aggressor: trade.aggressor,
    block: trade.block,
    origin: trade.origin,
  }
  return Object.fromEntries(columns.map((name) => [name, all[name]!]))
}

const DUCK_TYPES = { integer: 'BIGINT', number: 'DOUBLE', boolean: 'BOOLEAN', string: 'VARCHAR' } as const
const quoted = (json: string): string => json.replaceAll(/(?<="(?:recv_)?ts":)(\d+)/g, '"$1"')

async function rowsOf(
  response: Response,
  format: string,
  root: string,
  columns: readonly string[],
): Promise<Row[]> {
  if (format === 'json') return JSON.parse(quoted(await response.text()))
  if (format === 'ndjson')
    return (await response.text())
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(quoted(line)))
  const path = join(root, `answer.${format}`)
  await writeFile(path, Buffer.from(await response.arrayBuffer()))
  const types = TRADE_FIELDS.filter(({ name }) => columns.includes(name)).map(
    ({ name, type }) => `'${name}': '${DUCK_TYPES[type]}'`,
  )
  const csv = `read_csv('${path}', header = true, types = {${types.join(', ')}}, nullstr = '')`
  const from = format === 'csv' ? csv : `read_parquet('${path}')`
  return await withDuckDb(async (connection) => {
    const reader = await connection.runAndReadAll(`SELECT * FROM ${from}`)
    return reader
      .getRowObjects()
      .map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [
            name,
            typeof value === 'bigint' ? String(value) : value,
          ]),
        ),
      ) as Row[]
  })
}

test('random requests in four formats return the rows of a naive reference', async (t) => {
  const { url, lake } = await served()
  const root = await temporaryDirectory(t)
  const random = randomOf(7)
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  const all = await fill(lake, random)
  const names = TRADE_FIELDS.map(({ name }) => name)
  for (let index = 0; index < runs(40, 2000); index++) {
    const source = pick(['kalshi', 'kalshi', 'polymarket'] as const)
    const market = pick(MARKETS[source])
    const event = market.slice(0, market.lastIndexOf('-'))
    const isOf =
      (name: string): Wanted =>
      (trade) =>
        trade.marketId.startsWith(name)
    const series = seriesOf(source, market)
    const both: readonly Choice[] = [
      [{ market }, (trade) => trade.marketId === market],
      [{ series }, (trade) => seriesOf(source, trade.marketId) === series],
    ]
    const [selector, isWanted] = pick(
      source === 'polymarket'
        ? [...both, [{ market: market.slice(0, 4) }, isOf(`${market.slice(0, 4)}:`)] as const]
        : [
            ...both,
            [{ event }, isOf(`${event}-`)] as const,
            [{ series: event }, isOf(`${event}-`)] as const,
            [{ event, market }, isOf(market)] as const,
          ],
    )
    // Every other range begins and ends at a trade.
    const exact = random() < 0.5 ? pick(all[source]).ts : undefined
    const fromNs =
      exact ?? BigInt(Date.parse(DATES[0]!) + Math.floor(random() * 3 * 86_400) * 1000) * 1_000_000n
    const toNs =
      exact === undefined
        ? fromNs + BigInt(1 + Math.floor(random() * 86_400 * 2)) * 1_000_000_000n
        : pick(all[source].filter(({ ts }) => ts >= exact)).ts
    const date = pick(DATES)
    const dayNs = BigInt(Date.parse(date)) * 1_000_000n
    const isDate = random() < 0.4
    const [start, end] = isDate ? [dayNs, dayNs + DAY_NS] : [fromNs, toNs]
    const text = (ns: bigint): string =>
      new Date(Number(ns / 1_000_000n))
        .toISOString()
        .replace('Z', `${String(ns % 1_000_000n).padStart(6, '0')}Z`)
    const range: Record<string, string> = isDate ? { date } : { from: text(start), to: text(end) }
    const columns = random() < 0.5 ? names : names.filter(() => random() < 0.5)
    const format = pick(['json', 'ndjson', 'csv', 'parquet'])
    const [limit, offset] = [1 + Math.floor(random() * 400), random() < 0.5 ? 0 : Math.floor(random() * 100)]
    if (columns.length === 0) continue
    const parameters = { source, ...selector, ...range, format, limit: String(limit), offset: String(offset) }
    const isBulk = index % 10 === 0 && format !== 'json'
    const query = new URLSearchParams({ ...parameters, columns: columns.join(',') })
    if (isBulk) query.set('limit', '30000')
    const response = await fetch(`${url}/api/v1/trades?${query.toString()}`)
    assert.equal(
      response.status,
      200,
      `${query.toString()}: ${response.status === 200 ? '' : await response.text()}`,
    )
    const wanted = all[source].filter((trade) => isWanted(trade) && trade.ts >= start && trade.ts < end)
    const page = wanted.slice(offset, offset + (isBulk ? 30_000 : limit))
    const rows = await rowsOf(response, format, root, columns)
    // A csv with one empty column has empty lines.
    if (!(format === 'csv' && columns.length === 1))
      assert.deepEqual(
        rows,
        page.map((trade) => rowOf(trade, columns)),
        String(query),
      )
    assert.equal(response.headers.has('link'), offset + page.length < wanted.length, String(query))
  }
})

test('the pages of a response join to the whole', async () => {
  const { url, lake } = await served()
  await fill(lake, randomOf(8))
  const path = '/api/v1/trades?series=KXHIGHNY&from=2026-07-01&to=2026-07-03&format=csv'
  const whole = (await (await fetch(`${url}${path}`)).text()).split('\n').slice(1, -1)
  assert.ok(whole.length > 300)
  const lines: string[] = []
  for (let next: string | undefined = `${path}&limit=97`; next !== undefined;) {
    const response: Response = await fetch(`${url}${next}`)
    lines.push(...(await response.text()).split('\n').slice(1, -1))
    next = /<([^>]+)>/.exec(response.headers.get('link') ?? '')?.[1]
  }
  assert.deepEqual(lines, whole)
})

test('a response keeps its entity tag as long as its files are the same', async () => {
  const { url, lake } = await served()
  await fill(lake, randomOf(9))
  const ask = async (etag = '') =>
    await fetch(`${url}/api/v1/trades?series=KXRAIN&date=2026-07-02`, { headers: { 'if-none-match': etag } })
  const etag = (await ask()).headers.get('etag')!
  assert.equal((await ask(etag)).status, 304)
  await fill(lake, randomOf(10))
  const changed = await ask(etag)
  assert.equal(changed.status, 200)
  assert.notEqual(changed.headers.get('etag'), etag)
})

test('a name in the catalogue or the order books without trades gets an empty response', async () => {
  const { url, lake } = await served()
  await fill(lake, randomOf(12))
  await mkdir(join(lake, 'lob/source=kalshi/series=KXBOOKS'), { recursive: true })
  await place.store.postgres.transaction(async (transaction) => {
    const run = (text: string) => transaction.run({ text, parameters: [] })
    await run(`INSERT INTO series (ticker, measure_type, title, station_code, category, frequency, tags, active, last_seen_at)
      VALUES ('KXQUIET', 'high', '', 'NYC', '', 'daily', '[]', true, now())`)
    await run(`INSERT INTO markets (ticker, event_ticker, series_ticker, status, result, close_time, last_seen_at)
      SELECT e || '-T1', e, split_part(e, '-', 1), 'active', '', now(), now()
        FROM (VALUES ('KXQUIET-26JUL01'), ('KXRAIN-26JUL09')) AS events (e)`)
  })
  const known = [
    'market=KXQUIET-26JUL01-T1',
    'event=KXQUIET-26JUL01',
    'series=KXQUIET-26JUL01',
    'series=KXQUIET',
  ]
  known.push('market=KXRAIN-26JUL09-T1', 'event=KXRAIN-26JUL09', 'series=KXRAIN-26JUL09', 'series=KXBOOKS')
  // Each name is known, and they have no trades in common.
  known.push('series=KXQUIET&market=KXRAIN-26JUL01-T1', 'series=KXBOOKS&event=KXRAIN-26JUL01')
  const unknown = ['market=KXRAIN-26JUL09-T2', 'series=KXRAIN-26JUL10', 'source=polymarket&series=KXQUIET']
  for (const name of [...known, ...unknown]) {
    const statuses = [0, 5].map(async (offset) => {
      const response = await fetch(`${url}/api/v1/trades?${name}&date=2026-07-01&offset=${offset}`)
      await response.text()
      return response.status
    })
    assert.deepEqual(await Promise.all(statuses), unknown.includes(name) ? [404, 404] : [200, 200], name)
  }
})

test('an empty response does not depend on how many other dates the series has', async () => {
  const { url, lake } = await served()
  await fill(lake, randomOf(14))
  const source = join(lake, tradesKey('kalshi', 'KXRAIN', '2026-07-02'))
  for (let day = 0; day <= RECORD_LAKE_FILES_MAX; day++) {
    const path = join(lake, tradesKey('kalshi', 'KXRAIN', addDays('2000-01-01', day)))
    await mkdir(dirname(path), { recursive: true })
    await link(source, path)
  }
  for (const [market, status] of [
    ['KXRAIN-26JUL01-T1', 200],
    ['KXRAIN-26JUL01-T9', 404],
  ] as const) {
    const response = await fetch(`${url}/api/v1/trades?market=${market}&date=1999-01-01`)
    assert.equal(response.status, status, await response.text())
  }
})

test('invalid requests are refused by name', async () => {
  const { url, lake } = await served()
  await fill(lake, randomOf(11))
  const cases: readonly [string, number, RegExp][] = [
    ['date=2026-07-01', 400, /At least one of market, event and series is needed/],
    ['series=KXHIGHNY&date=2026-07-01&from=2026-07-01', 400, /from must not be given together with date/],
    ['series=KXHIGHNY&date=2026-02-30', 400, /date/],
    ['series=KXHIGHNY&from=2026-07-02&to=2026-07-01', 400, /to must not be before from/],
    [
      'series=KXHIGHNY&from=2026-07-01T00:00:00.000000002Z&to=2026-07-01T00:00:00.000000001Z',
      400,
      /to must not be before from/,
    ],
    ['series=KXHIGHNY&from=soon&to=2026-07-01', 400, /from/],
    ['series=KX%2FHIGH&date=2026-07-01', 400, /series must be made of/],
    ['event=a%27b&date=2026-07-01', 400, /event must be made of/],
    ['market=0xaa:11&date=2026-07-01', 400, /market must be a ticker/],
    ['source=polymarket&event=a&date=2026-07-01', 400, /event is not known for source=polymarket/],
    ['source=nyse&series=KXHIGHNY&date=2026-07-01', 400, /source/],
    ['series=KXHIGHNY&date=2026-07-01&limit=0', 400, /limit/],
    ['series=KXHIGHNY&date=2026-07-01&limit=100001', 400, /limit must be a whole number from 1 to/],
    ['series=KXHIGHNY&date=2026-07-01&columns=ts,side', 400, /columns/],
    ['series=KXHIGHNY&date=2026-07-01&colums=ts', 400, /colums/],
    ['series=KXHIGHNY&date=2026-07-01&format=xml', 406, /xml/],
    ['series=KXNONE&date=2026-07-01', 404, /no trades of kalshi series KXNONE/],
    ['market=KXHIGHNY-26JUL01-T99&date=2026-07-01', 404, /no trades of kalshi market KXHIGHNY-26JUL01-T99/],
    ['event=KXHIGHNY-26JUL09&date=2026-07-01', 404, /no trades of kalshi event KXHIGHNY-26JUL09/],
    ['source=polymarket&market=0xcc&date=2026-07-01', 404, /no trades of polymarket market 0xcc/],
  ]
  for (const [query, status, text] of cases) {
    const response = await fetch(`${url}/api/v1/trades?${query}`)
    const body = await response.text()
    assert.equal(response.status, status, `${query}: ${body}`)
    assert.match(body, text, query)
  }
  // A known market or event without trades on a date gets an empty response.
  for (const known of ['market=KXRAIN-26JUL01-T1', 'event=KXRAIN-26JUL01']) {
    const empty = await fetch(`${url}/api/v1/trades?${known}&date=2026-08-01`)
    assert.deepEqual([empty.status, await empty.json()], [200, []])
  }
  const key = tradesKey('kalshi', 'KXRAIN', '2026-07-01')
  await writeFile(join(lake, key), 'no parquet file')
  const damaged = await fetch(`${url}/api/v1/trades?series=KXRAIN&date=2026-07-01`)
  assert.equal(damaged.status, 503)
  assert.ok((await damaged.text()).includes(key))
})
