import assert from 'node:assert/strict'
import dns from 'node:dns'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { UPSTREAM_PAUSE_MS_MAX } from '../../server/upstream/attempt-failure.ts'
import { RequestBudget } from '../../server/upstream/request-budget.ts'
import { UpstreamError } from '../../server/upstream/upstream-error.ts'
import {
  UpstreamHttp,
  type UpstreamOptions,
  UPSTREAM_RETRY_AFTER_MS_MAX,
} from '../../server/upstream/upstream-http.ts'
import {
  type Answer,
  cutAfter,
  hangUp,
  type LocalUpstream,
  send,
  stall,
  startUpstream,
} from '../support/local-upstream.ts'
import { ManualClock } from '../support/manual-clock.ts'

const NOW_MS = Date.parse('2026-08-01T12:00:00Z')

interface Bench extends LocalUpstream {
  readonly http: UpstreamHttp
  readonly clock: ManualClock
}

async function bench(
  t: TestContext,
  script: readonly Answer[],
  options: Partial<UpstreamOptions> = {},
): Promise<Bench> {
  const upstream = await startUpstream(t, script)
  const clock = new ManualClock(NOW_MS)
  const http = new UpstreamHttp({
    name: 'test feed',
    baseUrl: upstream.baseUrl,
    userAgent: 'bookcast-test',
    rate: { burst: 100, intervalMs: 1 },
    clock,
    random: () => 0.5,
    ...options,
  })
  t.after(() => http.close())
  return { ...upstream, http, clock }
}

async function failureOf(promise: Promise<unknown>): Promise<UpstreamError> {
  const error = await promise.then(
    () => assert.fail('the request succeeded'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof UpstreamError, String(error))
  assert.equal(error.upstream, 'test feed')
  assert.match(error.message, /^test feed: /)
  return error
}

test('returns the body and its validators after one request', async (t) => {
  const { http, asked } = await bench(t, [
    send(200, '[1]', { etag: '"v1"', 'content-type': 'application/json' }),
  ])
  const answer = await http.fetch({ path: '/data?x=1' })
  assert.ok(answer !== null)
  assert.equal(answer.body.toString(), '[1]')
  assert.deepEqual(answer.validators, { etag: '"v1"', lastModified: null })
  assert.equal(asked.length, 1)
  assert.equal(asked[0]?.url, '/data?x=1')
  assert.equal(asked[0]?.headers['user-agent'], 'bookcast-test')
})

test('appends the path to the prefix of the base address', async (t) => {
  const upstream = await startUpstream(t, [send(200)])
  const http = new UpstreamHttp({
    name: 'test feed',
    baseUrl: `${upstream.baseUrl}/mirror/`,
    userAgent: 'x',
    rate: { burst: 1, intervalMs: 1 },
  })
  t.after(() => http.close())
  await http.fetch({ path: '/api/data' })
  assert.equal(upstream.asked[0]?.url, '/mirror/api/data')
})

test('sends a POST body again on a retry', async (t) => {
  const { http, asked } = await bench(t, [send(500), send(200, 'ok')])
  await http.fetch({ path: '/', method: 'POST', body: 'sid=NYC', headers: { 'content-type': 'text/plain' } })
  assert.deepEqual(
    asked.map((request) => [request.method, request.body, request.headers['content-type']]),
    [
      ['POST', 'sid=NYC', 'text/plain'],
      ['POST', 'sid=NYC', 'text/plain'],
    ],
  )
})

test('sends conditional requests with both validators and reports 304 as not modified', async (t) => {
  const { http, asked } = await bench(t, [send(304)])
  const validators = { etag: '"v1"', lastModified: 'Sat, 01 Aug 2026 11:00:00 GMT' }
  assert.equal(await http.fetch({ path: '/', validators }), null)
  assert.equal(asked[0]?.headers['if-none-match'], '"v1"')
  assert.equal(asked[0]?.headers['if-modified-since'], validators.lastModified)
})

test('rejects a 304 to an unconditional request', async (t) => {
  const { http } = await bench(t, [send(304)])
  assert.equal((await failureOf(http.fetch({ path: '/' }))).failure, 'rejected')
})

test('decompresses a gzip body', async (t) => {
  const { http } = await bench(t, [send(200, gzipSync('text'), { 'content-encoding': 'gzip' })])
  const answer = await http.fetch({ path: '/' })
  assert.ok(answer !== null)
  assert.equal(answer.body.toString(), 'text')
})

test('waits for Retry-After, in seconds or as a date of the upstream clock', async (t) => {
  const { http, clock, asked } = await bench(t, [
    send(429, '', { 'retry-after': '7' }),
    send(503, '', {
      // The upstream's clock is a day behind: only the difference to its own Date counts.
      date: 'Fri, 31 Jul 2026 12:00:00 GMT',
      'retry-after': 'Fri, 31 Jul 2026 12:00:11 GMT',
    }),
    send(200, 'ok'),
  ])
  await http.fetch({ path: '/' })
  assert.equal(asked.length, 3)
  assert.deepEqual(clock.slept, [7_000, 11_000])
})

test('backs off with growing jittered waits when a 429 has no Retry-After', async (t) => {
  const { http, clock } = await bench(t, [send(429), send(429), send(200)])
  await http.fetch({ path: '/' })
  assert.deepEqual(clock.slept, [375, 750])
})

test('waits for Retry-After in fractions of a second', async (t) => {
  const { http, clock } = await bench(t, [send(429, '', { 'retry-after': '2.5' }), send(200)])
  await http.fetch({ path: '/' })
  assert.deepEqual(clock.slept, [2_500])
})

test('ignores a Retry-After that cannot be read', async (t) => {
  // The last ones are a day of 2032 and 2099 to Date.parse, which would pause for an hour.
  for (const value of ['soon', '-1', '60s', '1e3', '', '2032-01', 'Sat Aug  1 12:00:11 2099']) {
    const { http, clock } = await bench(t, [send(503, '', { 'retry-after': value }), send(200)])
    await http.fetch({ path: '/' })
    assert.deepEqual(clock.slept, [375], value)
  }
})

test('reports a long Retry-After instead of waiting, and delays later requests', async (t) => {
  const seconds = UPSTREAM_RETRY_AFTER_MS_MAX / 1000 + 60
  const { http, clock, asked } = await bench(t, [
    send(429, '', { 'retry-after': String(seconds) }),
    send(200),
  ])
  const error = await failureOf(http.fetch({ path: '/' }))
  assert.equal(error.failure, 'rate_limited')
  assert.equal(error.status, 429)
  assert.equal(error.retryAfterMs, seconds * 1000)
  assert.equal(asked.length, 1)
  await http.fetch({ path: '/' })
  assert.deepEqual(clock.slept, [seconds * 1000])
})

test('status and Retry-After count even if the body is truncated', async (t) => {
  const { http, asked } = await bench(t, [cutAfter(3, 'too many', { 'retry-after': '120' }, 429)])
  const { failure, status, retryAfterMs } = await failureOf(http.fetch({ path: '/' }))
  assert.deepEqual([failure, status, retryAfterMs, asked.length], ['rate_limited', 429, 120_000, 1])
})

test('limits an absurd Retry-After and refuses requests during the pause', async (t) => {
  const { http, asked } = await bench(t, [send(429, '', { 'retry-after': '99999999' })])
  assert.equal((await failureOf(http.fetch({ path: '/' }))).retryAfterMs, UPSTREAM_PAUSE_MS_MAX)
  const error = await failureOf(http.fetch({ path: '/' }))
  assert.equal(error.failure, 'rate_limited')
  assert.equal(error.status, null)
  assert.equal(asked.length, 1)
})

test('retries a failed transfer up to the limit of attempts', async (t) => {
  const { http, asked } = await bench(t, [
    hangUp(),
    send(502),
    cutAfter(3, 'longer body'),
    send(500, 'last words\n'),
  ])
  const error = await failureOf(http.fetch({ path: '/' }))
  assert.equal(error.failure, 'server_error')
  assert.equal(error.status, 500)
  assert.match(error.message, /last words$/)
  assert.equal(asked.length, 4)
})

for (const [name, answer, failure] of [
  ['a connection closed before the answer', hangUp(), 'unreachable'],
  ['a body cut after its first bytes', cutAfter(3, 'longer body'), 'truncated'],
  [
    'a gzip body that ends early',
    send(200, gzipSync('text').subarray(0, 12), { 'content-encoding': 'gzip' }),
    'truncated',
  ],
  ['a body that is no gzip', send(200, 'plain', { 'content-encoding': 'gzip' }), 'malformed'],
  ['an encoding not asked for', send(200, 'plain', { 'content-encoding': 'br' }), 'malformed'],
  ['a redirect', send(302, '', { location: 'http://127.0.0.1:1/' }), 'rejected'],
  ['a refusal', send(404, 'no such station'), 'rejected'],
  ['an endless body', send(200, 'x'.repeat(2000)), 'too_large'],
  [
    'a gzip body that unfolds beyond the bound',
    send(200, gzipSync('x'.repeat(2000)), { 'content-encoding': 'gzip' }),
    'too_large',
  ],
  ['no answer within the time-out', stall(), 'timeout'],
] as const) {
  test(`reports ${name} as ${failure}`, async (t) => {
    const { http, asked } = await bench(t, [answer], { attemptsMax: 1, bodyBytesMax: 1000, timeoutMs: 200 })
    assert.equal((await failureOf(http.fetch({ path: '/' }))).failure, failure)
    assert.equal(asked.length, 1)
  })
}

test('does not retry permanent failures', async (t) => {
  const { http, asked } = await bench(t, [send(400, 'bad ids'), send(200)])
  const error = await failureOf(http.fetch({ path: '/' }))
  assert.equal(error.message, 'test feed: status 400: bad ids')
  assert.equal(asked.length, 1)
})

test('reports an upstream without a listener as unreachable', async (t) => {
  const { http, clock } = await bench(t, [], { baseUrl: 'http://127.0.0.1:1', attemptsMax: 2 })
  const error = await failureOf(http.fetch({ path: '/' }))
  assert.equal(error.failure, 'unreachable')
  assert.equal(clock.slept.length, 1)
})

for (const code of [
  'EAI_AGAIN',
  'ENOTFOUND',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]) {
  test(`reports a connection that fails with ${code} as unreachable`, async (t) => {
    const { http, clock } = await bench(t, [], { baseUrl: 'http://feed.invalid', attemptsMax: 2 })
    t.mock.method(dns, 'lookup', (...args: readonly unknown[]) => {
      const done = args.at(-1) as (error: Error) => void
      done(Object.assign(new Error(`no connection: ${code}`), { code }))
    })
    const error = await failureOf(http.fetch({ path: '/' }))
    assert.equal(error.failure, 'unreachable')
    assert.equal(clock.slept.length, 1)
    assert.match(error.message, new RegExp(code))
  })
}

test('stops at the caller signal, while waiting for the response and before the request', async (t) => {
  const controller = new AbortController()
  const reason = new Error('shutting down')
  const { http, asked } = await bench(t, [() => controller.abort(reason)])
  await assert.rejects(http.fetch({ path: '/', signal: controller.signal }), reason)
  await assert.rejects(http.fetch({ path: '/', signal: controller.signal }), reason)
  assert.equal(asked.length, 1)
})

test('spaces requests by the budget', async (t) => {
  const { http, clock } = await bench(t, [send(200), send(200), send(200)], {
    rate: { burst: 2, intervalMs: 1000 },
  })
  for (let request = 0; request < 3; request += 1) await http.fetch({ path: '/' })
  assert.deepEqual(clock.slept, [1000])
})

test('clients that share a budget wait for each other', async (t) => {
  const rate = { burst: 1, intervalMs: 1000 }
  const upstream = await startUpstream(t, [send(200), send(200)])
  const clock = new ManualClock(NOW_MS)
  const shared = { baseUrl: upstream.baseUrl, userAgent: 'x', rate, budget: new RequestBudget(rate), clock }
  const first = new UpstreamHttp({ ...shared, name: 'first' })
  const second = new UpstreamHttp({ ...shared, name: 'second' })
  t.after(() => Promise.all([first.close(), second.close()]))
  await first.fetch({ path: '/' })
  await second.fetch({ path: '/' })
  assert.deepEqual(clock.slept, [1000])
})

test('a budget never allows more than burst + elapsed / interval requests in any span', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 1000 }),
      fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 40 }),
      (burst, intervalMs, pauses) => {
        const budget = new RequestBudget({ burst, intervalMs })
        const sentMs: number[] = []
        let nowMs = 0
        for (const pause of pauses) {
          nowMs += pause
          const waitMs = budget.reserve(nowMs, Number.POSITIVE_INFINITY)
          assert.ok(waitMs !== undefined && waitMs >= 0)
          sentMs.push(nowMs + waitMs)
        }
        for (let from = 0; from < sentMs.length; from += 1) {
          for (let to = from; to < sentMs.length; to += 1) {
            const span = (sentMs[to] ?? 0) - (sentMs[from] ?? 0)
            assert.ok(span >= 0, 'requests keep their order')
            assert.ok(to - from + 1 <= burst + Math.floor(span / intervalMs))
          }
        }
      },
    ),
  )
})

test('a budget that refuses takes no token', () => {
  const budget = new RequestBudget({ burst: 1, intervalMs: 1000 })
  assert.equal(budget.reserve(0, 0), 0)
  assert.equal(budget.reserve(0, 999), undefined)
  assert.equal(budget.reserve(0, 1000), 1000)
})

test('requests do not wait for a clock that was set back to catch up', () => {
  const budget = new RequestBudget({ burst: 1, intervalMs: 1000 })
  const hourMs = 3_600_000
  assert.equal(budget.reserve(2 * hourMs, 0), 0)
  assert.equal(budget.reserve(0, 1000), 1000)
  budget.pause(hourMs, 5_000)
  assert.equal(budget.reserve(0, 10_000), 5_000, 'what an upstream asked for is kept')
  assert.equal(budget.reserve(10_000, 0), 0)
})
