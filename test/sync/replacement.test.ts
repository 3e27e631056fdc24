// Which file may replace which, by the coverage in the files' footers.

import assert from 'node:assert/strict'
import { cp, mkdir, readFile, rm } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { type LakeSyncOptions, type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { logSync } from '../../server/sync/sync-log.ts'
import { EVENT_ADD, EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'
import { readTree } from '../support/lake-tree.ts'
import { bookEvent, DAY_START, HOUR, pathOfDate, SECOND, SERIES } from '../support/recorded-events.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DATE = '2026-07-01'
const DAY_MS = Date.parse(DATE)

interface Day {
  readonly fromHour?: bigint
  readonly toHour: bigint
  readonly markets?: readonly string[]
  readonly changes?: number
  readonly gaps?: number
  readonly isSample?: boolean
}

/** Writes one date's file like a recorder of these hours. */
async function record(lake: string, day: Day): Promise<void> {
  const { fromHour = 0n, toHour, markets = ['M-A'], changes = 10, gaps = 0, isSample = false } = day
  const from = DAY_START + fromHour * HOUR
  const writer = new LobRecordingWriter({ lake, source: 'kalshi', onExisting: 'replace', isSample })
  try {
    writer.cover(SERIES, from)
    for (const market of markets) {
      writer.append(SERIES, bookEvent(market, from, EVENT_CLEAR))
      for (let change = 0; change < changes; change++) {
        writer.append(SERIES, bookEvent(market, from + BigInt(change) * SECOND, EVENT_ADD, 0, 4500, 100))
      }
      for (let gap = 0; gap < gaps; gap++) {
        const ts = from + BigInt(changes + 2 * gap) * SECOND
        writer.append(SERIES, bookEvent(market, ts, EVENT_GAP))
        writer.append(SERIES, bookEvent(market, ts + SECOND, EVENT_CLEAR))
      }
    }
    writer.cover(SERIES, DAY_START + toHour * HOUR)
    await writer.finish()
  } finally {
    await writer.discard()
  }
}

const keyOf = (lake: string): string => relative(lake, pathOfDate(lake, DATE)).split(sep).join('/')

async function push(
  lake: string,
  remote: string,
  options: Partial<LakeSyncOptions> = {},
): Promise<LakeSyncResult> {
  return await syncLake({ lake, remote: new DirectoryStore(remote), direction: 'push', ...options })
}

async function places(t: TestContext): Promise<{ old: string; anew: string; remote: string }> {
  return {
    old: await temporaryDirectory(t),
    anew: await temporaryDirectory(t),
    remote: await temporaryDirectory(t),
  }
}

test('a collector that starts anew does not replace files in object storage by smaller ones', async (t) => {
  const { old, anew, remote } = await places(t)
  const whole: Day = { toHour: 12n, markets: ['M-A', 'M-B'] }
  await record(old, whole)
  await push(old, remote)
  const before = await readTree(remote)
  const less: readonly [Day, RegExp][] = [
    [{ ...whole, fromHour: 9n, toHour: 13n }, /begins at 2026-07-01T09/],
    [{ ...whole, toHour: 11n, changes: 50 }, /ends at 2026-07-01T11/],
    [{ toHour: 13n, markets: ['M-A'], changes: 90 }, /lacks the market M-B/],
    [{ ...whole, toHour: 12n, changes: 1 }, /rows, not/],
    [{ ...whole, toHour: 13n, changes: 40, gaps: 1 }, /fewer gaps/],
  ]
  for (const [day, reason] of less) {
    await record(anew, day)
    const { conflicts, conflictReasons } = await push(anew, remote)
    assert.deepEqual(conflicts, [keyOf(anew)])
    assert.match(conflictReasons.get(keyOf(anew)) ?? '', reason)
    assert.deepEqual(await readTree(remote), before)
  }
  // A merged file covers as much, whichever collector wrote it.
  await record(anew, { ...whole, toHour: 13n })
  const merged = await push(anew, remote)
  assert.deepEqual([merged.conflicts, merged.transferredCount], [[], 1])
  assert.deepEqual(await readTree(remote), await readTree(anew))
})

test('even its own object is not replaced by a file that covers less, except with --replace', async (t) => {
  const { old, remote } = await places(t)
  await record(old, { toHour: 12n })
  await push(old, remote)
  const before = await readTree(remote)
  await rm(join(old, 'lob'), { recursive: true })
  await record(old, { fromHour: 12n, toHour: 13n })
  assert.deepEqual((await push(old, remote)).conflicts, [keyOf(old)])
  assert.deepEqual(await readTree(remote), before)
  assert.deepEqual((await push(old, remote, { replace: true })).conflicts, [])
  assert.deepEqual(await readTree(remote), await readTree(old))
})

test('a recording that continues is pushed with its gaps', async (t) => {
  const { old, remote } = await places(t)
  for (const [toHour, gaps] of [
    [1n, 0],
    [2n, 1],
    [9n, 3],
  ] as const) {
    await record(old, { toHour, gaps })
    assert.deepEqual((await push(old, remote)).conflicts, [])
    assert.deepEqual(await readTree(remote), await readTree(old))
  }
})

test('samples are never pushed, and real data replaces them', async (t) => {
  const { old, anew, remote } = await places(t)
  await cp(SAMPLE_LAKE, old, { recursive: true })
  const { sampleCount, transferredCount, conflicts } = await push(old, remote)
  assert.deepEqual([sampleCount, transferredCount, conflicts], [15, 0, []])
  assert.deepEqual(await readTree(remote), {})

  // In a replica that started with sample books, a pull replaces them.
  await record(anew, { toHour: 1n })
  await push(anew, remote)
  const replica = await temporaryDirectory(t)
  await record(replica, { toHour: 23n, changes: 500, isSample: true })
  const pull = { lake: replica, remote: new DirectoryStore(remote), direction: 'pull' } as const
  assert.deepEqual((await syncLake(pull)).conflicts, [])
  assert.deepEqual(await readTree(replica), await readTree(remote))

  // A push replaces samples that an earlier version pushed to object storage.
  const spoilt = await temporaryDirectory(t)
  const path = pathOfDate(spoilt, DATE)
  await mkdir(dirname(path), { recursive: true })
  await record(spoilt, { toHour: 23n, isSample: true })
  assert.deepEqual((await push(anew, spoilt)).conflicts, [])
  assert.deepEqual(await readFile(path), await readFile(pathOfDate(anew, DATE)))
})

/** A log of pushes that collects the levels of its lines. */
function loggedLevels() {
  const levels: string[] = []
  const logger = pino(
    { level: 'info', formatters: { level: (label) => ({ level: label }) } },
    { write: (line: string) => void levels.push((JSON.parse(line) as { level: string }).level) },
  )
  return { log: logSync(logger, 'pushed'), levels }
}

function resultOf(
  reasons: readonly (readonly [string, string])[],
  failures: LakeSyncResult['failures'] = [],
): LakeSyncResult {
  return {
    objectCount: 1,
    transferredCount: 0,
    transferredBytes: 0,
    removedCount: 0,
    conflicts: reasons.map(([key]) => key),
    conflictReasons: new Map(reasons),
    sampleCount: 0,
    failures,
  }
}

const CONFLICT = [['lob/x.parquet', 'it covers less']] as const
/** Failures of object storage that refuses everything. */
const REFUSED = ['a', 'b', 'c'].map((key) => ({ key, reason: 's3://lake: HTTP 503' }))

test('a lasting conflict, error or failure is logged once', async () => {
  const { log, levels } = loggedLevels()
  for (const reasons of [CONFLICT, CONFLICT, [], CONFLICT]) log.onResult(resultOf(reasons))
  assert.deepEqual(levels, ['error', 'error'])
  levels.length = 0
  // The number of failed objects grows meanwhile.
  for (const count of [1, 2, 3, 0, 3]) log.onResult(resultOf([], REFUSED.slice(0, count)))
  assert.deepEqual(levels, ['warn', 'warn'])
  levels.length = 0
  for (const error of ['HTTP 503', 'HTTP 503', 'HTTP 403', 'HTTP 403']) log.onError(new Error(error))
  log.onResult(resultOf([]))
  log.onError(new Error('HTTP 403'))
  assert.deepEqual(levels, ['warn', 'warn', 'warn'])
})

test('a lasting conflict, error or failure is logged again every hour', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: DAY_MS })
  const attempts = {
    conflict: (log) => log.onResult(resultOf(CONFLICT)),
    failure: (log) => log.onResult(resultOf([], REFUSED)),
    error: (log) => log.onError(new Error('HTTP 503')),
  } satisfies Record<string, (log: ReturnType<typeof logSync>) => void>
  for (const [what, attempt] of Object.entries(attempts)) {
    const { log, levels } = loggedLevels()
    const minutes: number[] = []
    for (let minute = 0; minute < 150; minute++) {
      attempt(log)
      if (levels.splice(0).length > 0) minutes.push(minute)
      t.mock.timers.tick(60_000)
    }
    assert.deepEqual(minutes, [0, 61, 122], what)
  }
})
