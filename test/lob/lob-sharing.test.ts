// Large answers that several threads of the pool make: when threads assist, which threads a new request gets, what happens
// when a thread dies, and that nothing leaks when clients disconnect.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readlinkSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { LobPool, type LobOpenOptions } from '../../server/lob/lob-pool.ts'
import { openPart, receiptOf } from '../../server/lob/lob-parts.ts'
import { LobReceipts } from '../../server/lob/lob-receipts.ts'
import type { LobStream } from '../../server/lob/lob-stream.ts'
import { LOB_CONCURRENT_REQUESTS_MAX } from '../../shared/limits.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import { IS_FULL_EFFORT, runs } from '../support/effort.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { SERIES } from '../support/recorded-events.ts'
import { SECTION_DATES, writeSectionsLake, writeStillLake } from '../support/sections-lake.ts'
import { lakeOfThisFile, temporaryDirectory } from '../support/temporary-lake.ts'
import { startTestServer, until } from '../support/test-server.ts'

const FAKE_WORKER = new URL('../support/fake-lob-worker.js', import.meta.url)
/** In the quick gear the threads do not warm up, because that takes longer than most of the tests. */
const REAL_WORKER = new URL(
  IS_FULL_EFFORT ? '../../workers/lob/task.js' : '../support/cold-lob-worker.js',
  import.meta.url,
)
const DATES = [SECTION_DATES[0]]
/** In the quick gear a day has 52,000 rows, which are still enough to be shared. */
const INTERVAL_S = runs(5, 1)
const SECTIONS = lakeOfThisFile(writeSectionsLake)

function startPool(t: TestContext, lake: string, processors: number, workerUrl = REAL_WORKER): LobPool {
  const pool = new LobPool({ lake, workerUrl, logger: pino({ level: 'silent' }), processors })
  t.after(() => pool.close())
  return pool
}

function startFakePool(t: TestContext, processors: number) {
  const pool = startPool(t, '.', processors, FAKE_WORKER)
  const openWords = (words: string, signal?: AbortSignal): Promise<LobStream> =>
    pool.open(lobQuery({ series: words, dates: DATES }), openOptions(signal))
  return { pool, openWords }
}

function openOptions(signal = new AbortController().signal): LobOpenOptions {
  return { headOnly: false, catalogue: null, validation: { seed: 'test', held: [] }, signal }
}

async function readBody(stream: LobStream): Promise<Buffer> {
  const parts: Buffer[] = []
  try {
    for (let chunk = await stream.next(); chunk !== null; chunk = await stream.next())
      parts.push(Buffer.from(chunk))
  } finally {
    await stream.close()
  }
  return Buffer.concat(parts)
}

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** For each section, the role (`leader` or `assistant`) and the number of the thread that made it. */
function sectionMakers(body: Buffer): { role: string; thread: string }[] {
  const lines = body.toString().trimEnd().split('\n')
  return lines.map((line, index) => {
    const [section, role, thread] = line.split(' ')
    assert.equal(section, String(index))
    return { role: role!, thread: thread! }
  })
}

for (const processors of [1, 2, 3, 4, 16]) {
  const threads = Math.min(processors, LOB_CONCURRENT_REQUESTS_MAX)
  test(`an answer uses ${threads} threads if ${processors} processors and all threads are idle`, async (t) => {
    const { openWords } = startFakePool(t, processors)
    const body = await readBody(await openWords(`sections.20.until-taken.${threads}`))
    const makers = sectionMakers(body)
    assert.equal(makers.length, 20)
    assert.equal(makers[0]!.role, 'leader')
    assert.equal(new Set(makers.map(({ thread }) => thread)).size, threads)
    assert.equal(new Set(makers.map(({ role }) => role)).size, threads === 1 ? 1 : 2)
  })
}

for (const [processors, others, threads] of [
  [2, 1, 1],
  [3, 1, 2],
  [4, 2, 2],
  [16, 2, 2],
  [16, 3, 1],
] as const) {
  test(`an answer uses ${threads} threads on ${processors} processors beside ${others} other requests`, async (t) => {
    const { pool, openWords } = startFakePool(t, processors)
    const leaving = new AbortController()
    const waiting = Array.from({ length: others }, () =>
      assert.rejects(openWords('wait', leaving.signal), /the client is gone/),
    )
    const body = await readBody(await openWords(`sections.20.until-taken.${threads}`))
    assert.equal(new Set(sectionMakers(body).map(({ thread }) => thread)).size, threads)
    leaving.abort()
    await Promise.all(waiting)
    assert.equal(pool.takenSlots, 0)
  })
}

/** Clients that disconnect while resources are counted, and those before the first count. */
const LEAVING = runs(16, 1000)
const LEFT_BEFORE = runs(8, 20)

test('no more threads assist than there are sections left', async (t) => {
  const { openWords } = startFakePool(t, 4)
  const makers = sectionMakers(await readBody(await openWords('sections.2.until-taken.2')))
  assert.equal(new Set(makers.map(({ thread }) => thread)).size, 2)
})

const DEATHS = runs(2, 5)

for (const [what, words, code] of [
  ['an assistant dies', 'assistant-dies', 'worker_failed'],
  ['an assistant fails', 'assistant-fails', 'lake_file_changed'],
  ['the leader dies', 'leader-dies', 'worker_failed'],
  ['the leader fails', 'leader-fails', 'lake_file_changed'],
] as const) {
  test(`an answer breaks off when ${what} after it took a section, and the pool continues to serve`, async (t) => {
    const { pool, openWords } = startFakePool(t, 4)
    for (let round = 0; round < DEATHS; round++) {
      await assert.rejects(readBody(await openWords(`sections.20.until-taken.4.${words}`)), { code })
      assert.equal(pool.takenSlots, 0)
    }
    const body = await readBody(await openWords('sections.20.until-taken.4'))
    assert.equal(new Set(sectionMakers(body).map(({ thread }) => thread)).size, 4)
  })
}

for (const [format, part] of [
  ['ndjson', {}],
  ['csv', { levels: 2 }],
] as const) {
  test(`one, two and four processors make the same bytes of ${format}`, async (t) => {
    const lake = SECTIONS.path
    const query = lobQuery({
      series: SERIES,
      dates: [SECTION_DATES[1]],
      intervalS: INTERVAL_S,
      levels: 1,
      ...part,
      format,
    })
    const expected = await collectLob(lake, query)
    assert.ok((expected.head?.sections?.count ?? 0) >= 24)
    for (const processors of [1, 2, 4]) {
      const stream = await startPool(t, lake, processors).open(query, openOptions())
      assert.equal(hashOf(await readBody(stream)), hashOf(expected.body))
      assert.equal(stream.rows, expected.endRows)
    }
  })
}

test('a new receipt of a shared answer, a known receipt and a part of the body each plan the answer once', async (t) => {
  const lake = SECTIONS.path
  const dates = [SECTION_DATES[1]]
  const query = lobQuery({ series: SERIES, dates, intervalS: 5, levels: 1, format: 'csv' })
  const expected = await collectLob(lake, query)
  const pool = startPool(t, lake, 2)
  const opened = t.mock.method(pool, 'open').mock
  const source = { pool, receipts: new LobReceipts() }
  const made = (await receiptOf(source, query, openOptions()))!.receipt
  assert.equal(made.sha256, hashOf(expected.body))
  assert.equal(made.rows, expected.endRows)
  let start = 0
  for (const { bytes, sha256 } of made.blocks) {
    assert.equal(sha256, hashOf(expected.body.subarray(start, start + bytes)))
    start += bytes
  }
  assert.equal(start, expected.body.length)
  assert.deepEqual((await receiptOf(source, query, openOptions()))!.receipt, made)
  assert.equal(opened.callCount(), 2)
  const part = await openPart(source, query, { first: start - 10, last: null }, openOptions(), '')
  assert.equal(part!.sizeBytes, 10)
  await part!.stream.close()
  assert.equal(opened.callCount(), 3)
})

/** An answer several times larger than what all threads may have in flight, whose client reads nothing. */
async function openStalled(
  pool: LobPool,
  part: Partial<LobQuery> = {},
  signal?: AbortSignal,
): Promise<LobStream> {
  const query = lobQuery({
    series: SERIES,
    dates: DATES,
    intervalS: 1,
    levels: 49,
    format: 'ndjson',
    ...part,
  })
  return pool.open(query, openOptions(signal))
}

/** Resolves when every thread of the pool is in the middle of a section. */
async function allTaken({ head }: LobStream): Promise<void> {
  const next = new Int32Array(head.sections!.next)
  await until(() => Atomics.load(next, 0) >= LOB_CONCURRENT_REQUESTS_MAX)
}

test('the assistants of a client that reads nothing are available to other requests', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeStillLake(lake, 5)
  const pool = startPool(t, lake, 4)
  const stalled = await openStalled(pool)
  await allTaken(stalled)
  // Each of these needs its own thread while its client reads nothing.
  const others = await Promise.all([1, 2, 3].map(async () => openStalled(pool)))
  await assert.rejects(openStalled(pool), { code: 'too_many_requests' })
  assert.equal(pool.queuedTasks, 0)
  for (const other of others) {
    assert.ok((await other.next())!.length > 0)
    await other.close()
  }
  assert.equal(pool.takenSlots, 1)
  await stalled.close()
  assert.equal(pool.takenSlots, 0)
})

test('an answer is complete after its assistants are dismissed', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeStillLake(lake, 2)
  const part = { levels: 20 }
  const pool = startPool(t, lake, 4)
  const expected = hashOf(await readBody(await openStalled(startPool(t, lake, 1), part)))
  const stream = await openStalled(pool, part)
  await allTaken(stream)
  const small = lobQuery({ series: SERIES, dates: DATES, intervalS: 3600, format: 'ndjson' })
  const others = await Promise.all([1, 2, 3].map(async () => pool.open(small, openOptions())))
  assert.equal(hashOf(await readBody(stream)), expected)
  for (const other of others) await other.close()
})

/** Counts of the resources that must not leak; undefined without /proc. */
function heldThings(): { files: number; threads: number; ports: number } | undefined {
  try {
    const files = readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).includes('.parquet')
      } catch {
        return false
      }
    }).length
    const ports = process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length
    return { files, threads: readdirSync('/proc/self/task').length, ports }
  } catch {
    return undefined
  }
}

test('clients that disconnect from a shared answer leak no slot, thread, port or file', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeStillLake(lake, 1)
  const pool = startPool(t, lake, 4)
  const leave = async (round: number): Promise<void> => {
    const client = new AbortController()
    const stream = await openStalled(pool, { levels: 5 }, client.signal)
    for (let chunks = round % 4; chunks > 0; chunks--) await stream.next()
    client.abort()
    if (round % 2 === 0) await assert.rejects(stream.next(), /the client is gone/)
    await stream.close()
    assert.equal(pool.takenSlots, 0)
  }
  for (let round = 0; round < LEFT_BEFORE; round++) await leave(round)
  const before = heldThings()
  for (let round = 0; round < LEAVING; round++) await leave(round)
  const after = heldThings()
  if (before !== undefined && after !== undefined) {
    assert.equal(after.files, 0)
    // The pool's own ports count only while their threads are busy.
    assert.ok(after.threads <= before.threads && after.ports <= before.ports + LOB_CONCURRENT_REQUESTS_MAX)
  }
  assert.equal(pool.queuedTasks, 0)
  assert.equal((await readBody(await openStalled(pool, { levels: 1, columns: ['mid'] }))).length > 0, true)
})

test('over HTTP a shared answer is the same in every coding, and supports HEAD and entity tags', async (t) => {
  const lake = SECTIONS.path
  const { url, server } = await startTestServer(t, { lake }, { worker: 'real' })
  const address = `${url}/api/v1/lob?series=${SERIES}&date=${SECTION_DATES[1]}&interval=${INTERVAL_S}&levels=1&format=csv`
  const query = lobQuery({
    series: SERIES,
    dates: [SECTION_DATES[1]],
    intervalS: INTERVAL_S,
    levels: 1,
    format: 'csv',
  })
  const expected = hashOf((await collectLob(lake, query)).body)
  const plain = await fetch(address, { headers: { 'accept-encoding': 'identity' } })
  const body = Buffer.from(await plain.arrayBuffer())
  assert.equal(hashOf(body), expected)
  assert.equal(body.toString('latin1').split('ts,market_id').length, 2)
  const coded = await fetch(address, { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(coded.headers.get('content-encoding'), 'gzip')
  assert.equal(hashOf(Buffer.from(await coded.arrayBuffer())), expected)
  const etag = plain.headers.get('etag') ?? ''
  const head = await fetch(address, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } })
  assert.equal(head.status, 200)
  assert.equal(head.headers.get('etag'), etag)
  const held = await fetch(address, { headers: { 'if-none-match': etag } })
  assert.equal(held.status, 304)
  assert.equal(server.lobPool.takenSlots, 0)
})
