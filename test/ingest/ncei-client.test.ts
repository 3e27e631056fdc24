import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { NceiClient } from '../../server/ingest/ncei/client.ts'
import type { ValidatedRows } from '../../server/ingest/observation-fetch.ts'
import { ghcnhTable, REPORT_TEXT } from '../support/ghcnh-table.ts'
import {
  type Answer,
  cutAfter,
  hangUp,
  send,
  stall,
  startUpstream,
  timeoutMsFor,
} from '../support/local-upstream.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { knownStation } from '../support/stations.ts'

const OKC = knownStation('OKC')

async function bench(
  t: TestContext,
  script: readonly Answer[],
): Promise<{
  readonly asked: readonly { readonly url: string; readonly headers: Record<string, unknown> }[]
  readonly fetch: (validators?: {
    etag: string | null
    lastModified: string | null
  }) => Promise<ValidatedRows | null>
}> {
  const upstream = await startUpstream(t, script)
  const client = new NceiClient({
    baseUrl: upstream.baseUrl,
    userAgent: 'bookcast-test',
    timeoutMs: timeoutMsFor(script),
    clock: new ManualClock(Date.parse('2026-03-01T00:00:00Z')),
    random: () => 0,
  })
  t.after(() => client.close())
  return {
    asked: upstream.asked,
    fetch: (validators) => client.file(OKC, 2023, validators),
  }
}

const ROW = { cells: { temperature: '7.8|5' }, text: REPORT_TEXT }
const GOOD = ghcnhTable([ROW])
const TWO_ROWS = ghcnhTable([ROW, ROW])

test('a station and year is requested conditionally', async (t) => {
  const { fetch, asked } = await bench(t, [
    send(200, GOOD, { 'last-modified': 'Sun, 01 Mar 2026 00:00:00 GMT' }),
    send(304),
  ])
  const first = await fetch()
  assert.ok(first)
  assert.equal(first.rows.length, 1)
  assert.equal(
    asked[0]?.url,
    '/oa/global-historical-climatology-network/hourly/access/by-year/2023/psv/GHCNh_USW00013967_2023.psv',
  )
  assert.equal(await fetch(first.validators), null)
  assert.equal(asked[1]?.headers['if-modified-since'], 'Sun, 01 Mar 2026 00:00:00 GMT')
})

for (const [name, answers, failure] of [
  ['a server error that lasts', Array.from({ length: 4 }, () => send(500)), 'server_error'],
  ['a rate limit that lasts', Array.from({ length: 4 }, () => send(429)), 'rate_limited'],
  ['a connection that breaks', Array.from({ length: 4 }, () => hangUp()), 'unreachable'],
  ['a body cut in the middle', Array.from({ length: 4 }, () => cutAfter(300, GOOD)), 'truncated'],
  [
    'a gzip body cut in the middle',
    Array.from({ length: 4 }, () =>
      send(200, gzipSync(GOOD).subarray(0, 200), { 'content-encoding': 'gzip' }),
    ),
    'truncated',
  ],
  ['no answer in time', Array.from({ length: 4 }, () => stall()), 'timeout'],
  ['a file that ends within a row', [send(200, TWO_ROWS.slice(0, -REPORT_TEXT.length - 40))], 'truncated'],
  ['a year that does not exist', [send(404, 'Not Found')], 'rejected'],
  ['an empty body', [send(200, '')], 'malformed'],
  ['a page of HTML', [send(200, '<html>')], 'malformed'],
  ['a renamed column', [send(200, GOOD.replace('wind_speed', 'wspd'))], 'malformed'],
  ['another delimiter', [send(200, GOOD.replaceAll('|', ','))], 'malformed'],
  ['other report types', [send(200, GOOD.replaceAll('FM15', 'SAO'))], 'malformed'],
  ['another station id', [send(200, GOOD.replace(OKC.ghcnId, '72353013967'))], 'malformed'],
] as const) {
  test(`${name} is an upstream error (${failure}) and no data`, async (t) => {
    const { fetch } = await bench(t, answers)
    await assert.rejects(fetch(), { upstream: 'ncei', failure })
  })
}
