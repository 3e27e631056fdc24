// Receipts and parts of order-book answers: a receipt's figures match the body, the body can be resumed from each block, and
// ranges work over HTTP. On random lakes, including foreign files without keyframes, and on the sample lake.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { parquetMetadata } from 'hyparquet'
import type { LobOpenOptions, LobPool } from '../../server/lob/lob-pool.ts'
import { receiptOf } from '../../server/lob/lob-parts.ts'
import { LobReceipts } from '../../server/lob/lob-receipts.ts'
import { EVENT_CLEAR } from '../../shared/lob-v1.ts'
import type { LobBlock } from '../../shared/lob-receipt.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import { bookEvents } from '../support/book-scripts.ts'
import { runs } from '../support/effort.ts'
import { TINY_SHARES } from '../support/lob-shares.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { bookEvent, DAY_START, HOUR, pathOfDate, writeEvents } from '../support/recorded-events.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { readProblem } from '../support/test-server.ts'
import {
  DATES,
  dateStartNs,
  FIRST_DATE,
  requests,
  SERIES,
  shapes,
  writeLake,
} from '../support/truth-lakes.ts'

const LAKES = runs(3, 100)
const REQUESTS = runs(5, 300)
const CUTS = runs(3, 60)
const FORMATS = ['json', 'ndjson', 'csv', 'parquet'] as const

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

test('the body from any block on equals the end of the whole body, whatever the layout of the file', async () => {
  const scripts = bookEvents({ marketCount: 3, startNs: dateStartNs(FIRST_DATE), hours: 48 })
  await fc.assert(
    fc.asyncProperty(scripts, shapes, requests, fc.boolean(), async ({ events }, shape, request, isCut) => {
      const lake = mkdtempSync(join(tmpdir(), 'bookcast-receipt-'))
      try {
        writeLake(lake, events, shape)
        const asked = lobQuery({
          series: SERIES,
          dates: request.isRange ? DATES : [DATES[1]!],
          // A whole day every minute takes 30 s.
          intervalS: Math.max(request.intervalS, request.hour === null ? runs(300, 59) : 59),
          levels: request.levels,
          hour: request.hour,
        })
        for (const format of FORMATS) {
          const query = { ...asked, format }
          const { body, head } = await collectLob(lake, query)
          const described = await collectLob(lake, query, {
            part: 'receipt',
            bounds: isCut ? TINY_SHARES : undefined,
          })
          assert.equal(described.head!.identity, head!.identity)
          assert.equal(described.head!.rows, head!.rows)
          assert.ok(described.body.equals(body))
          const { rows, blocks: planned } = described.head!.receiptPlan!
          assert.equal(rows, described.endRows)
          assert.equal(described.sections.length, planned.length)
          if (format === 'parquet') assert.deepEqual(planned, [])
          const blocks = planned.map((block, number) => ({ ...block, ...described.sections[number]! }))
          assertBlocks(blocks, rows, body)
          const chosen = [0, 1, Math.floor(blocks.length / 2), blocks.length - 1]
          for (const fromBlock of chosen.filter((number) => number < blocks.length && number >= 0)) {
            const rest = await collectLob(lake, query, { part: { fromBlock } })
            assert.equal(rest.failure, undefined, rest.failure?.detail)
            const from = blocks.slice(0, fromBlock)
            const start = from.reduce((sum, { bytes }) => sum + bytes, 0)
            assert.ok(rest.body.equals(body.subarray(start)), `${format} from block ${fromBlock}`)
            // Only the remaining rows are made.
            assert.equal(rest.endRows, rows - from.reduce((sum, block) => sum + block.rows, 0))
          }
        }
      } finally {
        rmSync(lake, { recursive: true, force: true })
      }
    }),
    { numRuns: LAKES },
  )
})

function assertBlocks(blocks: readonly LobBlock[], rows: number, body: Buffer): void {
  if (blocks.length === 0) return
  let start = 0
  for (const { bytes, sha256: digest } of blocks) {
    assert.equal(digest, sha256(body.subarray(start, start + bytes)))
    start += bytes
  }
  assert.equal(start, body.length)
  assert.equal(
    blocks.reduce((sum, block) => sum + block.rows, 0),
    rows,
  )
}

interface ReceiptAnswer {
  readonly etag: string
  readonly parameters: string
  readonly rows: number
  readonly bytes: number
  readonly sha256: string
  readonly first_ts: number | null
  readonly last_ts: number | null
  readonly markets: number
  readonly known_s: number
  readonly gap_s: number
  readonly blocks: readonly { readonly hour: string; readonly rows: number; readonly bytes: number }[]
}

const samples = fc.record({
  subject: fc.constantFrom(
    'series=KXHIGHNY',
    'series=KXHIGHNY-26JUL02',
    'market=KXHIGHNY-26JUL01-B81.5',
    'source=polymarket&series=highest-temperature-in-nyc',
  ),
  dates: fc.constantFrom('date=2026-07-01', 'date=2026-07-02', 'from=2026-07-01&to=2026-07-03'),
  interval: fc.constantFrom(300, 601, 900, 3600),
  levels: fc.constantFrom(1, 3, 10),
  format: fc.constantFrom(...FORMATS),
  more: fc.constantFrom('', '&hour=18', '&columns=ts,mid', '&nulls=true', '&limit=100', '&columns=bids'),
})

test('a receipt states rows, bytes and digest of the body, whose response then has them as headers', async (t) => {
  const { url } = await startSampleServer(t)
  await fc.assert(
    fc.asyncProperty(samples, async ({ subject, dates, interval, levels, format, more }) => {
      const query = `${subject}&${dates}&interval=${interval}&levels=${levels}&format=${format}${more}`
      const target = `${url}/api/v1/lob?${query}`
      const plain = { headers: { 'Accept-Encoding': 'identity' } }
      const first = await fetch(target, plain)
      const body = Buffer.from(await first.arrayBuffer())
      if (first.status === 404) return
      assert.equal(first.status, 200, query)
      const described = /^<([^>]+)>; rel="describedby"/.exec(first.headers.get('link') ?? '')?.[1]
      const receipt = (await (await fetch(url + described!)).json()) as ReceiptAnswer
      const again = (await (await fetch(`${url}/api/v1/lob/receipt?${query}`)).json()) as ReceiptAnswer
      assert.deepEqual(again, receipt)
      assert.equal(receipt.etag, first.headers.get('etag'))
      assert.equal(receipt.bytes, body.length)
      assert.equal(receipt.sha256, sha256(body))
      const json = await fetch(`${url}/api/v1/lob?${query.replace(`format=${format}`, 'format=json')}`)
      const rows = (await json.json()) as { readonly ts?: number }[]
      assert.equal(receipt.rows, rows.length)
      if (rows[0]?.ts !== undefined) {
        assert.equal(receipt.first_ts, rows[0].ts)
        assert.equal(receipt.last_ts, rows.at(-1)!.ts)
      }
      const digest = `sha-256=:${Buffer.from(receipt.sha256, 'hex').toString('base64')}:`
      for (const method of ['HEAD', 'GET']) {
        const known = await fetch(target, { method, ...plain })
        await known.arrayBuffer()
        assert.equal(known.headers.get('content-length'), String(body.length), method)
        assert.equal(known.headers.get('repr-digest'), digest, method)
      }
      const coded = await fetch(target, { headers: { 'Accept-Encoding': 'gzip' } })
      assert.ok(Buffer.from(await coded.arrayBuffer()).equals(body))
      const isCoded = format !== 'parquet'
      assert.equal(coded.headers.get('content-encoding'), isCoded ? 'gzip' : null)
      assert.equal(coded.headers.get('repr-digest'), isCoded ? null : digest)
      assert.equal(coded.headers.get('accept-ranges'), null)
      if (!isCoded) {
        const footer = parquetMetadata(Uint8Array.from(body).buffer).key_value_metadata ?? []
        const values = new Map(footer.map(({ key, value }) => [key, value]))
        assert.equal(values.get('bookcast.rows'), String(receipt.rows))
        assert.equal(values.get('bookcast.parameters'), receipt.parameters)
      }
    }),
    { numRuns: REQUESTS },
  )
})

test('the known and gap seconds of the receipts of all pages add up to those of the whole', async (t) => {
  const { url } = await startSampleServer(t)
  const ask = async (target: string): Promise<Response> => await fetch(`${url}${target}`)
  for (const dates of ['date=2026-07-02', 'date=2026-07-02&hour=18', 'from=2026-07-01&to=2026-07-03']) {
    const query = `series=KXHIGHCHI&${dates}&interval=600&format=ndjson`
    const whole = (await (await ask(`/api/v1/lob/receipt?${query}`)).json()) as ReceiptAnswer
    const [half, sum] = [Math.ceil(whole.rows / 2), { known_s: 0, gap_s: 0 }]
    let target: string | undefined = `/api/v1/lob?${query}&limit=${half}`
    while (target !== undefined) {
      const page = (await (await ask(target.replace('lob?', 'lob/receipt?'))).json()) as ReceiptAnswer
      assert.ok(page.known_s < 0.6 * whole.known_s, `${page.known_s} of ${whole.known_s}`)
      sum.known_s += page.known_s
      sum.gap_s += page.gap_s
      const link: string = (await ask(target)).headers.get('link') ?? ''
      target = /<([^>]+)>; rel="next"/.exec(link)?.[1]
    }
    const rounded = ({ known_s, gap_s }: typeof sum): number[] =>
      [known_s, gap_s].map((s) => Number(s.toFixed(3)))
    assert.deepEqual(rounded(sum), rounded(whole), query)
    assert.ok(whole.gap_s > 0)
  }
})

const QUERY = 'series=KXHIGHNY&date=2026-07-02&interval=300&levels=3'

test('a range is that part of the body; interrupted transfers join to the whole', async (t) => {
  const { url } = await startSampleServer(t)
  for (const format of ['json', 'ndjson', 'csv'] as const) {
    const target = `${url}/api/v1/lob?${QUERY}&format=${format}`
    const whole = await fetch(target, { headers: { 'Accept-Encoding': 'identity' } })
    assert.equal(whole.headers.get('accept-ranges'), 'bytes')
    const tag = whole.headers.get('etag')!
    const body = Buffer.from(await whole.arrayBuffer())
    const total = body.length
    const part = async (range: string, ifRange = tag): Promise<Response> =>
      fetch(target, { headers: { 'Accept-Encoding': 'identity', Range: range, 'If-Range': ifRange } })
    const random = Array.from({ length: CUTS }, () => Math.floor(Math.random() * total))
    for (const cut of [0, 1, total - 1, ...random]) {
      const response = await part(`bytes=${cut}-`)
      assert.equal(response.status, 206)
      assert.equal(response.headers.get('content-range'), `bytes ${cut}-${total - 1}/${total}`)
      assert.equal(response.headers.get('content-length'), String(total - cut))
      assert.equal(response.headers.get('etag'), tag)
      const rest = Buffer.from(await response.arrayBuffer())
      assert.ok(Buffer.concat([body.subarray(0, cut), rest]).equals(body), `${format} from ${cut}`)
    }
    const [low, high] = random.slice(0, 2).toSorted((a, b) => a - b)
    const cases = [
      [`bytes=${low}-${high}`, low!, high!],
      [`BYTES=0-0`, 0, 0],
      [`bytes=-7`, total - 7, total - 1],
      [`bytes=-${total * 2}`, 0, total - 1],
      [`bytes=5-${total * 2}`, 5, total - 1],
    ] as const
    for (const [range, first, last] of cases) {
      const response = await part(range)
      assert.equal(response.headers.get('content-range'), `bytes ${first}-${last}/${total}`, range)
      assert.ok(Buffer.from(await response.arrayBuffer()).equals(body.subarray(first, last + 1)), range)
    }
    for (const range of [`bytes=${total}-`, `bytes=${total}-${total + 5}`, 'bytes=-0']) {
      const refused = await part(range)
      assert.equal(refused.status, 416, range)
      assert.equal(refused.headers.get('content-range'), `bytes */${total}`)
      assert.equal((await readProblem(refused)).code, 'range_not_satisfiable')
    }
  }
})

test('ignores a Range that is not a single range of bytes, or that belongs to another answer', async (t) => {
  const { url } = await startSampleServer(t)
  const target = `${url}/api/v1/lob?${QUERY}&format=csv`
  const whole = await fetch(target, { headers: { 'Accept-Encoding': 'identity' } })
  const tag = whole.headers.get('etag')!
  const body = Buffer.from(await whole.arrayBuffer())
  const malformed =
    '|bytes|bytes=|bytes=-|bytes=a-b|bytes=5-1|bytes=1-2,5-6|bytes=0-1,|rows=0-1|bytes=1.5-|bytes=-1-|bytes 0-1|' +
    'bytes=0x1-|bytes=9999999999999999-|bytes= 1-|0-1'
  const ranges = malformed.split('|').map((range) => ({ Range: range }))
  const tags = ['"other"', `W/${tag}`, tag.slice(1, -1), 'Wed, 01 Jul 2026 00:00:00 GMT', '*']
  const others = tags.map((ifRange) => ({ Range: 'bytes=10-', 'If-Range': ifRange }))
  const coded = { Range: 'bytes=10-', 'Accept-Encoding': 'gzip' }
  for (const headers of [...ranges, ...others, coded]) {
    const response = await fetch(target, { headers: { 'Accept-Encoding': 'identity', ...headers } })
    assert.equal(response.status, 200, JSON.stringify(headers))
    assert.equal(response.headers.get('content-range'), null)
    assert.ok(Buffer.from(await response.arrayBuffer()).equals(body), JSON.stringify(headers))
  }
  const identity = { 'Accept-Encoding': 'identity', Range: 'bytes=10-' }
  const head = await fetch(target, { method: 'HEAD', headers: identity })
  assert.equal(head.status, 200)
  const held = await fetch(target, { headers: { ...identity, 'If-None-Match': tag } })
  assert.equal(held.status, 304)
  const unknown = await fetch(`${url}/api/v1/lob?series=KXNOSUCH&date=2026-07-02`, { headers: identity })
  assert.equal(unknown.status, 404)
  await unknown.arrayBuffer()
  const parquet = await fetch(`${url}/api/v1/lob?${QUERY}&format=parquet`, { headers: identity })
  assert.equal(parquet.status, 200)
  assert.equal(parquet.headers.get('accept-ranges'), null)
  await parquet.arrayBuffer()
})

test('after a file is replaced a range request gets the whole new answer', async (t) => {
  const lake = await temporaryDirectory(t)
  cpSync(SAMPLE_LAKE, lake, { recursive: true })
  const { url } = await startSampleServer(t, { lake })
  const target = `${url}/api/v1/lob?${QUERY}&format=ndjson`
  const plain = { 'Accept-Encoding': 'identity' }
  const whole = await fetch(target, { headers: plain })
  const tag = whole.headers.get('etag')!
  await whole.arrayBuffer()
  const before = await fetch(target, { headers: { ...plain, Range: 'bytes=100-', 'If-Range': tag } })
  assert.equal(before.status, 206)
  await before.arrayBuffer()
  rmSync(pathOfDate(lake, '2026-07-02'))
  await writeEvents(lake, [bookEvent('KXHIGHNY-26JUL02-B81.5', DAY_START + 25n * HOUR, EVENT_CLEAR)])
  const fresh = Buffer.from(await (await fetch(target, { headers: plain })).arrayBuffer())
  const after = await fetch(target, { headers: { ...plain, Range: 'bytes=100-', 'If-Range': tag } })
  assert.equal(after.status, 200)
  assert.notEqual(after.headers.get('etag'), tag)
  assert.ok(Buffer.from(await after.arrayBuffer()).equals(fresh))
})

test('a range needs no other files than its answer: the file of the date before may be broken', async (t) => {
  const lake = await temporaryDirectory(t)
  cpSync(SAMPLE_LAKE, lake, { recursive: true })
  const { url } = await startSampleServer(t, { lake })
  const target = `${url}/api/v1/lob?${QUERY}&format=csv`
  writeFileSync(pathOfDate(lake, '2026-07-01'), 'broken')
  const plain = { 'Accept-Encoding': 'identity' }
  const whole = Buffer.from(await (await fetch(target, { headers: plain })).arrayBuffer())
  const part = await fetch(target, { headers: { ...plain, Range: 'bytes=100-' } })
  assert.equal(part.status, 206)
  assert.ok(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(100)))
})

test('concurrent requests for an unknown receipt share one build, even if one client disconnects', async () => {
  const builds: { readonly signal: AbortSignal; readonly end: (failure?: Error) => void }[] = []
  const open = async (_: LobQuery, { validation, signal }: LobOpenOptions) => {
    const isHeld = validation.held.includes('answer')
    const built = new Promise<null>((resolve, reject) => {
      if (!isHeld) builds.push({ signal, end: (failure) => (failure ? reject(failure) : resolve(null)) })
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
    const head = { identity: 'answer', isHeld, receiptPlan: { rows: 7, blocks: [] } }
    return { head, sections: [], bytesGiven: 9, next: async () => built, close: async () => {} }
  }
  const source = { pool: { open } as unknown as LobPool, receipts: new LobReceipts() }
  const ask = async ({ signal }: AbortController, intervalS: number) =>
    receiptOf(source, lobQuery({ series: SERIES, dates: DATES, intervalS }), {
      headOnly: false,
      catalogue: null,
      validation: { seed: '', held: [] },
      signal,
      client: 'one',
    })
  const [leaving, staying] = [new AbortController(), new AbortController()]
  const begun = async (count: number) => {
    while (builds.length < count) await setImmediate()
  }
  const left = assert.rejects(ask(leaving, 60), /left/)
  const all = [1, 2, 3].map(async () => ask(staying, 60))
  await begun(1)
  leaving.abort(new Error('left'))
  await left
  assert.equal(builds[0]!.signal.aborted, false)
  builds[0]!.end()
  for (const receipt of await Promise.all(all)) assert.equal(receipt?.receipt.bytes, 9)
  assert.equal(builds.length, 1)
  const failing = [1, 2, 3].map(async () => assert.rejects(ask(staying, 300), /broken/))
  for (const count of [2, 3]) {
    await begun(count)
    builds.at(-1)!.end(new Error('broken'))
  }
  await Promise.all(failing)
  assert.equal(builds.length, 3)
  const gone = assert.rejects(ask(staying, 600), /gone/)
  await begun(4)
  staying.abort(new Error('gone'))
  await gone
  assert.equal(builds[3]!.signal.aborted, true)
})

test('the newest receipts are kept up to a bound', () => {
  const receipts = new LobReceipts(100)
  const block = { seconds: 0, rows: 1, bytes: 1, sha256: '' }
  const receipt = {
    bytes: 1,
    sha256: '',
    rows: 1,
    firstSeconds: 0,
    lastSeconds: 0,
    markets: 1,
  }
  const asked = (limit: number): LobQuery => lobQuery({ series: SERIES, dates: DATES, limit })
  const blocks = Array.from({ length: 9 }, () => block)
  const keep = (limit: number, identity: string): void =>
    receipts.keep(asked(limit), undefined, { identity, receipt: { ...receipt, blocks } })
  for (let limit = 1; limit <= 50; limit++) keep(limit, 'first')
  // If an answer has changed, its receipt is replaced and becomes the newest.
  keep(41, 'second')
  keep(51, 'first')
  const known = Array.from({ length: 51 }, (_, index) => receipts.last(asked(index + 1), undefined)?.identity)
  assert.deepEqual(
    known.flatMap((identity, index) => (identity === undefined ? [] : [`${index + 1} ${identity}`])),
    ['41 second', ...Array.from({ length: 8 }, (_, index) => `${43 + index} first`), '51 first'],
  )
})
