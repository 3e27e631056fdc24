// The committed sample equals the output of its generator, and has the cases that it is made for.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { SampleMetadata } from '../../server/sample-data/sample-lake.ts'
import { writeSampleLake } from '../../server/sample-data/sample-lake.ts'
import {
  SAMPLE_DECI_CENT,
  SAMPLE_FIRST_DATE,
  SAMPLE_LAST_DATE,
  SAMPLE_OUTAGE,
} from '../../server/sample-data/sample-series.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { utcDatesBetween } from '../../shared/utc-date.ts'
import type { LobRow } from '../support/lob-rows.ts'
import { readRows } from '../support/lob-rows.ts'
import type { NaiveRow } from '../support/naive-lob.ts'
import { naiveSnapshots } from '../support/naive-lob.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { VERSIONS_DIRECTORY } from '../../shared/lake-pin.ts'

const SAMPLE = fileURLToPath(new URL('../../../data-samples/', import.meta.url))
const SAMPLE_BYTES_MAX = 3 * 1024 * 1024
const DATES = utcDatesBetween(SAMPLE_FIRST_DATE, SAMPLE_LAST_DATE)
const POLYMARKET_ID = /^0x[0-9a-f]{64}:[1-9][0-9]{76}$/
const KALSHI_ID = /^KXHIGH[A-Z]+-26JUL0[1-4]-(T\d+|B\d+\.5)$/

async function committedMetadata(): Promise<SampleMetadata> {
  const metadata: SampleMetadata = JSON.parse(await readFile(join(SAMPLE, 'metadata.json'), 'utf8'))
  return metadata
}

async function sampleRows(source: LobSource, series: string, date: string): Promise<LobRow[]> {
  return await readRows(lobFilePath(join(SAMPLE, 'lake'), source, series, date))
}

async function snapshots(source: LobSource, series: string, date: string, intervalS: number) {
  const rows = await sampleRows(source, series, date)
  const dateStartMs = Date.parse(`${date}T00:00:00Z`)
  const events = rows.map((row) => ({ ...row, marketId: row.market_id }))
  const coversTo = BigInt(dateStartMs + 86_400_000) * 1_000_000n - 1n
  return naiveSnapshots(events, { dateStartMs, intervalS, levels: 50, coversTo })
}

function isAt(row: NaiveRow, time: string): boolean {
  return row.ts === Date.parse(time) * 1e6
}

test('the committed sample equals a fresh run with its seed, byte for byte', async (t) => {
  const committed = await committedMetadata()
  const directory = await temporaryDirectory(t)
  const fresh = await writeSampleLake({ directory, seed: committed.seed })
  assert.deepEqual(fresh, committed)
  for (const { path } of fresh.files) {
    const bytes = await readFile(join(SAMPLE, path))
    assert.ok(bytes.equals(await readFile(join(directory, path))), path)
  }
})

test('metadata.json lists every file with its size and hash, and says that it is generated', async () => {
  const metadata = await committedMetadata()
  assert.equal(metadata.generated, true)
  assert.equal(metadata.command, `bookcast sample-data --seed ${metadata.seed}`)
  const entries = await readdir(SAMPLE, { recursive: true, withFileTypes: true })
  // Servers of other tests list the versions of the sample beside it.
  const paths = entries
    .filter((entry) => entry.isFile() && !entry.parentPath.endsWith(VERSIONS_DIRECTORY))
    .map((entry) => join(entry.parentPath, entry.name))
  const listed = [...metadata.files.map((file) => join(SAMPLE, file.path)), join(SAMPLE, 'metadata.json')]
  assert.deepEqual(paths.toSorted(), listed.toSorted())
  let sizeBytes = 0
  for (const file of metadata.files) {
    const bytes = await readFile(join(SAMPLE, file.path))
    sizeBytes += bytes.length
    assert.equal(bytes.length, file.sizeBytes)
    assert.equal(createHash('sha256').update(bytes).digest('hex'), file.sha256)
  }
  assert.ok(sizeBytes < SAMPLE_BYTES_MAX, `${sizeBytes} bytes`)
})

test('has three Kalshi series and one Polymarket series on three dates, and the trades of one', async () => {
  const { files, polymarketMarkets } = await committedMetadata()
  assert.equal(files.length, 5 * DATES.length)
  assert.equal(files.filter(({ path }) => path.startsWith('lake/trades/')).length, DATES.length)
  for (const series of ['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHDEN']) {
    for (const date of DATES) {
      const ids = new Set((await sampleRows('kalshi', series, date)).map((row) => row.market_id))
      // Two whole events, or three where one closes that morning and another opens in the afternoon.
      assert.equal(ids.size, date === SAMPLE_FIRST_DATE ? 12 : 18)
      for (const id of ids) assert.match(id, KALSHI_ID)
    }
  }
  const described = new Set(polymarketMarkets.map((market) => market.id))
  for (const date of DATES) {
    for (const row of await sampleRows('polymarket', 'highest-temperature-in-nyc', date)) {
      assert.match(row.market_id, POLYMARKET_ID)
      assert.ok(described.has(row.market_id))
    }
  }
})

test('books are never crossed and have up to thirty levels a side', async () => {
  for (const [source, series] of [
    ['kalshi', 'KXHIGHNY'],
    ['polymarket', 'highest-temperature-in-nyc'],
  ] as const) {
    const rows = await snapshots(source, series, '2026-07-02', 60)
    const twoSided = rows.filter((row) => row.spread !== -1)
    assert.ok(twoSided.length > rows.length / 4)
    for (const row of twoSided) assert.ok(row.best_bid < row.best_ask, JSON.stringify(row))
    for (const row of rows) assert.ok(row.bids.length <= 30 && row.asks.length <= 30)
    // A price near the edge leaves room for a few levels only, and a jump sweeps some.
    const central = twoSided.filter((row) => row.mid > 25 && row.mid < 75)
    const deep = central.filter((row) => row.bids.length >= 5 && row.asks.length >= 5)
    assert.ok(central.length > 500)
    assert.ok(deep.length > 0.85 * central.length, `${deep.length} of ${central.length}`)
  }
})

test('the six prices of an event sum to about a dollar and drift through the day', async () => {
  const rows = await snapshots('kalshi', 'KXHIGHNY', '2026-07-01', 3600)
  const event = rows.filter((row) => row.market_id.startsWith('KXHIGHNY-26JUL02'))
  const sums = new Map<number, number>()
  for (const row of event) {
    // One-sided tails are worth next to nothing, or next to a dollar.
    const price = row.spread === -1 ? (row.best_bid > 0 ? 99.5 : 0.5) : row.mid
    sums.set(row.ts, (sums.get(row.ts) ?? 0) + price)
  }
  assert.equal(sums.size, 9)
  for (const [ts, sum] of [...sums].slice(1)) assert.ok(sum > 90 && sum < 110, `${ts}: ${sum}`)
  const mids = new Set(event.filter((row) => row.spread !== -1).map((row) => row.mid))
  assert.ok(mids.size > 10)
})

test('nights are quiet and afternoons are busy', async () => {
  const hours = Array.from({ length: 24 }, () => 0)
  for (const row of await sampleRows('kalshi', 'KXHIGHNY', '2026-07-02')) {
    if (row.event !== 2) continue
    const hour = Number((row.ts / 3_600_000_000_000n) % 24n)
    hours[hour] = (hours[hour] ?? 0) + 1
  }
  const night = Math.max(...hours.slice(6, 10))
  const afternoon = Math.min(...hours.slice(15, 20))
  assert.ok(night * 8 < afternoon, `${night} at night, ${afternoon} in the afternoon`)
})

test('markets open at 14:00Z the day before and close at local midnight', async () => {
  const rows = await snapshots('kalshi', 'KXHIGHNY', '2026-07-02', 3600)
  const opening = rows.filter((row) => row.market_id.startsWith('KXHIGHNY-26JUL03'))
  assert.equal(Math.min(...opening.map((row) => row.ts)), Date.parse('2026-07-02T15:00:00Z') * 1e6)
  const closing = rows.filter((row) => row.market_id.startsWith('KXHIGHNY-26JUL01'))
  assert.equal(closing.filter((row) => isAt(row, '2026-07-02T05:00:00Z')).length, 6)
  for (const row of closing.filter((candidate) => isAt(candidate, '2026-07-02T06:00:00Z'))) {
    assert.deepEqual([row.bids, row.asks], [[], []])
  }
  const stored = (await sampleRows('kalshi', 'KXHIGHNY', '2026-07-02')).filter((row) =>
    row.market_id.startsWith('KXHIGHNY-26JUL01'),
  )
  const lastOf = new Map(stored.map((row) => [row.market_id, row]))
  assert.equal(lastOf.size, 6)
  // The book is emptied, then unknown, and no keyframe follows.
  for (const row of lastOf.values()) {
    assert.equal(row.event, 3)
    assert.equal(row.ts / 1_000_000_000n, BigInt(Date.parse('2026-07-02T05:00:01Z')) / 1000n)
  }
  const nextDay = await sampleRows('kalshi', 'KXHIGHNY', '2026-07-03')
  assert.ok(nextDay.every((row) => !row.market_id.startsWith('KXHIGHNY-26JUL01')))
})

test('one event loses its feed and gets new snapshots', async () => {
  const rows = await sampleRows('kalshi', SAMPLE_OUTAGE.series, SAMPLE_OUTAGE.day)
  const [from, to] = [BigInt(SAMPLE_OUTAGE.fromMs) * 1_000_000n, BigInt(SAMPLE_OUTAGE.toMs) * 1_000_000n]
  const gaps = rows.filter((row) => row.event === 3 && row.ts === from)
  const affected = new Set(gaps.map((row) => row.market_id))
  assert.equal(affected.size, 6)
  const ofAffected = rows.filter((row) => affected.has(row.market_id))
  assert.ok(ofAffected.every((row) => row.ts <= from || row.ts >= to))
  assert.equal(ofAffected.filter((row) => row.event === 0 && row.ts === to).length, 6)
})

test('sub-cent prices and fractional quantities occur on both exchanges', async () => {
  const denver = await sampleRows('kalshi', SAMPLE_DECI_CENT.series, SAMPLE_DECI_CENT.day)
  const subCent = denver.filter((row) => row.price % 100 !== 0)
  assert.equal(new Set(subCent.map((row) => row.market_id)).size, 1)
  const tail = await sampleRows('polymarket', 'highest-temperature-in-nyc', '2026-07-02')
  assert.ok(tail.filter((row) => row.price % 100 !== 0).length > 100)
  for (const rows of [denver, tail]) {
    assert.ok(rows.filter((row) => row.qty % 1_000_000n !== 0n).length > 50)
  }
})

test("a Polymarket condition's two tokens mirror each other", async () => {
  const rows = await snapshots('polymarket', 'highest-temperature-in-nyc', '2026-07-01', 3600)
  const { polymarketMarkets } = await committedMetadata()
  const noTokens = new Set(
    polymarketMarkets.filter((market) => market.outcome === 'No').map((market) => market.id),
  )
  const byCondition = new Map<string, NaiveRow[]>()
  for (const row of rows) {
    const key = `${row.ts} ${row.market_id.split(':')[0]}`
    byCondition.set(key, [...(byCondition.get(key) ?? []), row])
  }
  for (const [key, pair] of byCondition) {
    const yes = pair.find((row) => !noTokens.has(row.market_id))
    const no = pair.find((row) => noTokens.has(row.market_id))
    assert.ok(yes !== undefined && no !== undefined && pair.length === 2, key)
    assert.deepEqual(
      no.asks,
      yes.bids.map((level) => ({ price: 100 - level.price, qty: level.qty })),
    )
  }
})

test('a directory with other data for the same dates is not changed', async (t) => {
  const directory = await temporaryDirectory(t)
  const foreign = lobFilePath(join(directory, 'lake'), 'kalshi', 'KXHIGHNY', SAMPLE_FIRST_DATE)
  await mkdir(join(foreign, '..'), { recursive: true })
  await writeFile(foreign, 'recorded by somebody')
  await assert.rejects(writeSampleLake({ directory, seed: 1 }), /already holds other data/)
  assert.equal(await readFile(foreign, 'utf8'), 'recorded by somebody')
  await assert.rejects(readFile(join(directory, 'metadata.json')), { code: 'ENOENT' })
})
