// interface.md section 8, row by row: every limit on both sides of its bound; and the snapshots a day that section 4.4
// promises for some intervals.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { RunningServer } from '../../server/service/server.ts'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { type JsonRecord, putLongLists, serviceOfThisFile } from '../support/conformance-service.ts'
import { bookEvent, SECOND } from '../support/recorded-events.ts'
import { startSampleServer } from '../support/sample-server.ts'
import { readProblem, until } from '../support/test-server.ts'
import { LIMIT_ROWS, ROWS_SERIES } from './limit-rows.ts'

/** Writes one market of a series whose book is known and empty for this many seconds from 2026-05-01 on. */
async function writeSeconds(lake: string, series: string, seconds: number): Promise<void> {
  const start = BigInt(Date.parse('2026-05-01T00:00:00Z')) * 1_000_000n
  const writer = new LobRecordingWriter({ lake, source: 'kalshi' })
  writer.append(series, bookEvent(`${series}-26MAY01-A`, start, 0))
  writer.cover(series, start + BigInt(seconds - 1) * SECOND)
  await writer.finish()
}

const file = serviceOfThisFile({
  prepare: async (lake, postgres) => {
    await putLongLists(postgres)
    for (const { within, beyond, rows } of Object.values(ROWS_SERIES)) {
      await writeSeconds(lake, within, rows)
      await writeSeconds(lake, beyond, rows + 1)
    }
  },
})

for (const row of LIMIT_ROWS) {
  test(row.contract, async () => {
    const { service } = file
    if (row.default !== undefined)
      assert.equal((await service.rows(row.default.target)).length, row.default.rows)
    if (row.equal !== undefined) {
      const [without, written] = await Promise.all(row.equal.map(service.text))
      assert.ok(without !== undefined && without.length > 2)
      assert.equal(written, without)
    }
    for (const target of row.within ?? []) {
      const response = await service.get(target)
      assert.equal(response.status, 200, target)
      // Only the count of rows matters here; another test reads them all.
      await response.body?.cancel()
    }
    for (const { target, parameter } of row.beyond ?? []) {
      const response = await service.get(target)
      assert.equal(response.status, 400, target)
      const { code, errors } = await readProblem(response)
      if (parameter === null) assert.equal(code, 'too_many_rows')
      else
        assert.ok(
          errors.some((error) => error.parameter === parameter),
          target,
        )
    }
  })
}

test('LOB result rows, csv: all 500,000 of them arrive', async () => {
  const { within, rows } = ROWS_SERIES.streamed
  const query = `series=${within}&from=2026-05-01&to=2026-05-06&interval=1&levels=1&columns=ts&format=csv`
  const body = await file.service.bytes(`/api/v1/lob?${query}`)
  let lines = 0
  for (const byte of body) if (byte === 10) lines += 1
  assert.equal(lines, rows + 1)
})

/** A client that requests a long response and reads nothing of it. */
async function holdingClient(t: TestContext, { port }: RunningServer): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  const target =
    '/api/v1/lob?market=KXHIGHNY-26JUL02-B80.5&date=2026-07-02&interval=1&levels=50&format=ndjson'
  socket.write(`GET ${target} HTTP/1.1\r\nHost: test\r\n\r\n`)
  const [head] = (await once(socket, 'data')) as [Buffer]
  socket.pause()
  assert.match(head.toString('latin1'), /^HTTP\/1\.1 200 /)
  return socket
}

test('LOB concurrency: four requests are processed at once, the fifth is 429 with Retry-After', async (t) => {
  // Time stands still: otherwise a client that reads nothing for seconds would be cut off for the fifth request, and slots held
  // for more than a second would increase Retry-After.
  const nowMs = performance.now()
  t.mock.method(performance, 'now', () => nowMs)
  const { server, url } = await startSampleServer(t)
  const ask = () => fetch(`${url}/api/v1/lob?series=KXHIGHNY&date=2026-07-01&interval=3600`)
  const holders: Socket[] = []
  for (let count = 0; count < 4; count++) {
    assert.equal((await ask()).status, 200, `with ${count} held`)
    await until(() => server.lobPool.takenSlots === count)
    holders.push(await holdingClient(t, server))
  }
  await until(() => server.lobPool.takenSlots === 4)
  const refused = await ask()
  assert.equal(refused.status, 429)
  assert.equal(refused.headers.get('retry-after'), '1')
  assert.equal((await readProblem(refused)).code, 'too_many_requests')
  holders[0]?.destroy()
  await until(() => server.lobPool.takenSlots === 3)
  assert.equal((await ask()).status, 200)
})

test('health staleness: two hours after the last sync is not stale, any more is', async (t) => {
  const { service } = file
  let lastSync: unknown
  for (let status: unknown; status !== 'ok' || typeof lastSync !== 'string';) {
    const report = await service.one('/health')
    status = report['status']
    lastSync = (report['sync'] as JsonRecord)['last_sync']
  }
  const lastSyncMs = Date.parse(lastSync)
  for (const [ageMs, isStale, status] of [
    [0, false, 'ok'],
    [2 * 3_600_000, false, 'ok'],
    [2 * 3_600_000 + 1, true, 'degraded'],
  ] as const) {
    t.mock.timers.enable({ apis: ['Date'], now: lastSyncMs + ageMs })
    const later = await service.one('/health')
    t.mock.timers.reset()
    assert.deepEqual([(later['sync'] as JsonRecord)['is_stale'], later['status']], [isStale, status])
  }
})

// Section 4.4: "Approximate snapshots per day per market". The market trades all day from midnight on.
for (const [interval, snapshots] of [
  [1, 86_400],
  [60, 1440],
  [300, 288],
  [3600, 24],
] as const) {
  test(`4.4 interval ${interval} gives about ${snapshots} snapshots per day per market`, async () => {
    const { within } = ROWS_SERIES.streamed
    const query = `series=${within}&date=2026-05-02&interval=${interval}&columns=ts&format=ndjson`
    const lines = (await file.service.text(`/api/v1/lob?${query}`)).split('\n').length - 1
    assert.equal(lines, snapshots)
  })
}
