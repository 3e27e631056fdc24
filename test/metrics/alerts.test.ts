// Every alert fires for its fault and clears when the fault is gone, evaluated on the scraped text.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import type { CollectionMetrics } from '../../server/metrics/collection-metrics.ts'
import type { LakeBooksFigures } from '../../server/health/lake-books.ts'
import type { StorageFigures } from '../../server/health/storage-watch.ts'
import type { LaneFigures } from '../../server/feed/feed-lane.ts'
import type { RecorderMetrics } from '../../server/recorder/recorder-metrics.ts'
import type { TaskMetrics } from '../../server/ingest/task-loop.ts'
import type { NewestRow } from '../../server/storage/newest-rows.ts'
import { AnswerCache } from '../../server/answers/answer-cache.ts'
import { ServiceMetrics } from '../../server/metrics/service-metrics.ts'
import { firing, metricsOf, readAlertRules } from '../support/alert-rules.ts'
import { goodLane, goodRecorder, goodTask } from '../support/collector-figures.ts'

const RULES = readAlertRules(fileURLToPath(new URL('../../../operations/alerts.yml', import.meta.url)))
const NOW_MS = Date.now()
const MINUTE_MS = 60_000

interface World {
  task: TaskMetrics
  lane: LaneFigures
  recorder: Omit<RecorderMetrics, 'lanes'>
  storage: StorageFigures
  newest: readonly NewestRow[]
  books: LakeBooksFigures
  conflictCount: number
}

/** The metrics of a healthy system. */
function goodWorld(): World {
  return {
    task: goodTask(NOW_MS),
    lane: goodLane(NOW_MS),
    recorder: { ...goodRecorder(NOW_MS), fold: folded(NOW_MS) },
    storage: { disks: [disk(50, false)], lakeBytes: 1000, walBytes: { kalshi: 100 } },
    newest: newestRows(NOW_MS),
    books: { sampleCount: 0, coveredToMs: { kalshi: NOW_MS } },
    conflictCount: 0,
  }
}

function folded(publishedAtMs: number): NonNullable<RecorderMetrics['fold']> {
  return {
    kind: 'report',
    position: { segment: 1, offset: 8 },
    messages: 1,
    events: 1,
    badLines: 0,
    gaps: {},
    movedLines: 0,
    privateFrames: {},
    lostParts: 0,
    closedHours: 0,
    publications: 1,
    publishMs: 1,
    publishedAtMs,
    gappedMarkets: [],
    gappedAtMs: 0,
  }
}

function disk(freeBytes: number, isLow: boolean) {
  return { place: 'lake' as const, freeBytes, sizeBytes: 100, isLow }
}

function newestRows(atMs: number): NewestRow[] {
  return [
    { kind: 'station', name: 'NYC', atS: atMs / 1000 },
    { kind: 'observations', name: 'awc', atS: atMs / 1000 },
  ]
}

/** The fault for each alert. */
const FAULTS: Readonly<Record<string, (world: World) => Partial<World>>> = {
  BookcastTaskFailing: ({ task }) => ({ task: { ...task, failureCount: 4 } }),
  BookcastTaskSilent: ({ task }) => ({ task: { ...task, lastSuccessAtMs: NOW_MS - 181 * MINUTE_MS } }),
  BookcastObservationsStale: () => ({ newest: newestRows(NOW_MS - 121 * MINUTE_MS) }),
  BookcastLiveWeatherStale: () => ({ newest: newestRows(NOW_MS - 91 * MINUTE_MS) }),
  BookcastLiveWeatherEmpty: ({ task }) => ({
    task: { ...task, rowCount: 0, emptyRunCount: task.runCount, lastRowsAtMs: null },
    newest: [],
  }),
  BookcastRecorderDown: ({ recorder }) => ({ recorder: { ...recorder, isRunning: false } }),
  BookcastRecorderDisconnected: ({ lane }) => ({ lane: { ...lane, isConnected: false } }),
  BookcastFeedSilent: ({ recorder }) => ({ recorder: { ...recorder, lastFrameMs: NOW_MS - 6 * MINUTE_MS } }),
  BookcastBooksBehind: ({ recorder }) => ({
    recorder: { ...recorder, fold: folded(NOW_MS - 3 * MINUTE_MS) },
  }),
  BookcastMarketsRefused: ({ lane }) => ({ lane: { ...lane, refused: 1 } }),
  BookcastMarketsUnplaced: ({ recorder }) => ({ recorder: { ...recorder, unplacedMarkets: 1 } }),
  BookcastDiskLow: ({ storage }) => ({ storage: { ...storage, disks: [disk(9, true)] } }),
  BookcastDiskFull: ({ storage }) => ({ storage: { ...storage, disks: [disk(1, false)] } }),
  BookcastSyncConflict: () => ({ conflictCount: 1 }),
  BookcastBooksOld: ({ books }) => ({
    books: { ...books, coveredToMs: { kalshi: NOW_MS - 11 * MINUTE_MS } },
  }),
  BookcastSamplesServed: ({ books }) => ({ books: { ...books, sampleCount: 12 } }),
}

async function scrape(world: World): Promise<string> {
  const { task, lane, recorder, storage, newest, books, conflictCount } = world
  const collection: CollectionMetrics = {
    tasks: [task],
    recorders: [{ ...recorder, lanes: [lane] }],
    syncs: [{ task: 'lake-push', conflictCount }],
    storage,
  }
  const metrics = new ServiceMetrics({
    answerCache: new AnswerCache(0),
    takenSlots: () => 0,
    lanes: () => ({}),
    queuedTasks: () => ({}),
    ingestAges: async () => [],
    collection: () => collection,
    newestRows: async () => newest,
    tradeProof: async () => undefined,
    lakeBooks: () => books,
  })
  try {
    return await metrics.registry.metrics()
  } finally {
    metrics.close()
  }
}

async function alertsOf(world: World): Promise<string[]> {
  const text = await scrape(world)
  return RULES.filter(({ expression }) => firing(expression, text, NOW_MS / 1000).length > 0).map(
    ({ name }) => name,
  )
}

test('every alert names existing metrics', async () => {
  const text = await scrape(goodWorld())
  for (const { name, expression } of RULES) {
    for (const metric of metricsOf(expression)) assert.match(text, new RegExp(`^${metric}[ {]`, 'm'), name)
  }
  assert.deepEqual(RULES.map(({ name }) => name).toSorted(), Object.keys(FAULTS).toSorted())
})

test('the dashboard names existing metrics', async () => {
  const text = await scrape(goodWorld())
  const dashboard = readFileSync(new URL('../../../operations/grafana.json', import.meta.url), 'utf8')
  const names = new Set(dashboard.match(/\b(?:bookcast|nodejs|process)_[a-z0-9_]+/g))
  assert.ok(names.size > 20)
  for (const name of names) {
    const metric = name.replace(/_bucket$/, '')
    assert.match(text, new RegExp(`^# TYPE ${metric} `, 'm'), name)
  }
})

test('every alert fires for its fault, and clears with it', async () => {
  assert.deepEqual(await alertsOf(goodWorld()), [])
  for (const { name } of RULES) {
    const world = goodWorld()
    const fault = FAULTS[name]
    assert.ok(fault !== undefined, name)
    const fired = await alertsOf({ ...world, ...fault(world) })
    // A live feed without new rows soon also triggers the alert for a single station.
    const others = fired.filter((each) => each !== name && !each.endsWith('Stale'))
    assert.ok(fired.includes(name), `${name} fires`)
    assert.deepEqual(others, [], `only ${name} fires`)
    assert.deepEqual(await alertsOf(goodWorld()), [], `${name} clears`)
  }
})
