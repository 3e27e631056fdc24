// Candles and observations files that compaction wrote and something else changed: flipped bits, files without a checksum,
// pipes and directories in their place. The response has the same rows, or an error names the file.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { RECORD_CHECKSUM_KEY } from '../../shared/record-file-checksum.ts'
import { runs } from '../support/effort.ts'
import { candleAt, JULY_MS, manyCandles, manyObservations, observationAt } from '../support/moved-rows.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { startRecordServer } from '../support/record-server.ts'

const place = storeOfThisFile()
const FLIPS = runs(12, 120, 'BOOKCAST_FLIPS')
const DAYS = 12
const CANDLES = 'candles/series=KXHIGHNY/month=2026-07/candles.parquet'
const OBSERVATIONS = 'observations/station=NYC/year=2026/observations.parquet'
const RANGE = 'from=2026-07-01&to=2026-07-12&limit=50000'

/** One kind of file, and requests that read it in different ways. */
const KINDS = [
  {
    name: CANDLES,
    // One market reads cached blocks; all markets need a query; fills need counts and bounds.
    paths: [
      `/api/v1/candles?series=KXHIGHNY&fill=false&${RANGE}`,
      `/api/v1/candles?series=KXHIGHNY&format=csv&from=2026-07-02&to=2026-07-04&limit=500000`,
      `/api/v1/candles?market=KXHIGHNY-26JUL01-T90&from=2026-07-03T06:30:00Z&to=2026-07-03T09:00:00Z`,
    ],
    other: '/api/v1/candles?series=KXHIGHCHI&fill=false&format=csv&' + RANGE,
  },
  {
    name: OBSERVATIONS,
    paths: [
      `/api/v1/observations?station=NYC&${RANGE}`,
      `/api/v1/observations?station=NYC&format=csv&columns=observed_at,temp_f&${RANGE}`,
    ],
    other: `/api/v1/observations?station=MDW&format=csv&${RANGE}`,
  },
] as const

/** A server over the rows of DAYS days, all of them moved to the lake. */
async function compactedServer(t: TestContext) {
  const { postgres } = place.store
  await postgres.run({ text: 'TRUNCATE candles, observations, lake_manifest', parameters: [] })
  const server = await startRecordServer(t, postgres.address)
  await postgres.transaction(async (transaction) => {
    const other = { series_ticker: 'KXHIGHCHI', market_ticker: 'KXHIGHCHI-1-B1', event_ticker: 'KXHIGHCHI-1' }
    await writeCandles(transaction, [...manyCandles(DAYS), candleAt(JULY_MS + 60_000, other)])
    const observations = [...manyObservations(DAYS), observationAt(JULY_MS, { station_code: 'MDW' })]
    await writeObservations(
      transaction,
      observations.map((observation) => ({ observation, filled: {} })),
      (_, incoming) => incoming,
    )
  })
  await compact(server.lake)
  return server
}

function compact(lake: string) {
  const nowMs = JULY_MS + (DAYS + 3) * 86_400_000
  const clock = { nowMs: () => nowMs, sleep: async () => {} }
  return compactClosedDays({ postgres: place.store.postgres, lake, clock })
}

/** Gives the file a new identity, as every change of a file does. */
async function replaceFile(path: string, bytes: Uint8Array): Promise<void> {
  await writeFile(`${path}.new`, bytes)
  await rename(`${path}.new`, path)
}

async function textOf(address: string): Promise<string> {
  const response = await fetch(address)
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return text
}

async function assertRefused(address: string, name: string, reason = /./): Promise<void> {
  const response = await fetch(address)
  const problem = (await response.json()) as { code: string; detail: string }
  assert.deepEqual([response.status, problem.code], [503, 'lake_file_invalid'], problem.detail)
  assert.ok(problem.detail.includes(name), problem.detail)
  assert.match(problem.detail, reason)
}

test('a flipped bit gives the same rows or an error that names the file', async (t) => {
  const { url, lake } = await compactedServer(t)
  for (const { name, paths, other } of KINDS) {
    const path = join(lake, name)
    const whole = await readFile(path)
    const expected = await Promise.all(paths.map((each) => textOf(url + each)))
    const otherRows = await textOf(url + other)
    assert.ok(otherRows.split('\n').length > 2)
    const random = new SeededRandom(1, name)
    let refused = 0
    for (let flip = 0; flip < FLIPS; flip++) {
      const bit = random.below(whole.length * 8)
      const damaged = Buffer.from(whole)
      damaged[bit >> 3]! ^= 1 << (bit & 7)
      await replaceFile(path, damaged)
      const index = flip % paths.length
      const response = await fetch(url + paths[index])
      const body = await response.text()
      if (response.status === 200) {
        assert.equal(body, expected[index], `bit ${bit} changed the answer unnoticed`)
        continue
      }
      refused++
      const { code, detail } = JSON.parse(body) as { code: string; detail: string }
      assert.deepEqual([response.status, code], [503, 'lake_file_invalid'], detail)
      assert.ok(detail.includes(name), detail)
    }
    assert.ok(refused >= 0.98 * FLIPS - runs(1, 0), `${refused} of ${FLIPS} flips in ${name} were refused`)
    assert.equal(await textOf(url + other), otherRows)
    await replaceFile(path, whole)
    assert.deepEqual(await Promise.all(paths.map((each) => textOf(url + each))), expected)
  }
})

test('files without a checksum are served and counted', async (t) => {
  const { url, lake } = await compactedServer(t)
  const text = await textOf(url + KINDS[0].paths[0])
  await textOf(url + KINDS[1].paths[0])
  const before = await countsOf(url)
  const path = join(lake, CANDLES)
  const foreign = await readFile(path)
  const key = foreign.lastIndexOf(RECORD_CHECKSUM_KEY)
  // Without the checksum's key the file is like one of another writer. The second byte makes the key invalid UTF-8.
  for (const byte of [0x78, 0xe6]) {
    foreign[key] = byte
    await replaceFile(path, foreign)
    assert.equal(await textOf(url + KINDS[0].paths[0]), text)
    const without = await countsOf(url)
    assert.deepEqual(without, { ...before, right: before.right - 1, none: before.none + 1 })
  }
  // Without a checksum only DuckDB can detect the damage.
  foreign.fill(0, 4, 200)
  await replaceFile(path, foreign)
  await assertRefused(url + KINDS[0].paths[0], CANDLES)
})

test('a damaged file is not compacted into a new one', async (t) => {
  const { url, lake } = await compactedServer(t)
  const path = join(lake, CANDLES)
  const whole = await readFile(path)
  const damaged = Buffer.from(whole)
  damaged[whole.length >> 1]! ^= 4
  await replaceFile(path, damaged)
  await place.store.postgres.transaction((transaction) =>
    writeCandles(transaction, [candleAt(JULY_MS + 7 * 60_000)]),
  )
  const { failures } = await compact(lake)
  assert.deepEqual(
    failures.map((failure) => failure.path),
    [CANDLES],
  )
  assert.match(failures[0]!.reason, /checksum/)
  assert.deepEqual(await readFile(path), damaged)
  await assertRefused(url + KINDS[0].paths[0], CANDLES, /wrong checksum/)
  await replaceFile(path, whole)
  assert.deepEqual((await compact(lake)).failures, [])
  assert.match(await textOf(url + KINDS[0].paths[0]), /2026-07-01T00:07:00Z/)
})

test('a pipe or a directory in place of a file is refused by name, and blocks no other request', async (t) => {
  const { url, lake } = await compactedServer(t)
  for (const { name, paths, other } of KINDS) {
    const path = join(lake, name)
    const whole = await readFile(path)
    const rows = await textOf(url + paths[0])
    for (const make of [() => promisify(execFile)('mkfifo', [path]), () => mkdir(path)]) {
      await rm(path)
      await make()
      // More requests than there are threads.
      await Promise.all(Array.from({ length: 8 }, () => assertRefused(url + paths[0], name, /regular file/)))
      await textOf(url + other)
      await rm(path, { recursive: true })
      await writeFile(path, whole)
      assert.equal(await textOf(url + paths[0]), rows)
    }
  }
})

async function countsOf(url: string): Promise<{ right: number; none: number; wrong: number }> {
  const metrics = await textOf(`${url}/metrics`)
  const countOf = (verdict: string): number =>
    Number(new RegExp(`^bookcast_record_files\\{checksum="${verdict}"\\} (\\d+)$`, 'm').exec(metrics)?.[1])
  return { right: countOf('right'), none: countOf('none'), wrong: countOf('wrong') }
}
