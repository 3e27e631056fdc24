// How the catalogue in memory follows the store: what is read again, slow transactions, and failures.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { pino } from 'pino'
import { Catalogue } from '../../server/catalogue/catalogue.ts'
import { CatalogueFeed, CATALOGUE_OVERLAP_MS } from '../../server/catalogue/catalogue-feed.ts'
import { MarketIndex } from '../../server/catalogue/market-index.ts'
import { CachePolicy } from '../../server/http/cache-policy.ts'
import { MemoryStore, marketRow, seriesRow } from '../support/memory-store.ts'

const NO_FILTER = { series: null, station: null, closeFromMs: null, closeToMs: null }
const ALL = { limit: 10_000, offset: 0 }

async function startFeed(t: TestContext, store: MemoryStore) {
  const catalogue = new Catalogue(new CachePolicy({ isShared: true }))
  const feed = new CatalogueFeed({
    catalogue,
    source: store.catalogue,
    logger: pino({ level: 'silent' }),
    pollMs: 1,
  })
  t.after(() => feed.close())
  await feed.start()
  const text = (): string => Buffer.from(catalogue.marketPage(NO_FILTER, ALL).reply.body).toString()
  const until = async (isReached: () => boolean): Promise<void> => {
    while (!isReached()) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return { catalogue, feed, text, until }
}

test('reads only changed markets again', async (t) => {
  const old = Array.from({ length: 500 }, (_, index) =>
    marketRow(`KXHIGHNY-26JUN01-T${index}`, { written_at: 0 }),
  )
  const newestMs = 10 * CATALOGUE_OVERLAP_MS
  const store = new MemoryStore(
    [seriesRow('KXHIGHNY')],
    [...old, marketRow('KXHIGHNY-26JUL01-T1', { written_at: newestMs })],
  )
  const { until, text } = await startFeed(t, store)
  assert.equal(store.marketsRead, 501)
  store.put([], [marketRow('KXHIGHNY-26JUN01-T7', { status: 'closed', written_at: newestMs + 5 })])
  await until(() => text().includes('"closed"'))
  assert.equal(store.marketsRead, 501 + 2, 'the changed one and the newest one')
})

test('sees a change that a slow transaction wrote before the newest one', async (t) => {
  const newestMs = 10 * CATALOGUE_OVERLAP_MS
  const store = new MemoryStore([], [marketRow('KXHIGHNY-26JUL01-T1', { written_at: newestMs })])
  const { until, text } = await startFeed(t, store)
  store.put([], [marketRow('KXHIGHNY-26JUL01-T2', { written_at: newestMs - CATALOGUE_OVERLAP_MS })])
  await until(() => text().includes('26JUL01-T2'))
})

test('keeps polling an unavailable store, and can close meanwhile', async (t) => {
  const store = new MemoryStore([seriesRow('KXHIGHNY')], [])
  store.isAway = true
  const { catalogue, feed, until } = await startFeed(t, store)
  assert.equal(catalogue.isLoaded, false)
  store.isAway = false
  await until(() => catalogue.isLoaded)
  store.isAway = true
  await feed.close()
})

test('the market index lists the latest rows in ticker order, in whatever batches they are put', () => {
  const ticker = fc.integer({ min: 0, max: 30 }).map((number) => `S${number % 3}-E${number % 7}-T${number}`)
  const batches = fc.array(fc.array(fc.tuple(ticker, fc.integer()), { maxLength: 10 }), { maxLength: 8 })
  fc.assert(
    fc.property(batches, (rows) => {
      const index = new MarketIndex()
      const last = new Map<string, number>()
      for (const batch of rows) {
        for (const [name, closeMs] of batch) {
          index.put(marketRow(name, { close_time: closeMs }))
          last.set(name, closeMs)
        }
        const expected = [...last].toSorted(([left], [right]) => (left < right ? -1 : 1))
        const pairs = (list: MarketIndex['all']) => list.map((row) => [row.ticker, row.close_time])
        assert.deepEqual(pairs(index.all), expected)
        assert.deepEqual(
          pairs(index.ofSeriesOrEvent('S1')),
          expected.filter(([name]) => name.startsWith('S1-')),
        )
        assert.deepEqual(
          pairs(index.ofEvent('S2-E5')),
          expected.filter(([name]) => name.startsWith('S2-E5-')),
        )
      }
    }),
  )
})
