// The metrics that Prometheus scrapes after some requests.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../support/test-server.ts'

/** The value of one sample line; undefined if it is missing. */
function sample(text: string, line: string): number | undefined {
  const found = text.split('\n').find((candidate) => candidate.startsWith(`${line} `))
  return found === undefined ? undefined : Number(found.slice(line.length + 1))
}

test('counts requests, rows, bytes and endings by declared path', async (t) => {
  const { url, lobUrl, log } = await startTestServer(t)
  const plain = { headers: { 'accept-encoding': 'identity' } }
  await (await fetch(lobUrl('bytes.300000.rows.1234'), plain)).arrayBuffer()
  await fetch(lobUrl('bytes.2000000.fail-after.1000000'), plain)
    .then((response) => response.arrayBuffer())
    .catch(() => {})
  await fetch(`${url}/made/up/path`)
  await fetch(`${url}/another`, { method: 'POST' })
  await fetch(`${url}/livez`, { method: 'BREW' }).catch(() => {})
  await log.find(() => true, 4)
  const response = await fetch(`${url}/metrics`)
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const text = await response.text()
  const lob = 'path="/api/v1/lob"'
  assert.equal(sample(text, `bookcast_http_requests_total{${lob},method="GET",status="200"}`), 2)
  assert.equal(sample(text, `bookcast_http_rows_total{${lob}}`), 1234)
  assert.ok((sample(text, `bookcast_http_body_bytes_total{${lob}}`) ?? 0) >= 300_000)
  assert.equal(sample(text, `bookcast_http_endings_total{${lob},ending="complete"}`), 1)
  assert.equal(sample(text, `bookcast_http_endings_total{${lob},ending="failed"}`), 1)
  assert.equal(sample(text, `bookcast_http_request_duration_seconds_count{${lob}}`), 2)
  assert.equal(sample(text, `bookcast_http_first_byte_seconds_count{${lob}}`), 2)
  assert.equal(sample(text, 'bookcast_http_requests_total{path="unknown",method="GET",status="404"}'), 1)
  assert.equal(sample(text, 'bookcast_http_requests_total{path="unknown",method="other",status="404"}'), 1)
  assert.ok(!text.includes('made/up'))
})

test('shows slots, thread queues, event-loop delay and memory', async (t) => {
  const { url, openRaw, lobUrl, server } = await startTestServer(t)
  const waiting = await openRaw(lobUrl('wait'))
  while (server.lobPool.takenSlots === 0) await new Promise(setImmediate)
  const text = await (await fetch(`${url}/metrics`)).text()
  waiting.destroy()
  assert.equal(sample(text, 'bookcast_lob_slots_taken'), 1)
  assert.equal(sample(text, 'bookcast_lob_slots_max'), 4)
  assert.equal(sample(text, 'bookcast_pool_queue_tasks{pool="lob"}'), 0)
  assert.ok((sample(text, 'process_resident_memory_bytes') ?? 0) > 1e6)
  assert.notEqual(sample(text, 'nodejs_eventloop_lag_p99_seconds'), undefined)
})

test('serves metrics on a separate port, and then not on the main one', async (t) => {
  const { url, server } = await startTestServer(t, { metrics: { host: '127.0.0.1', port: 0 } })
  assert.equal((await fetch(`${url}/metrics`)).status, 404)
  const own = `http://127.0.0.1:${server.metricsPort}`
  const text = await (await fetch(`${own}/metrics`)).text()
  assert.equal(sample(text, 'bookcast_http_requests_total{path="unknown",method="GET",status="404"}'), 1)
  assert.equal((await fetch(`${own}/livez`)).status, 404)
})

test('serves no metrics if they are off', async (t) => {
  const { url } = await startTestServer(t, { metrics: 'off' })
  assert.equal((await fetch(`${url}/metrics`)).status, 404)
})
