import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { AfosClient } from '../../server/ingest/climate-reports/afos-client.ts'
import { NwsClient, type SeenProducts } from '../../server/ingest/climate-reports/nws-client.ts'
import { UpstreamError, type UpstreamFailure } from '../../server/upstream/upstream-error.ts'
import type { ParsedClimateText } from '../../server/ingest/climate-reports/parse.ts'
import { productText, wrapped } from '../support/climate-text.ts'
import { type Answer, cutAfter, send, stall, timeoutMsFor } from '../support/local-upstream.ts'
import { clientBench } from '../support/upstream-client.ts'

const AUGUST_29 = productText({ summaries: [{ name: 'MIAMI', date: 'AUGUST 29 2026' }] })
const AUGUST_28 = productText({
  header: 'CDUS42 KMFL 290824',
  issued: '424 AM EDT SAT AUG 29 2026',
  summaries: [{ name: 'MIAMI', date: 'AUGUST 28 2026' }],
})

async function failureOf(promise: Promise<unknown>): Promise<UpstreamFailure> {
  const error = await promise.then(
    () => assert.fail('the request succeeded'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof UpstreamError, String(error))
  assert.match(error.message, /^(iem-afos|nws): /)
  return error.failure
}

async function archived(
  t: TestContext,
  script: readonly Answer[],
): Promise<ParsedClimateText & { readonly urls: readonly string[] }> {
  const { client, asked } = await clientBench(t, AfosClient, script, { timeoutMs: timeoutMsFor(script) })
  const parsed = await client.products('CLIMIA', '2026-08-01', '2026-09-03')
  return { ...parsed, urls: asked.map(({ url }) => url) }
}

test('requests a span from the archive in one request, in UTC, with its limit and oldest first', async (t) => {
  const { reports, urls } = await archived(t, [send(200, wrapped(AUGUST_28, AUGUST_29))])
  assert.deepEqual(urls, [
    '/cgi-bin/afos/retrieve.py?pil=CLIMIA&fmt=text&limit=9999' +
      '&sdate=2026-08-01T00%3A00Z&edate=2026-09-03T00%3A00Z&order=asc',
  ])
  assert.deepEqual(
    reports.map(({ observation_date }) => observation_date),
    ['2026-08-28', '2026-08-29'],
  )
})

test('an archive without products of a span has no reports', async (t) => {
  assert.deepEqual((await archived(t, [send(200, 'ERROR: Could not Find: CLIMIA')])).reports, [])
})

test('retries a busy archive and reports every incomplete response', async (t) => {
  const { reports } = await archived(t, [
    send(503, 'busy'),
    cutAfter(40, wrapped(AUGUST_29)),
    send(200, wrapped(AUGUST_29)),
  ])
  assert.equal(reports.length, 1)
  const cases: [UpstreamFailure, Answer][] = [
    ['malformed', send(200, '')],
    ['malformed', send(200, '<html>maintenance</html>')],
    ['malformed', send(200, '[]')],
    ['truncated', send(200, wrapped(AUGUST_28, AUGUST_29).slice(0, -60))],
    ['too_large', send(200, wrapped('x').repeat(9999))],
    ['rejected', send(422, 'Invalid PIL length')],
    ['server_error', send(500)],
    ['rate_limited', send(429)],
    ['timeout', stall()],
    ['truncated', cutAfter(40, wrapped(AUGUST_29))],
  ]
  for (const [failure, answer] of cases) {
    const script = [answer, answer, answer, answer]
    assert.equal(await failureOf(archived(t, script)), failure)
  }
})

test('keeps the readable reports of a response and names the others', async (t) => {
  const stranger = productText({
    pil: 'CLIFLL',
    summaries: [{ name: 'FT LAUDERDALE', date: 'AUGUST 29 2026' }],
  })
  const { reports, errors } = await archived(t, [send(200, wrapped(AUGUST_29, 'GARBAGE', stranger))])
  assert.equal(reports.length, 1)
  assert.equal(errors.length, 2)
  assert.match(errors[0]!, /no WMO header/)
  assert.match(errors[1]!, /CLIMIA was asked for/)
})

function id(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
}

function list(...numbers: readonly number[]): string {
  return JSON.stringify({
    '@context': {},
    '@graph': numbers.map((n) => ({
      '@id': `https://api.weather.gov/products/${id(n)}`,
      id: id(n),
      wmoCollectiveId: 'CDUS42',
      issuingOffice: 'KMFL',
      issuanceTime: `2026-08-${10 + n}T08:24:00+00:00`,
      productCode: 'CLI',
      productName: 'Daily Climate Report',
    })),
  })
}

function product(n: number, text = AUGUST_29): Answer {
  return send(200, JSON.stringify({ id: id(n), productCode: 'CLI', productText: `\n${text}` }))
}

/** Polls with what was seen in the batches that were acknowledged. */
function polled(client: NwsClient) {
  let seen: SeenProducts | null = null
  return async () => {
    const batch = await client.poll('MIA', seen ?? undefined)
    return { ...batch, acknowledge: () => (seen = batch.seen ?? seen) }
  }
}

test('fetches each listed product once, oldest first, and requests the list conditionally', async (t) => {
  const { client, asked } = await clientBench(t, NwsClient, [
    send(200, list(2, 1), { etag: '"a"' }),
    product(1, AUGUST_28),
    product(2),
    send(304),
    send(200, list(3, 2, 1), { etag: '"b"' }),
    product(3),
  ])
  const poll = polled(client)
  const first = await poll()
  assert.deepEqual(
    first.reports.map(({ observation_date }) => observation_date),
    ['2026-08-28', '2026-08-29'],
  )
  first.acknowledge()
  assert.deepEqual((await poll()).reports, [])
  const third = await poll()
  assert.equal(third.reports.length, 1)
  third.acknowledge()
  assert.deepEqual(
    asked.map(({ url }) => url),
    [
      '/products/types/CLI/locations/MIA',
      `/products/${id(1)}`,
      `/products/${id(2)}`,
      '/products/types/CLI/locations/MIA',
      '/products/types/CLI/locations/MIA',
      `/products/${id(3)}`,
    ],
  )
  assert.deepEqual(
    asked.filter(({ url }) => url.includes('locations')).map(({ headers }) => headers['if-none-match']),
    [undefined, '"a"', '"a"'],
  )
  for (const { headers } of asked) {
    assert.equal(headers['user-agent'], 'bookcast-test (tests@example.org)')
    assert.equal(headers['accept'], 'application/ld+json')
  }
})

test('returns reports again until they are acknowledged', async (t) => {
  const answers = [send(200, list(1), { etag: '"a"' }), product(1)]
  const { client } = await clientBench(t, NwsClient, [...answers, ...answers])
  assert.equal((await client.poll('MIA')).reports.length, 1)
  assert.equal((await client.poll('MIA')).reports.length, 1)
})

test('requests a failed product again, with the whole list, and not the others', async (t) => {
  const { client, asked } = await clientBench(t, NwsClient, [
    send(200, list(1, 2, 3), { etag: '"a"' }),
    product(1),
    send(404, 'no such product'),
    product(3),
    send(200, list(1, 2, 3), { etag: '"a"' }),
    product(2),
    send(304),
  ])
  const poll = polled(client)
  const first = await poll()
  assert.deepEqual([first.reports.length, first.failures.map(({ failure }) => failure)], [2, ['rejected']])
  first.acknowledge()
  const second = await poll()
  assert.deepEqual([second.reports.length, second.failures], [1, []])
  second.acknowledge()
  await poll()
  assert.deepEqual(
    asked.filter(({ url }) => url.includes('locations')).map(({ headers }) => headers['if-none-match']),
    [undefined, undefined, '"a"'],
  )
})

test('stops at a product when the upstream is down, and keeps the earlier ones', async (t) => {
  const down = send(503)
  const { client, asked } = await clientBench(t, NwsClient, [
    send(200, list(1, 2, 3)),
    product(1),
    down,
    down,
    down,
    down,
  ])
  const batch = await client.poll('MIA')
  assert.deepEqual(
    [batch.reports.length, batch.failures.map(({ failure }) => failure)],
    [1, ['server_error']],
  )
  assert.ok(asked.every(({ url }) => url !== `/products/${id(3)}`))
})

test('a product that always fails does not block newer ones', async (t) => {
  const { client } = await clientBench(t, NwsClient, [
    send(200, list(1, 2, 3)),
    ...Array.from({ length: 4 }, () => send(500)),
    send(200, list(1, 2, 3)),
    product(2),
    product(3),
    ...Array.from({ length: 4 }, () => send(500)),
  ])
  const poll = polled(client)
  const reportCounts: number[] = []
  for (let round = 0; round < 2; round += 1) {
    const batch = await poll()
    batch.acknowledge()
    reportCounts.push(batch.reports.length)
  }
  assert.deepEqual(reportCounts, [0, 2])
})

test('a product that failed once does not wait for one that always fails', async (t) => {
  const failing = Array.from({ length: 4 }, () => send(500))
  const { client } = await clientBench(t, NwsClient, [
    send(200, list(1)),
    ...failing,
    send(200, list(1, 2)),
    ...failing,
    send(200, list(1, 2)),
    ...failing,
    send(200, list(1, 2)),
    product(2),
    ...failing,
  ])
  const poll = polled(client)
  const reportCounts: number[] = []
  for (let round = 0; round < 4; round += 1) {
    const batch = await poll()
    batch.acknowledge()
    reportCounts.push(batch.reports.length)
  }
  assert.deepEqual(reportCounts, [0, 0, 0, 1])
})

test('reports a list or product of another shape and stores nothing of it', async (t) => {
  const lists: [UpstreamFailure, Answer][] = [
    ['malformed', send(200, '')],
    ['malformed', send(200, '<html>')],
    ['malformed', send(200, '[]')],
    ['malformed', send(200, '{"features": []}')],
    ['malformed', send(200, list(1).replace('"CLI"', '"AFD"'))],
    ['malformed', send(200, list(1).replaceAll(id(1), '../secrets'))],
    ['malformed', send(200, list(1).replace('issuanceTime', 'issued'))],
    ['malformed', send(200, list(1).slice(0, -10))],
    ['rejected', send(403, 'Access Denied')],
    ['truncated', cutAfter(20, list(1))],
  ]
  for (const [failure, answer] of lists) {
    const { client } = await clientBench(t, NwsClient, [answer, answer, answer, answer])
    assert.equal(await failureOf(client.poll('MIA')), failure)
  }
  const products = [
    send(200, '{}'),
    send(200, 'null'),
    send(200, JSON.stringify({ id: id(2), productText: AUGUST_29 })),
    send(200, JSON.stringify({ id: id(1), productText: null })),
  ]
  for (const answer of products) {
    const { client } = await clientBench(t, NwsClient, [send(200, list(1)), answer])
    const { reports, failures } = await client.poll('MIA')
    assert.deepEqual([reports, failures.map(({ failure }) => failure)], [[], ['malformed']])
  }
})

test('stops waiting when the caller aborts', async (t) => {
  const controller = new AbortController()
  const { client } = await clientBench(t, NwsClient, [() => controller.abort(new Error('the process ends'))])
  await assert.rejects(client.poll('MIA', undefined, controller.signal), /the process ends/)
})
