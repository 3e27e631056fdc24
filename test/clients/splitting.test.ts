// Ranges of order books with too many rows for one response: both clients request them by date and by hour.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ClientCall, clientsOfThisFile } from '../support/client-drivers.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { refuse, startScripted } from '../support/scripted-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const RANGE = { series: 'KXHIGHNY', from: '2026-06-30', to: '2026-07-02' }

/** 1 July has a response for each hour, 2 July one, 30 June none, and the range is too long. A row states the request. */
function answer(request: IncomingMessage, response: ServerResponse): void {
  const asked = new URL(request.url ?? '', 'http://host').searchParams
  const [date, hour] = [asked.get('date'), asked.get('hour')]
  if (date === '2026-06-30') refuse(response, 404, 'no_data')
  else if (date === null || (date === '2026-07-01' && hour === null)) refuse(response, 400, 'too_many_rows')
  else if (asked.get('format') === 'csv') response.end(`date,hour\n${date},${hour}\n`)
  else response.end(`${JSON.stringify({ date, hour })}\n`)
}

const HOURS = Array.from({ length: 24 }, (_, hour) => ({ date: '2026-07-01', hour: String(hour) }))
const WHOLE = [...HOURS, { date: '2026-07-02', hour: null }]

for (const client of clientsOfThisFile()) {
  test(`${client.name}: a range with too many rows is read by date and by hour, in order`, async (t) => {
    const server = await startScripted(t, answer)
    const call: ClientCall = { url: server.url, method: 'lob', parameters: RANGE, action: 'rows' }
    const given = await client.call(call)
    assert.deepEqual(given.rows, WHOLE)
    assert.deepEqual(given.missingDates, ['2026-06-30'])
    // Requests for the range, three dates, and the hours of one date.
    assert.equal(server.requests.length, 1 + 3 + 24)
    assert.ok(!server.requests.at(-1)?.url?.includes('from='), server.requests.at(-1)?.url)
    if (!client.hasFiles) return
    const path = join(await temporaryDirectory(t), 'range.csv')
    await client.call({ ...call, action: 'file', path })
    const lines = ['date,hour', ...WHOLE.map(({ date, hour }) => `${date},${hour}`)]
    assert.equal(await readFile(path, 'utf8'), `${lines.join('\n')}\n`)
    const parquet = await client.call({ ...call, action: 'file', path: path.replace('csv', 'parquet') })
    assert.equal(parquet.error?.code, 'too_many_rows')
  })

  test(`${client.name}: a range that cannot be split further gets the server's error`, async (t) => {
    const server = await startScripted(t, (_, response) => refuse(response, 400, 'too_many_rows'))
    const ask = (parameters: object) =>
      client.call({ url: server.url, method: 'lob', parameters: { ...parameters }, action: 'rows' })
    const hour = { series: 'KXHIGHNY', date: '2026-07-01', hour: 3 }
    assert.equal((await ask(hour)).error?.code, 'too_many_rows')
    assert.equal(server.requests.length, 1)
    // Requests for the range, its first date, and its first hour.
    assert.equal((await ask(RANGE)).error?.code, 'too_many_rows')
    assert.equal(server.requests.length, 1 + 3)
  })

  test(`${client.name}: the rows of the parts join to the rows of the range`, async (t) => {
    const { url } = await startSampleServer(t, { lake: SAMPLE_LAKE })
    const parameters = { ...RANGE, interval: 20, columns: ['ts', 'market_id', 'mid'] }
    const rowsAs = (format: string) =>
      client.call({ url, method: 'lob', parameters: { ...parameters, format }, action: 'rows' })
    const whole = await rowsAs('ndjson')
    assert.ok((whole.rows?.length ?? 0) > 50_000, `${whole.rows?.length} ${whole.error?.message}`)
    // One json response has at most 50,000 rows.
    assert.deepEqual(await rowsAs('json').then(({ rows, missingDates }) => ({ rows, missingDates })), {
      rows: whole.rows,
      missingDates: whole.missingDates,
    })
  })
}
