// Every benchmark runs at smoke size against the real server. The tests check rows and hashes, never times.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { BenchLake } from '../../bench/bench-lake.ts'
import { runCoverage } from '../../bench/coverage.ts'
import { runBackpressure } from '../../bench/lob-backpressure.ts'
import { runEndToEnd } from '../../bench/lob-end-to-end.ts'
import { runMemory } from '../../bench/lob-memory.ts'
import { runSeeking } from '../../bench/lob-seeking.ts'
import { reportMarkdown } from '../../bench/report.ts'
import type { BenchReport } from '../../bench/report.ts'
import { startBenchServersCold } from '../support/cold-workers.ts'
import { inFullGear } from '../support/effort.ts'

startBenchServersCold()

let lake: BenchLake
before(async () => {
  lake = await BenchLake.create()
})
after(() => lake.remove())

function figure(report: BenchReport, name: string): number {
  const found = report.figures.find((candidate) => candidate.name === name)
  assert.ok(found !== undefined, `${name} in ${JSON.stringify(report.figures)}`)
  assert.ok(Number.isFinite(found.value), name)
  return found.value
}

test('the end-to-end benchmark gets the same bytes from the service and every peer', async () => {
  const report = await runEndToEnd(lake, 'smoke')
  assert.equal(figure(report, 'rows'), 5 * 1440)
  const { 'bookcast, 50 levels': deep, ...sameRows } = report.hashes
  assert.equal(Object.keys(sameRows).length, 5)
  assert.equal(new Set(Object.values(sameRows)).size, 1)
  assert.notEqual(deep, sameRows['bookcast, 10 levels'])
  assert.match(reportMarkdown(report), /\| rows \| 7,200 \|/)
})

test('the seeking benchmark requests parts of the same day', async () => {
  const report = await runSeeking(lake, 'smoke')
  assert.equal(figure(report, 'day: rows'), 5 * 1440)
  assert.equal(figure(report, 'hour 0: rows'), 5 * 60)
  assert.equal(figure(report, 'hour 23: rows'), 5 * 60)
  assert.equal(figure(report, 'day, interval 3600: rows'), 5 * 24)
  assert.equal(figure(report, 'ten markets: rows'), 10 * 1440)
  assert.equal(figure(report, 'busiest of ten: rows'), 1440)
  assert.equal(new Set(Object.values(report.hashes)).size, 7)
})

test(
  'the memory benchmark reads the server process, or reports that it cannot',
  { skip: inFullGear },
  async () => {
    const report = await runMemory(lake, 'smoke')
    if (process.platform === 'linux') {
      for (const { name } of report.figures) figure(report, name)
      assert.ok(figure(report, 'parquet: body') > 0)
      assert.ok(figure(report, 'resident after 20 requests') > 10)
    } else {
      assert.deepEqual(report.figures, [])
      assert.match(report.notes.join(), /not measured/)
    }
  },
)

test('the coverage benchmark sends its request to a settled server twice', { skip: inFullGear }, async () => {
  const report = await runCoverage(lake, 'smoke')
  assert.ok(figure(report, 'first: wall time') > 0)
  assert.ok(figure(report, 'again: wall time') > 0)
})

test('the backpressure benchmark has slow readers while it probes', { skip: inFullGear }, async () => {
  const report = await runBackpressure(lake, 'smoke')
  assert.ok(figure(report, 'slow clients read') > 0)
  assert.ok(figure(report, 'slow clients: /livez p99') > 0)
})
