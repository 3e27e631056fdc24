// The write-ahead log alone: written records are read back, damage is reported, limits hold.

import assert from 'node:assert/strict'
import { readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { WalReader } from '../../server/recorder/wal-reader.ts'
import { WAL_HEADER_BYTES, WAL_KIND } from '../../server/recorder/wal-record.ts'
import type { WalRecord } from '../../server/recorder/wal-record.ts'
import { WAL_MAGIC, listWalSegments } from '../../server/recorder/wal-segment.ts'
import type { WalPosition } from '../../server/recorder/wal-segment.ts'
import { WriteAheadLog } from '../../server/recorder/write-ahead-log.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const HOUR_NS = 3_600_000_000_000n
const START = 1_782_316_800_000_000_000n

interface Written {
  readonly recvTs: bigint
  readonly text: string
}

async function write(directory: string, items: readonly Written[], segmentBytes = 1e9): Promise<WalPosition> {
  const log = await WriteAheadLog.open({
    directory,
    onSynced: () => {},
    onCongestion: () => {},
    onFailed: (error) => assert.fail(error),
    bounds: { commitIntervalMs: 0, segmentBytes },
  })
  for (const [index, { recvTs, text }] of items.entries()) {
    const payload = Buffer.from(text)
    log.append({ kind: WAL_KIND.frame, lane: index % 3, begunMs: 7, start: 1, n: index, recvTs, payload })
    if (index % 5 === 4) await new Promise((resolve) => setImmediate(resolve))
  }
  await log.close()
  return log.position
}

async function readAll(directory: string, limit?: WalPosition): Promise<WalRecord[]> {
  const segments = await listWalSegments(directory)
  const end = limit ?? { segment: segments.at(-1)!.number, offset: Number.MAX_SAFE_INTEGER }
  const reader = new WalReader(directory, { segment: segments[0]!.number, offset: 0 })
  const records: WalRecord[] = []
  for (let piece = await reader.next(end); piece !== undefined; piece = await reader.next(end)) {
    records.push(...piece.records.map((record) => ({ ...record, payload: Buffer.from(record.payload) })))
  }
  await reader.close()
  return records
}

test('reads back all written records, across segments, hours and restarts', async (t) => {
  const root = await temporaryDirectory(t)
  let run = 0
  const item = fc.record({
    text: fc.string({ maxLength: 300 }),
    waitNs: fc.bigInt({ min: 0n, max: HOUR_NS / 4n }),
  })
  const property = fc.asyncProperty(
    fc.array(fc.array(item, { minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 4 }),
    fc.integer({ min: 100, max: 4000 }),
    async (starts, segmentBytes) => {
      const directory = join(root, String(run++))
      let recvTs = START
      const all: Written[] = []
      for (const items of starts) {
        const written = items.map(({ text, waitNs }) => ({ text, recvTs: (recvTs += waitNs) }))
        await write(directory, written, segmentBytes)
        all.push(...written)
      }
      const records = await readAll(directory)
      assert.deepEqual(
        records.map(({ recvTs: ts, payload, kind, begunMs }) => [ts, payload.toString(), kind, begunMs]),
        all.map(({ recvTs: ts, text }) => [ts, text, WAL_KIND.frame, 7]),
      )
    },
  )
  await fc.assert(property, { numRuns: 40, seed: 11 })
})

test('a torn end loses only incomplete records, and later segments are read', async (t) => {
  const directory = await temporaryDirectory(t)
  const items = Array.from({ length: 6 }, (_, index) => ({ recvTs: START, text: `message ${index}` }))
  await write(directory, items)
  const { path } = (await listWalSegments(directory))[0]!
  const whole = await readFile(path)
  for (let cut = WAL_MAGIC.length; cut < whole.length; cut += 7) {
    await writeFile(path, whole)
    await truncate(path, cut)
    const recordBytes = WAL_HEADER_BYTES + 'message 0'.length
    const complete = Math.floor((cut - WAL_MAGIC.length) / recordBytes)
    const isTorn = (cut - WAL_MAGIC.length) % recordBytes !== 0
    const records = await readAll(directory)
    assert.deepEqual(
      records.map(({ kind }) => kind),
      [...Array.from({ length: complete }, () => WAL_KIND.frame), ...(isTorn ? [WAL_KIND.lost] : [])],
      `cut at ${cut}`,
    )
  }
})

test('any changed byte is detected', async (t) => {
  const directory = await temporaryDirectory(t)
  await write(directory, [{ recvTs: START, text: 'the only message' }])
  const { path } = (await listWalSegments(directory))[0]!
  const whole = await readFile(path)
  for (let at = WAL_MAGIC.length; at < whole.length; at++) {
    const damaged = Buffer.from(whole)
    damaged[at]! ^= 0x10
    await writeFile(path, damaged)
    const records = await readAll(directory)
    assert.deepEqual(
      records.map(({ kind }) => kind),
      [WAL_KIND.lost],
      `byte ${at}`,
    )
  }
})

test('a missing segment is reported as a loss', async (t) => {
  const directory = await temporaryDirectory(t)
  for (const text of ['a', 'b', 'c']) await write(directory, [{ recvTs: START, text }])
  const [, second] = await listWalSegments(directory)
  await rm(second!.path)
  const records = await readAll(directory)
  assert.deepEqual(
    records.map(({ kind, payload }) => (kind === WAL_KIND.lost ? 'lost' : payload.toString())),
    ['a', 'lost', 'c'],
  )
})

test('segments that a directory listing does not show yet are read once it does, without loss', async (t) => {
  const [directory, away] = [
    join(await temporaryDirectory(t), 'log'),
    join(await temporaryDirectory(t), 'away'),
  ]
  for (const text of ['a', 'b', 'c']) await write(directory, [{ recvTs: START, text }])
  const end = { segment: 3, offset: WAL_MAGIC.length + WAL_HEADER_BYTES + 1 }
  const reader = new WalReader(directory, { segment: 1, offset: 0 })
  t.after(() => reader.close())
  const texts = async (): Promise<string[]> =>
    (await reader.next(end))?.records.map(({ payload }) => payload.toString()) ?? []
  assert.deepEqual(await texts(), ['a'])
  await rename(directory, away)
  await assert.rejects(reader.next(end), /Cannot read segment 3 of the log/)
  await rm(directory, { recursive: true })
  await rename(away, directory)
  assert.deepEqual([...(await texts()), ...(await texts()), ...(await texts())], ['b', 'c'])
})

test('always reports the end of the synced records, even while a new segment is started', async (t) => {
  const directory = await temporaryDirectory(t)
  const synced: string[] = [JSON.stringify({ segment: 1, offset: 0 })]
  const seen = new Set<string>()
  const log = await WriteAheadLog.open({
    directory,
    onSynced: (position) => synced.push(JSON.stringify(position)),
    onCongestion: () => {},
    onFailed: (error) => assert.fail(error),
    bounds: { commitIntervalMs: 0 },
  })
  for (let hour = 0n; hour < 4n; hour++) {
    log.append({
      kind: WAL_KIND.frame,
      lane: 0,
      begunMs: 1,
      start: 1,
      n: 0,
      recvTs: START + hour * HOUR_NS,
      payload: Buffer.alloc(100),
    })
    // Checked in every turn of the event loop: each step of a commit takes at least one.
    while (log.queuedBytes > 0) {
      seen.add(JSON.stringify(log.position))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await log.close()
  assert.equal(synced.length, 5)
  assert.deepEqual([...seen], synced.slice(0, -1))
})

test('a reader that follows the reported end gets each record once, however often the log starts a new segment', async (t) => {
  const directory = await temporaryDirectory(t)
  const log = await WriteAheadLog.open({
    directory,
    onSynced: () => {},
    onCongestion: () => {},
    onFailed: (error) => assert.fail(error),
    bounds: { commitIntervalMs: 0, segmentBytes: 4_000 },
  })
  const reader = new WalReader(directory, { segment: 1, offset: 0 })
  t.after(() => reader.close())
  const read: string[] = []
  const follow = async (): Promise<void> => {
    for (let piece = await reader.next(log.position); piece; piece = await reader.next(log.position))
      for (const { kind, payload } of piece.records)
        read.push(kind === WAL_KIND.lost ? 'lost' : payload.toString())
  }
  const written: string[] = []
  const writing = new AbortController()
  const following = (async () => {
    while (!writing.signal.aborted) {
      await follow()
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  for (let index = 0; index < 600; index++) {
    const text = `${index} ${'x'.repeat((index * 37) % 700)}`
    written.push(text)
    // Sometimes a new hour starts, too.
    const recvTs = START + BigInt(Math.floor(index / 90)) * HOUR_NS
    log.append({
      kind: WAL_KIND.frame,
      lane: 0,
      begunMs: 1,
      start: 1,
      n: index,
      recvTs,
      payload: Buffer.from(text),
    })
    // The number of records per commit varies.
    if (index % 4 === 0) while (log.queuedBytes > 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await log.close()
  writing.abort()
  await following
  await follow()
  assert.ok((await listWalSegments(directory)).length > 40)
  assert.deepEqual(read, written)
})

test('applies backpressure to sources only while the disk is behind', async (t) => {
  const directory = await temporaryDirectory(t)
  const congestion: boolean[] = []
  let records = 0
  const log = await WriteAheadLog.open({
    directory,
    onSynced: (_, count) => {
      records += count
    },
    onCongestion: (isCongested) => congestion.push(isCongested),
    onFailed: (error) => assert.fail(error),
    bounds: { queueBytesHigh: 10_000 },
  })
  const payload = Buffer.alloc(1000)
  for (let index = 0; index < 100; index++) {
    log.append({ kind: WAL_KIND.frame, lane: 0, begunMs: 1, start: 1, n: index, recvTs: START, payload })
  }
  assert.deepEqual(congestion, [true])
  await log.close()
  assert.deepEqual([congestion, records, log.queuedBytes], [[true, false], 100, 0])
})

test('reads records larger than its buffer, one after the other', async (t) => {
  const directory = await temporaryDirectory(t)
  const lengths = [5, 5_000_000, 5_000_000, 1_500_000, 1_100_000, 900_000, 2_000_000, 9]
  const texts = lengths.map((length) => 'x'.repeat(length))
  await write(
    directory,
    texts.map((text) => ({ recvTs: START, text })),
  )
  const records = await readAll(directory)
  assert.deepEqual(
    records.map(({ payload }) => payload.length),
    texts.map(({ length }) => length),
  )
})
