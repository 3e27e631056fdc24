// interface.md sections 3, 4, 7 and 9: states, content types, statuses, paths; each row on a real response.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeSeries } from '../../server/storage/catalogue-store.ts'
import { type JsonRecord, seriesRecord, serviceOfThisFile } from '../support/conformance-service.ts'
import { readProblem } from '../support/test-server.ts'
import { cellsOf } from './contract-table.ts'
import { FORMAT_ROWS, STATUS_ROWS } from './status-rows.ts'
import { STATE_ROWS } from './value-rows.ts'

const file = serviceOfThisFile({
  prepare: (_, postgres) =>
    postgres.transaction(async (transaction) => {
      await writeSeries(transaction, [seriesRecord('KXHIGHOLD')])
    }),
})

for (const { contract, target, field, values } of STATE_ROWS) {
  test(`3. ${contract}`, async (t) => {
    const seen = new Set<unknown>()
    const look = async (): Promise<void> => {
      const answer: unknown = JSON.parse(await file.service.text(target))
      for (const record of [answer].flat() as JsonRecord[]) seen.add(record[field])
    }
    await look()
    if (target === '/health') {
      while (!seen.has('ok')) await look()
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 3 * 3_600_000 })
      await look()
    }
    for (const value of values) assert.ok(seen.has(value), `${field} is ${value} somewhere`)
    // The statuses of markets are the exchange's; the other lists are complete.
    if (!contract.includes('Market')) assert.equal(seen.size, values.length)
  })
}

for (const { contract, begins } of FORMAT_ROWS) {
  const [format, contentType] = cellsOf(contract)
  test(`4.4 output formats: ${contract}`, async () => {
    const response = await file.service.get(
      `/api/v1/lob?series=KXHIGHNY&date=2026-07-01&hour=18&interval=3600&format=${format}`,
    )
    assert.equal(response.headers.get('content-type'), contentType)
    assert.match(Buffer.from(await response.arrayBuffer()).toString('latin1'), begins)
  })

  test(`the record endpoints give ${format} the content type ${contentType} too`, async () => {
    for (const target of [
      '/api/v1/candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-01&limit=3',
      '/api/v1/observations?station=NYC&from=2026-07-01&to=2026-07-01&limit=3',
      '/api/v1/climate?station=NYC&limit=3',
    ]) {
      const response = await file.service.get(`${target}&format=${format}`)
      assert.equal(response.headers.get('content-type'), contentType, target)
      assert.match(Buffer.from(await response.arrayBuffer()).toString('latin1'), begins)
    }
  })
}

for (const { contract, targets, status } of STATUS_ROWS) {
  test(`7. ${contract}`, async () => {
    assert.equal(cellsOf(contract)[0], String(status))
    for (const target of targets) {
      const response = await file.service.get(target)
      assert.equal(response.status, status, target)
      assert.equal((await readProblem(response)).status, status)
    }
  })
}

const DATA_TARGETS = [
  '/api/v1/candles?limit=1',
  '/api/v1/observations?limit=1',
  '/api/v1/climate?limit=1',
  '/api/v1/lob?series=KXHIGHNY&date=2026-07-01&interval=3600',
  '/api/v1/analysis/climate-gaps?station=NYC',
  '/api/v1/series',
  '/api/v1/series/KXHIGHNY',
  '/api/v1/markets',
  '/api/v1/markets/KXHIGHNY-26JUL01-B81.5',
]

test('4. all endpoints are GET; 9. data endpoints live under /api/v1 and health at /health, without a version', async () => {
  const { get } = file.service
  for (const target of [...DATA_TARGETS, '/health']) {
    const response = await get(target)
    assert.equal(response.status, 200, target)
    assert.equal(response.headers.get('content-type'), 'application/json', target)
    assert.equal((await get(target, { method: 'POST' })).status, 405, target)
    await response.arrayBuffer()
  }
  for (const target of DATA_TARGETS)
    assert.equal((await get(target.replace('/api/v1', ''))).status, 404, target)
  assert.equal((await get('/api/v1/health')).status, 404)
})

test('4. answers are JSON arrays unless one object is asked for by its ticker, or health', async () => {
  for (const target of DATA_TARGETS) {
    const isOne = /\/(series|markets)\/K/.test(target)
    assert.equal(Array.isArray(JSON.parse(await file.service.text(target))), !isOne, target)
  }
  assert.equal(Array.isArray(await file.service.one('/health')), false)
})

test('4.6 health has no parameters', async () => {
  const response = await file.service.get('/health?verbose=true')
  assert.equal(response.status, 400)
  assert.equal((await readProblem(response)).errors[0]?.parameter, 'verbose')
})
