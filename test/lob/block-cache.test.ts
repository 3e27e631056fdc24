// Long order-book answers kept on disk: the second reader gets the same bytes, whatever lies there.

import assert from 'node:assert/strict'
import {
  appendFileSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { get as request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import * as zlib from 'node:zlib'
import { pino } from 'pino'
import { BlockCache } from '../../server/lob/block-cache.ts'
import type { RunningServer } from '../../server/service/server.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { EVENT_ADD, EVENT_CLEAR } from '../../shared/lob-v1.ts'
import { bookEvent, DAY_START, HOUR, pathOfDate, SERIES, writeEvents } from '../support/recorded-events.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG, until } from '../support/test-server.ts'

const GB = 1e9
/** Some megabytes: several blocks. */
const QUERY = `series=${SERIES}&date=2026-07-01&interval=2&levels=3&columns=ts,best_bid,best_ask,mid`
const DAY = 24n * HOUR
const hasZstd = 'zstdDecompressSync' in zlib

async function writeLake(lake: string, shift = 0): Promise<void> {
  const id = `${SERIES}-26JUL01-B70.5`
  const events = Array.from({ length: 200 }, (_, index) =>
    index === 0
      ? bookEvent(id, DAY_START, EVENT_CLEAR)
      : bookEvent(
          id,
          DAY_START + (BigInt(index) * DAY) / 200n,
          EVENT_ADD,
          index & 1,
          ((index & 1 ? 50 : 1) + ((index + shift) % 49)) * 100,
          1_000_000 * (1 + (index % 7)),
        ),
  )
  await writeEvents(lake, events, {}, DAY_START + DAY - 1n)
}

interface Keeping {
  readonly server: RunningServer
  readonly get: (query?: string, headers?: Record<string, string>) => Promise<Buffer>
  readonly metric: (name: string) => Promise<number>
}

async function start(t: TestContext, lake: string, directory: string, bytesMax = GB): Promise<Keeping> {
  const server = await startColdServer(
    { ...TEST_CONFIG, lake, blockCache: { directory, bytesMax } },
    { logger: pino({ level: 'silent' }) },
  )
  t.after(() => server.close())
  const address = `http://127.0.0.1:${server.port}`
  return {
    server,
    async get(query = `${QUERY}&format=ndjson`, headers = { 'accept-encoding': 'identity' }) {
      const response = await fetch(`${address}/api/v1/lob?${query}`, { headers })
      assert.equal(response.status, 200)
      return Buffer.from(await response.arrayBuffer())
    },
    async metric(name) {
      const text = await (await fetch(`${address}/metrics`)).text()
      return Number(new RegExp(`^bookcast_block_cache_${name} (\\d+)$`, 'm').exec(text)?.[1])
    },
  }
}

const kept = (directory: string): string[] =>
  readdirSync(directory)
    .filter((name) => !name.endsWith('.part'))
    .map((name) => join(directory, name))

test('the second reader gets the same bytes from disk, also of another process', async (t) => {
  const lake = await temporaryDirectory(t)
  const directory = await temporaryDirectory(t)
  await writeLake(lake)
  const { get, metric, server } = await start(t, lake, directory)
  const first = await get()
  assert.equal(await metric('hits_total'), 0)
  assert.equal(await metric('misses_total'), 1)
  assert.equal(kept(directory).length, 1)
  const second = await get()
  assert.ok(second.equals(first))
  assert.equal(await metric('hits_total'), 1)
  assert.equal(await metric('served_bytes_total'), first.length)
  const csv = await get(`${QUERY}&format=csv`)
  assert.ok((await get(`${QUERY}&format=csv`)).equals(csv))
  assert.equal(await metric('hits_total'), 2)
  const { headers } = await fetch(`http://127.0.0.1:${server.port}/api/v1/lob?${QUERY}&format=ndjson`, {
    headers: { 'accept-encoding': 'identity' },
  })
  assert.equal(headers.get('content-length'), String(first.length))
  // A slot is only held while it is found out that nothing has changed.
  assert.equal(server.lobPool.takenSlots, 0)
  const other = await start(t, lake, directory)
  assert.ok((await other.get()).equals(first))
  assert.equal(await other.metric('hits_total'), 1)
})

test('what differs in any way is another answer', async (t) => {
  const lake = await temporaryDirectory(t)
  const directory = await temporaryDirectory(t)
  await writeLake(lake)
  const { get, metric } = await start(t, lake, directory)
  const bodies = new Set<string>()
  const queries = [
    QUERY,
    QUERY.replace('levels=3', 'levels=2').replace('mid', 'bids'),
    QUERY.replace('interval=2', 'interval=3'),
    QUERY.replace(',mid', ''),
    `${QUERY}&nulls=true`,
    `market=${SERIES}-26JUL01-B70.5&date=2026-07-01&interval=2&levels=4`,
  ]
  for (const query of queries) bodies.add((await get(`${query}&format=ndjson`)).toString('latin1'))
  assert.equal(bodies.size, queries.length)
  assert.equal(await metric('hits_total'), 0)
  // Another state of the lake.
  const before = await get()
  assert.equal(await metric('hits_total'), 1)
  rmSync(pathOfDate(lake, '2026-07-01'))
  await writeLake(lake, 3)
  const time = new Date(Date.now() - 60_000)
  utimesSync(pathOfDate(lake, '2026-07-01'), time, time)
  const after = await get()
  assert.ok(!after.equals(before))
  assert.ok((await get()).equals(after))
  assert.equal(await metric('hits_total'), 2)
})

test('a client that holds the answer is told so, kept or not', async (t) => {
  const lake = await temporaryDirectory(t)
  const directory = await temporaryDirectory(t)
  await writeLake(lake)
  const { get, metric, server } = await start(t, lake, directory)
  await get()
  const address = `http://127.0.0.1:${server.port}/api/v1/lob?${QUERY}&format=ndjson`
  const { headers } = await fetch(address, { method: 'HEAD' })
  const etag = headers.get('etag')!
  assert.equal((await fetch(address, { headers: { 'if-none-match': etag } })).status, 304)
  assert.equal(await metric('hits_total'), 0)
})

test('damage is noticed wherever it is, and costs the reader nothing', async (t) => {
  const lake = await temporaryDirectory(t)
  const directory = await temporaryDirectory(t)
  await writeLake(lake)
  const { get, metric } = await start(t, lake, directory)
  const whole = await get()
  const [path] = kept(directory) as [string]
  // What is kept anew may be cut into other blocks.
  const flip = (place: (length: number) => number) => (): void => {
    const bytes = readFileSync(path)
    bytes[place(bytes.length)]! ^= 0x10
    writeFileSync(path, bytes)
  }
  const damages = [
    ...[0, 9, 13, 40, 250].map((at) => flip(() => at)),
    ...[1, 6, 30].map((fromEnd) => flip((length) => length - fromEnd)),
    flip((length) => length >> 1),
    () => truncateSync(path, 0),
    () => truncateSync(path, statSync(path).size - 8),
    () => truncateSync(path, statSync(path).size >> 1),
    () => appendFileSync(path, 'x'),
    () => writeFileSync(path, 'of something else'),
  ]
  let count = 0
  for (const damage of damages) {
    damage()
    assert.ok((await get()).equals(whole), `damage ${count} reaches the reader`)
    assert.equal(await metric('damaged_total'), ++count)
    const hits = await metric('hits_total')
    // It was made again and is kept: of a body of known length the client has the last byte before that.
    await until(() => kept(directory).includes(path))
    assert.ok((await get()).equals(whole))
    assert.equal(await metric('hits_total'), hits + 1, `after damage ${count - 1} the answer is kept again`)
  }
})

/** The body as it travels, and what it says. */
async function zstdBody(port: number): Promise<{ coded: Buffer; plain: Buffer }> {
  const headers = { 'accept-encoding': 'zstd' }
  const sent = request({ port, path: `/api/v1/lob?${QUERY}&format=ndjson`, headers })
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  assert.equal(response.headers['content-encoding'], 'zstd')
  const coded = Buffer.concat(await response.toArray())
  const { zstdDecompressSync } = zlib as unknown as { zstdDecompressSync: (bytes: Buffer) => Buffer }
  return { coded, plain: zstdDecompressSync(coded) }
}

test('the coded form is kept as it was sent', { skip: !hasZstd }, async (t) => {
  const lake = await temporaryDirectory(t)
  const directory = await temporaryDirectory(t)
  await writeLake(lake)
  const { get: getPlain, metric, server } = await start(t, lake, directory)
  const plain = await getPlain()
  const first = await zstdBody(server.port)
  assert.ok(first.plain.equals(plain))
  assert.equal(await metric('hits_total'), 1, 'it is compressed from what is kept')
  assert.equal(kept(directory).length, 2)
  const second = await zstdBody(server.port)
  assert.ok(second.coded.equals(first.coded))
  assert.equal(await metric('hits_total'), 2)
  for (const path of kept(directory)) if (path.endsWith('.zstd')) appendFileSync(path, 'x')
  assert.ok((await zstdBody(server.port)).plain.equals(plain))
  assert.equal(await metric('damaged_total'), 1)
})

test('an answer that is cut off is not kept', async (t) => {
  const lake = await temporaryDirectory(t)
  const directory = await temporaryDirectory(t)
  await writeLake(lake)
  const { server } = await start(t, lake, directory)
  const gone = new AbortController()
  const response = await fetch(
    `http://127.0.0.1:${server.port}/api/v1/lob?series=${SERIES}&date=2026-07-01&interval=1&levels=50&format=ndjson`,
    { signal: gone.signal, headers: { 'accept-encoding': 'identity' } },
  )
  await response.body!.getReader().read()
  gone.abort()
  await until(() => server.lobPool.takenSlots === 0)
  await until(() => readdirSync(directory).length === 0)
})

test('it takes no more room than it may, and gives up what was not read for longest', async (t) => {
  const lake = await temporaryDirectory(t)
  const directory = await temporaryDirectory(t)
  await writeLake(lake)
  const one = await start(t, lake, directory)
  const { length } = await one.get()
  const bytesMax = length * 5
  // Two processes that know nothing of each other.
  const both = [await start(t, lake, directory, bytesMax), await start(t, lake, directory, bytesMax)]
  for (let step = 0; step < 12; step++) {
    const { get } = both[step & 1]!
    await get(`${QUERY.replace(',mid', step % 2 === 0 ? '' : ',spread')}&format=ndjson`)
    await get(`${QUERY}&format=${step % 3 === 0 ? 'csv' : 'ndjson'}`)
    await get(`${QUERY.replace('interval=2', `interval=${2 + (step % 3)}`)}&format=ndjson`)
    const used = kept(directory).reduce((sum, path) => sum + statSync(path).size, 0)
    assert.ok(used <= bytesMax, `${used} bytes of ${bytesMax} are used`)
  }
})

test('the answer not read for longest goes first', async (t) => {
  const directory = await temporaryDirectory(t)
  const cache = new BlockCache({ directory, bytesMax: 100_000, logger: pino({ level: 'silent' }) })
  const put = async (key: string): Promise<void> => {
    const writer = cache.keep(key, { identity: key, coding: 'identity', rows: 1 })!
    writer.take(Buffer.alloc(20_000, key))
    await writer.finish()
  }
  for (const [index, key] of ['a', 'b', 'c'].entries()) {
    await put(key)
    const time = new Date(Date.now() - 60_000 + index * 1000)
    utimesSync(join(directory, `${key}.identity`), time, time)
  }
  await cache.touch(join(directory, 'a.identity'))
  await cache.makeRoom(50_000)
  assert.deepEqual(readdirSync(directory), ['a.identity', 'c.identity'])
  assert.equal(cache.figures.evicted, 1)
})

test('a full disk and a directory that cannot be costs nobody an answer', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeLake(lake)
  await onSmallDisk(t, 2, async (disk) => {
    const { get } = await start(t, lake, join(disk.path, 'blocks'))
    const first = await get()
    assert.ok(first.length > 2 * 1024 * 1024)
    assert.ok((await get()).equals(first))
    assert.deepEqual(readdirSync(join(disk.path, 'blocks')), [], 'nothing is left of what had no room')
  })
  const file = join(await temporaryDirectory(t), 'file')
  writeFileSync(file, '')
  const { get } = await start(t, lake, join(file, 'blocks'))
  assert.ok((await get()).equals(await get()))
})

test('a clock that is put back makes no pause longer', async (t) => {
  const directory = await temporaryDirectory(t)
  const cache = new BlockCache({ directory, bytesMax: GB, logger: pino({ level: 'silent' }) })
  const canKeep = (): boolean => cache.keep('a', { identity: 'a', coding: 'identity', rows: 1 }) !== undefined
  const beganMs = performance.now()
  let passedMs = 0
  t.mock.method(performance, 'now', () => beganMs + passedMs)
  cache.pause(new Error('no room'))
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() - 86_400_000 })
  passedMs = 50_000
  assert.equal(canKeep(), false)
  passedMs = 70_000
  assert.equal(canKeep(), true)
})
