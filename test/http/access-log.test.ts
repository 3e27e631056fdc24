import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { startTestServer } from '../support/test-server.ts'

const INFO = 30
const ERROR = 50

test('writes one line per request with its figures, for each way to end', async (t) => {
  const { url, lobUrl, openRaw, log, server } = await startTestServer(t, { stallTimeoutMs: 200 })
  const ids: (string | null)[] = []
  const ask = async (address: string, init: RequestInit = {}): Promise<void> => {
    const response = await fetch(address, { headers: { 'accept-encoding': 'identity' }, ...init })
    ids.push(response.headers.get('x-request-id'))
    await response.arrayBuffer().catch(() => undefined)
    await log.find(() => true, ids.length)
  }
  await ask(lobUrl('bytes.300000.rows.1234', '&format=csv'))
  await ask(lobUrl('bytes.300000.rows.1234'), { method: 'HEAD' })
  await ask(`${url}/livez`)
  await ask(`${url}/nope?a=b%20c`)
  await ask(lobUrl('refuse'))
  await ask(lobUrl('die'))
  await ask(lobUrl('bytes.2000000.fail-after.1000000'))
  await openRaw(lobUrl('bytes.24000000'))
  ids.push(null)
  await log.find(() => true, ids.length)
  const leaving = await openRaw(lobUrl('wait'))
  while (server.lobPool.takenSlots === 0) await new Promise(setImmediate)
  leaving.destroy()
  ids.push(null)
  await log.find(() => true, ids.length)

  const shown = log.lines.map(({ level, method, path, status, rows, ending }) => [
    level,
    method,
    path,
    status,
    rows,
    ending,
  ])
  assert.deepEqual(shown, [
    [INFO, 'GET', '/api/v1/lob', 200, 1234, 'complete'],
    [INFO, 'HEAD', '/api/v1/lob', 200, 0, 'complete'],
    [INFO, 'GET', '/livez', 200, 0, 'complete'],
    [INFO, 'GET', '/nope', 404, 0, 'refused'],
    [INFO, 'GET', '/api/v1/lob', 400, 0, 'refused'],
    [ERROR, 'GET', '/api/v1/lob', 503, 0, 'failed'],
    [ERROR, 'GET', '/api/v1/lob', 200, null, 'failed'],
    [INFO, 'GET', '/api/v1/lob', 200, null, 'stalled'],
    [INFO, 'GET', '/api/v1/lob', null, 0, 'client_gone'],
  ])
  assert.deepEqual(
    log.lines.map((line) => line.bytes > 0),
    [true, false, true, true, true, true, true, true, false],
  )
  const [whole, , , nope, , , broken] = log.lines
  assert.equal(whole?.bytes, 300_000)
  assert.equal(whole.query, 'series=bytes.300000.rows.1234&date=2026-07-01&format=csv')
  assert.equal(nope?.query, 'a=b%20c')
  assert.ok(broken !== undefined && broken.bytes < 2_000_000)
  assert.equal(broken.err?.message, 'a page is damaged')
  for (const [index, line] of log.lines.entries()) {
    assert.match(line.request_id, /^[0-9a-f-]{36}$/)
    const answeredId = ids[index] ?? null
    if (answeredId !== null) assert.equal(line.request_id, answeredId)
    if (line.first_byte_ms !== null) assert.ok(line.first_byte_ms <= line.total_ms)
  }
})

test('marks and counts resumed answers, and counts refused ones', async (t) => {
  const { url, log } = await startTestServer(t, { lake: SAMPLE_LAKE }, { worker: 'real' })
  const target = `${url}/api/v1/lob?market=KXHIGHNY-26JUL01-B81.5&date=2026-07-01&hour=18&interval=600&format=csv`
  const after = '&after=1782928800000000000'
  let lines: Awaited<ReturnType<typeof log.find>> = []
  for (const [query, range, status] of [
    ['', '', 200],
    ['', 'bytes=100-', 206],
    [after, '', 200],
    [after, 'bytes=100-', 206],
    ['', 'bytes=1000000-', 416],
    [`${after}x`, '', 400],
  ] as const) {
    const headers = { 'accept-encoding': 'identity', ...(range && { range }) }
    const response = await fetch(target + query, { headers })
    await response.arrayBuffer()
    assert.equal(response.status, status)
    lines = await log.find(({ path }) => path === '/api/v1/lob', lines.length + 1)
  }
  assert.deepEqual(
    lines.map(({ resumed }) => resumed),
    [undefined, true, true, true, undefined, undefined],
  )
  const metrics = await (await fetch(`${url}/metrics`)).text()
  assert.match(metrics, /bookcast_http_resumed_total\{path="\/api\/v1\/lob"\} 3\n/)
  assert.match(metrics, /bookcast_http_endings_total\{path="\/api\/v1\/lob",ending="refused"\} 2\n/)
})
