// /api/v1/lob with a fake worker: what reaches the worker, and how its answers are sent.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patternBytes } from '../support/byte-pattern.ts'
import { startTestServer } from '../support/test-server.ts'

test('streams the bytes of the worker unchanged, whatever their size', async (t) => {
  const { lobUrl } = await startTestServer(t)
  for (const sizeBytes of [0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 16_384, 300_000, 5_000_000]) {
    const response = await fetch(lobUrl(`bytes.${sizeBytes}`))
    assert.equal(response.status, 200)
    const body = new Uint8Array(await response.arrayBuffer())
    assert.deepEqual(body, patternBytes(sizeBytes), `${sizeBytes} bytes`)
  }
})

test('each format has its content type, and files have a descriptive name', async (t) => {
  const { url, lobUrl } = await startTestServer(t)
  const cases = [
    [lobUrl('KXHIGHNY'), 'application/json', null],
    [lobUrl('KXHIGHNY', '&format=json'), 'application/json', null],
    [lobUrl('KXHIGHNY', '&format=ndjson'), 'application/x-ndjson', null],
    [lobUrl('KXHIGHNY', '&format=csv'), 'text/csv', 'lob_KXHIGHNY_2026-07-01_60s.csv'],
    [lobUrl('KXHIGHNY', '&format=csv&hour=5&interval=1'), 'text/csv', 'lob_KXHIGHNY_2026-07-01_h05_1s.csv'],
    [
      `${url}/api/v1/lob?series=KXHIGHNY&from=2026-07-01&to=2026-07-03&format=parquet`,
      'application/vnd.apache.parquet',
      'lob_KXHIGHNY_2026-07-01_2026-07-03_60s.parquet',
    ],
    [
      `${url}/api/v1/lob?market=0xab:12&source=polymarket&date=2026-07-01&format=csv`,
      'text/csv',
      'lob_0xab_12_2026-07-01_60s.csv',
    ],
  ] as const
  for (const [address, type, file] of cases) {
    const response = await fetch(address)
    await response.arrayBuffer()
    assert.equal(response.status, 200, address)
    assert.equal(response.headers.get('content-type'), type)
    const disposition = file === null ? null : `attachment; filename="${file}"`
    assert.equal(response.headers.get('content-disposition'), disposition)
  }
})

test('names the dates without a file in Missing-Dates, and omits the header if there are none', async (t) => {
  const { url } = await startTestServer(t)
  const range = 'from=2026-07-01&to=2026-07-03'
  const some = await fetch(`${url}/api/v1/lob?series=missing&${range}`)
  assert.equal(some.headers.get('missing-dates'), '2026-07-02,2026-07-03')
  const none = await fetch(`${url}/api/v1/lob?series=bytes.1&${range}`)
  assert.equal(none.headers.get('missing-dates'), null)
})
