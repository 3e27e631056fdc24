// Entity tags and Cache-Control of order-book responses, and the effect of the catalogue on them, with the real worker.

import assert from 'node:assert/strict'
import { cpSync, readdirSync, rmSync, utimesSync, writeFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { sha256Hex } from '../../server/http/api-keys.ts'
import { isFinalAnswer } from '../../server/endpoints/lob.ts'
import { EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { MemoryStore, marketRow, seriesRow } from '../support/memory-store.ts'
import { bookEvent, DAY_START, HOUR, writeEvents } from '../support/recorded-events.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { readProblem } from '../support/test-server.ts'

const OLD = new Date(Date.now() - 30 * MS_PER_DAY)
const MARKET = 'KXHIGHNY-26JUL01-B81.5'

/** A copy of the sample lake whose files are a month old. */
async function oldLake(t: TestContext): Promise<string> {
  const lake = join(await temporaryDirectory(t), 'lake')
  cpSync(SAMPLE_LAKE, lake, { recursive: true })
  for (const name of readdirSync(lake, { recursive: true, encoding: 'utf8' }))
    utimesSync(join(lake, name), OLD, OLD)
  return lake
}

async function startOldLake(t: TestContext, store?: MemoryStore) {
  const lake = await oldLake(t)
  const { url } = await startSampleServer(t, { lake }, store)
  const get = (query: string, headers: Record<string, string> = {}) =>
    fetch(`${url}/api/v1/lob?${query}`, { headers: { 'accept-encoding': 'identity', ...headers } })
  return { lake, url, get }
}

const DAY = 'series=KXHIGHNY&date=2026-07-02&interval=3600&levels=2'

test('a response that the client holds is 304 until the contents of a file change', async (t) => {
  const { lake, get } = await startOldLake(t)
  const first = await get(DAY)
  const etag = first.headers.get('etag') ?? ''
  assert.match(etag, /^"[\w-]{22}"$/)
  const bytes = await first.text()
  for (const held of [etag, `W/${etag}`, `"x", ${etag.slice(0, -1)}-gzip"`, '*']) {
    const again = await get(DAY, { 'if-none-match': held })
    assert.equal(again.status, 304, held)
    assert.equal(again.headers.get('cache-control'), first.headers.get('cache-control'))
  }
  for (const other of [
    `${DAY}&format=csv`,
    `${DAY}&hour=4`,
    DAY.replace('07-02', '07-01'),
    DAY.replace('levels=2', 'levels=3'),
  ])
    assert.equal((await get(other, { 'if-none-match': etag })).status, 200, other)
  const path = join(lake, 'lob/source=kalshi/series=KXHIGHNY/date=2026-07-02/lob.parquet')
  writeFileSync(path, readFileSync(path))
  assert.equal((await get(DAY, { 'if-none-match': etag })).status, 304, 'written again')
  rmSync(path)
  await writeEvents(lake, [bookEvent(MARKET, DAY_START + BigInt(MS_PER_DAY) * 1_000_000n, 0)])
  const other = await get(DAY, { 'if-none-match': etag })
  assert.equal(other.status, 200)
  assert.notEqual(other.headers.get('etag'), etag)
  assert.notEqual(await other.text(), bytes)
})

test('an answer that broke off at one server is resumed at another with a copy of the files', async (t) => {
  const [one, other] = [await startOldLake(t), await startOldLake(t)]
  for (const query of [`${DAY}&format=csv`, `${DAY}&format=ndjson&on_gap=skip`]) {
    const whole = await one.get(query)
    const text = await whole.text()
    const rest = await other.get(query, {
      range: 'bytes=1000-',
      'if-range': whole.headers.get('etag') ?? '',
    })
    assert.equal(rest.status, 206)
    assert.equal(rest.headers.get('etag'), whole.headers.get('etag'))
    assert.equal(text.slice(0, 1000) + (await rest.text()), text)
  }
})

test('a known receipt counts the gaps anew when the file of the date before changes', async (t) => {
  const lake = await temporaryDirectory(t)
  // A market that does not close on these dates.
  const lostMarket = 'KXHIGHNY-26JUL09-B'
  const next = DAY_START + 24n * HOUR
  const known = [
    bookEvent('KXHIGHNY-26JUL09-A', next, EVENT_CLEAR),
    bookEvent(lostMarket, next + 6n * HOUR, EVENT_CLEAR),
  ]
  await writeEvents(lake, known)
  const { url } = await startSampleServer(t, { lake })
  const read = async () => {
    const response = await fetch(`${url}/api/v1/lob/receipt?series=KXHIGHNY&date=2026-07-02`)
    const { gap_s, etag } = (await response.json()) as { gap_s: number; etag: string }
    return { gap_s, etag, tag: response.headers.get('etag') }
  }
  const before = await read()
  const lost = [
    bookEvent(lostMarket, DAY_START, EVENT_CLEAR),
    bookEvent(lostMarket, DAY_START + HOUR, EVENT_GAP),
  ]
  await writeEvents(lake, lost)
  const after = await read()
  assert.equal(after.etag, before.etag)
  assert.deepEqual([before.gap_s, after.gap_s], [0, 6 * 3600])
  assert.notEqual(after.tag, before.tag)
})

test('closed days in old files are immutable, all others are revalidated', async (t) => {
  const { lake, url, get } = await startOldLake(t)
  assert.equal((await get(DAY)).headers.get('cache-control'), 'public, max-age=31536000, immutable')
  // Its times also depend on the file of the date before, which may come later.
  const receipt = await fetch(`${url}/api/v1/lob/receipt?${DAY}`)
  assert.equal(receipt.headers.get('cache-control'), 'no-cache')
  const head = await get(DAY)
  assert.equal(head.headers.get('vary'), 'Accept-Encoding')
  const gapped = await get('series=KXHIGHNY&from=2026-07-02&to=2026-07-09&interval=3600')
  assert.equal(gapped.headers.get('cache-control'), 'no-cache')
  const now = new Date()
  utimesSync(join(lake, 'lob/source=kalshi/series=KXHIGHNY/date=2026-07-02/lob.parquet'), now, now)
  assert.equal((await get(DAY)).headers.get('cache-control'), 'no-cache')
})

test('a day counts as closed two days after its end, in files a day old', () => {
  const dayEndMs = Date.UTC(2026, 6, 3)
  const head = {
    kind: 'head',
    rows: 1,
    lastRow: null,
    missingDates: [],
    partialDates: [],
    files: [],
    stamps: [],
    identity: 'i',
    isHeld: false,
    sections: null,
  } as const
  const at = (afterMs: number, fileAgeMs: number): boolean =>
    isFinalAnswer(
      ['2026-07-01', '2026-07-02'],
      { ...head, writtenAtMs: dayEndMs + afterMs - fileAgeMs },
      dayEndMs + afterMs,
    )
  assert.equal(at(2 * MS_PER_DAY, MS_PER_DAY), true)
  assert.equal(at(2 * MS_PER_DAY - 1, MS_PER_DAY), false)
  assert.equal(at(2 * MS_PER_DAY, MS_PER_DAY - 1), false)
})

test('responses that need a key may be cached only by the client', async (t) => {
  const lake = await oldLake(t)
  const key = 'the-key-of-this-test'
  const { url } = await startSampleServer(t, { lake, apiKeys: [{ name: 'a', sha256: sha256Hex(key) }] })
  const answer = await fetch(`${url}/api/v1/lob?${DAY}`, { headers: { 'x-api-key': key } })
  assert.equal(answer.headers.get('cache-control'), 'private, max-age=31536000, immutable')
  const record = await fetch(`${url}/api/v1/series/KXHIGHNY`, { headers: { 'x-api-key': key } })
  assert.equal(record.headers.get('cache-control'), 'private, no-cache')
})

test("a market's rows end with the last tick at or before its close", async (t) => {
  const store = new MemoryStore([seriesRow('KXHIGHNY')])
  const { url, get } = await startOldLake(t, store)
  const query = `market=${MARKET}&from=2026-07-01&to=2026-07-02&interval=3600&levels=1`
  const lastTs = async (): Promise<number | undefined> => {
    const rows: { ts: number }[] = JSON.parse(await (await get(query)).text())
    return rows.at(-1)?.ts
  }
  const close = async (closeMs: number): Promise<void> => {
    store.put([], [marketRow(MARKET, { close_time: closeMs })])
    const expected = new Date(closeMs).toISOString().replace('.000Z', 'Z')
    for (;;) {
      const text = await (await fetch(`${url}/api/v1/markets/${MARKET}`)).text()
      if (text.includes(expected)) break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const open = await lastTs()
  assert.ok(open !== undefined && open > Date.UTC(2026, 6, 2, 5) * 1e6)
  await close(Date.UTC(2026, 6, 2, 4))
  assert.equal(await lastTs(), Date.UTC(2026, 6, 2, 4) * 1e6)
  await close(Date.UTC(2026, 6, 2, 4) - 1)
  assert.equal(await lastTs(), Date.UTC(2026, 6, 2, 3) * 1e6)
  await close(Date.UTC(2026, 5, 30))
  assert.equal(await lastTs(), undefined)
  await close(Date.UTC(2027, 0, 1))
  assert.equal(await lastTs(), open)
})

test('a name that only the catalogue has gets no_data, any other is unknown', async (t) => {
  const store = new MemoryStore([seriesRow('KXNEW')], [marketRow('KXHIGHNY-26JUL01-T999')])
  const { get } = await startOldLake(t, store)
  const cases = [
    ['series=KXNEW&date=2026-07-01', 'no_data'],
    ['market=KXHIGHNY-26JUL01-T999&date=2026-07-01', 'no_data'],
    ['series=KXNONE&date=2026-07-01', 'unknown_series'],
    ['market=KXNONE-1-2&date=2026-07-01', 'unknown_market'],
    ['series=KXHIGHNY&date=2020-01-01', 'no_data'],
  ] as const
  for (const [query, code] of cases) {
    const response = await get(query)
    assert.equal(response.status, 404, query)
    assert.equal((await readProblem(response)).code, code, query)
  }
})

test("finds an event's markets in the series that the catalogue names, with any identifiers", async (t) => {
  const series = 'highest-temperature-in-nyc'
  const { get } = await startOldLake(t)
  const all = await get(`source=polymarket&series=${series}&date=2026-07-01&hour=12&interval=3600`)
  const ids = (JSON.parse(await all.text()) as { market_id: string }[]).map((row) => row.market_id)
  const wanted = ids.slice(0, 2)
  const store = new MemoryStore(
    [seriesRow(series)],
    wanted.map((id) => marketRow(id, { event_ticker: 'nyc-on-july-1', series_ticker: series })),
  )
  const { get: getWithCatalogue } = await startOldLake(t, store)
  const event = await getWithCatalogue(
    'source=polymarket&series=nyc-on-july-1&date=2026-07-01&hour=12&interval=3600',
  )
  const found = (JSON.parse(await event.text()) as { market_id: string }[]).map((row) => row.market_id)
  assert.deepEqual(found, wanted)
})
