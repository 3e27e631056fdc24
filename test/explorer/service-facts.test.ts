// The tables of the data view, from metrics as the server writes them: a metric with another name or label would silently drop
// its table.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSamples } from '../../explorer/prometheus-text.ts'
import { type FactTable, healthTable, metricTables, sampleText } from '../../explorer/service-facts.ts'
import type { CollectionMetrics } from '../../server/metrics/collection-metrics.ts'
import { collectorMetrics } from '../../server/metrics/collection-metrics.ts'
import { goodLane, goodRecorder, goodTask } from '../support/collector-figures.ts'

const NOW_MS = Date.UTC(2026, 6, 3, 12)

const COLLECTED: CollectionMetrics = {
  tasks: [
    {
      ...goodTask(NOW_MS),
      runCount: 1200,
      rowCount: 34_000,
      errorCount: 2,
      lastSuccessAtMs: NOW_MS - 5000,
    },
  ],
  recorders: [{ ...goodRecorder(NOW_MS), frames: 5678, lanes: [goodLane(NOW_MS)] }],
  storage: {
    disks: [{ place: 'lake', freeBytes: 5e9, sizeBytes: 20e9, isLow: false }],
    lakeBytes: 1000,
    walBytes: {},
  },
}

function tableOf(tables: readonly FactTable[], caption: string): FactTable['rows'] {
  return tables.find((table) => table.caption === caption)?.rows ?? []
}

test('collectors, recorders, disks and lag are read from the metrics that the server writes', async () => {
  const metrics = collectorMetrics(
    () => COLLECTED,
    async () => [{ kind: 'observations', name: 'awc', atS: NOW_MS / 1000 - 600 }],
  )
  const tables = metricTables(parseSamples(await metrics.metrics()), NOW_MS)
  assert.deepEqual(tableOf(tables, 'Collectors'), [
    ['aviation-weather', '1,200', '34,000', '2', '5 s ago (2026-07-03 11:59:55Z)'],
  ])
  assert.deepEqual(tableOf(tables, 'Recorders'), [['kalshi', 'recording', '1', '6', '5,678', '0']])
  assert.deepEqual(tableOf(tables, 'Disks'), [['lake', '5.0 GB', '20.0 GB']])
  assert.deepEqual(tableOf(tables, 'Lag: how new the newest rows are'), [
    ['observations, awc', '10 min ago (2026-07-03 11:50:00Z)'],
  ])
})

test('a failed recorder is shown as down, and missing metrics show nothing', async () => {
  const recorder = { ...goodRecorder(NOW_MS), frames: 5678, isRunning: false, lanes: [] }
  const down = { ...COLLECTED, tasks: [], recorders: [recorder] }
  const tables = metricTables(parseSamples(await collectorMetrics(() => down).metrics()), NOW_MS)
  assert.deepEqual(tableOf(tables, 'Recorders'), [['kalshi', 'down', '0', '0', '5,678', '0']])
  assert.deepEqual(
    tables.map(({ caption }) => caption),
    ['Recorders', 'Disks'],
  )
})

test('sample data is marked as such', () => {
  const health = {
    status: 'ok',
    embedded_db: 'ok',
    hosted_db: 'ok',
    sync: { last_sync: null, file_count: 12, is_stale: false },
    trades: { minutes: 0, proven: 0, share: 0 },
    samples: { files: 12, records: true },
  } as const
  assert.equal(sampleText(health), 'Invented sample data')
  assert.equal(
    sampleText({ ...health, samples: { files: 3, records: false } }),
    'Some of the data is an invented sample',
  )
  assert.equal(sampleText({ ...health, samples: { files: 0, records: false } }), '')
  assert.deepEqual(healthTable(health).rows.at(-1), ['Samples', '12 invented files, invented records'])
})
