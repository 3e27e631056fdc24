// The cost of raw segments: how soon a message of a recorder is in the bucket, and how many bytes an open day pushes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readManifest, writeManifest } from '../../server/raw/date-manifest.ts'
import type { SegmentFacts } from '../../server/raw/segment-writer.ts'
import { RawHours } from '../../server/recorder/raw-hours.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { pushNewSegments, RAW_PUSH_INTERVAL_MS } from '../../server/sync/open-dates.ts'
import { TailedStore } from '../../server/sync/tailed-store.ts'
import { rawFileOfKey } from '../../shared/lake-layout.ts'
import { RECORDER_PUBLISH_INTERVAL_MS } from '../../shared/limits.ts'
import { runs } from '../support/effort.ts'
import { type S3Server, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { foldHere, folderOf, unite, SOURCE, writeSegment } from './raw-lakes.ts'

const DATE = '2026-06-24'
/** Hours of the date, which is folded after every slice. */
const HOURS = runs(2, 3)
const SLICE_MINUTES = runs(6, 3)
const SIGNAL = new AbortController().signal

test('a message is in the bucket 30 s after the recorder received it', async (t) => {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  const startMs = Date.parse(`${DATE}T03:00:00Z`)
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const raw = new RawHours({
    lake,
    source: SOURCE,
    recorder: 'host1',
    isShared: () => false,
    hasRaw: () => true,
    onDate: async () => {},
    onWarning: (text) => assert.fail(text),
  })
  const clock = { nowMs: () => startMs + nowMs, sleep: async () => {} }
  const options = { lake, remote: server.store(), sources: [SOURCE] as const, clock, signal: SIGNAL }
  const waiting: number[] = []
  let slices = 0
  for (; nowMs < 120_000; nowMs += 1_000) {
    const recvTs = BigInt(startMs + nowMs) * 1_000_000n
    raw.add(
      startMs / 3_600_000,
      `{"recv_ts":"${recvTs}","connection":"host1/1/0/1","n":${nowMs / 1_000}}`,
      recvTs,
    )
    waiting.push(nowMs)
    // The recorder writes a slice only when it publishes; the push runs just before that, which is the worst case.
    if (nowMs % RAW_PUSH_INTERVAL_MS === 0) {
      const { transferredCount, failures } = await pushNewSegments(options)
      assert.deepEqual(failures, [])
      if (transferredCount > 0)
        waiting.splice(
          0,
          waiting.findIndex((ms) => ms > slices),
        )
    }
    if (nowMs % RECORDER_PUBLISH_INTERVAL_MS === 0 && raw.isDue) {
      await raw.flush()
      slices = nowMs
    }
    assert.ok(nowMs - waiting[0]! <= 30_000, `a message waits for ${nowMs - waiting[0]!} ms`)
  }
  assert.ok(slices > 90_000)
})

test('an open day pushes at most 1.3 times the bytes of its derived files plus its raw segments', async (t) => {
  const [server, derived] = [await startS3Server(t), await startS3Server(t)]
  const lake = await temporaryDirectory(t)
  let nowMs = Date.parse(`${DATE}T00:00:00Z`)
  const clock = { nowMs: () => nowMs, sleep: async () => {} }
  const remote = new TailedStore(server.store(), clock.nowMs)
  // The derived files alone, as pushed without raw segments.
  const other = new TailedStore(derived.store('derived'), clock.nowMs)
  for (let hour = 0; hour < HOURS; hour++) {
    const plan = { recorder: 'host1', date: DATE, hour }
    const slices: SegmentFacts[] = []
    for (let minute = 0; minute < 60; minute += SLICE_MINUTES) {
      nowMs += SLICE_MINUTES * 60_000
      const firstLine = minute === 0 ? 0 : minute + 1
      const minutes = { fromMinute: minute, toMinute: minute + SLICE_MINUTES }
      slices.push(await writeSegment(lake, { ...plan, ...minutes, firstLine }))
      await foldHere(lake, [DATE])
      await pushed({ lake, remote, clock })
      await pushed({ lake, remote: other, clock, raw: false })
    }
    const { name, lines, firstTs, lastTs } = await unite(
      lake,
      { ...plan, fromMinute: 0, toMinute: 60 },
      slices,
    )
    const manifest = (await readManifest(lake, SOURCE, DATE))!
    const kept = manifest.segments.filter((segment) => !slices.some((slice) => slice.name === segment.name))
    await writeManifest(lake, { ...manifest, segments: [...kept, { name, lines, firstTs, lastTs }] })
  }
  const rawBytes = putBytes(server, (key) => rawFileOfKey(key)?.segment !== undefined)
  const files = putBytes(derived, () => true)
  const all = putBytes(server, () => true)
  t.diagnostic(`${all} bytes: ${rawBytes} of raw segments; the derived files alone are ${files} bytes`)
  assert.ok(
    all - rawBytes <= 1.3 * files,
    `${all - rawBytes} bytes beside the raw segments; ${files} without them`,
  )
})

async function pushed(options: Omit<Parameters<typeof syncLake>[0], 'direction' | 'folder'>): Promise<void> {
  const result = await syncLake({
    ...options,
    direction: 'push',
    folder: folderOf(options.lake),
    isRepeated: true,
  })
  assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
}

function putBytes({ requests }: S3Server, isMeant: (key: string) => boolean): number {
  return requests.reduce(
    (sum, { method, key, bytes }) => sum + (method === 'PUT' && isMeant(key) ? bytes : 0),
    0,
  )
}
