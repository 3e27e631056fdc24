// `limit` and `after` of /api/v1/lob: the first rows, and the rows after a position, against the naive reference in every
// format, and Link followed over HTTP to the last page.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { type LobQuery, type RowPlace, SNAPSHOT_COLUMNS } from '../../shared/lob-task.ts'
import { bookEvents, type BookScript } from '../support/book-scripts.ts'
import { runs } from '../support/effort.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import type { NaiveRow } from '../support/naive-lob.ts'
import { PARQUET_READERS, rowText } from '../support/parquet-readers.ts'
import { startSampleServer } from '../support/sample-server.ts'
import { readProblem } from '../support/test-server.ts'
import {
  csvOf,
  DATES,
  dateStartNs,
  expectedRows,
  FIRST_DATE,
  ndjsonOf,
  type Request,
  requests,
  SERIES,
  type Shape,
  shapes,
  writeLake,
} from '../support/truth-lakes.ts'

const RUNS = runs(6, 200)

interface Window {
  /** The row that `after` names, as a share of all rows. */
  readonly place: number
  readonly hasMarket: boolean
  readonly isOffTick: boolean
  readonly limit: number
}

const windows: fc.Arbitrary<Window> = fc.record({
  place: fc.double({ min: 0, max: 1, noNaN: true }),
  hasMarket: fc.boolean(),
  isOffTick: fc.boolean(),
  limit: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 20 }), fc.integer({ min: 21, max: 5_000 })),
})

test('limit and after return the rows of the naive reference in every format', async () => {
  const scripts = bookEvents({ marketCount: 3, startNs: dateStartNs(FIRST_DATE), hours: 48 })
  await fc.assert(fc.asyncProperty(scripts, shapes, requests, windows, check), { numRuns: RUNS })
})

const secondsOf = ({ ts }: NaiveRow): number => Math.round(ts / 1e9)

function isBehind(row: NaiveRow, { seconds, marketId }: RowPlace): boolean {
  if (secondsOf(row) !== seconds) return secondsOf(row) > seconds
  return marketId !== null && row.market_id > marketId
}

async function check(
  { events }: BookScript,
  shape: Shape,
  request: Request,
  { place, hasMarket, isOffTick, limit }: Window,
): Promise<void> {
  const lake = mkdtempSync(join(tmpdir(), 'bookcast-window-'))
  try {
    writeLake(lake, events, shape)
    const isKnown = events.some(({ marketId }) => marketId === request.market)
    const whole = lobQuery({
      market: isKnown ? request.market : null,
      series: isKnown ? null : SERIES,
      dates: request.isRange ? DATES : [DATES[1]!],
      intervalS: Math.max(request.intervalS, 7),
      levels: request.levels,
      hour: request.hour,
    })
    const all = expectedRows(events, shape, whole)
    const at = all[Math.floor(place * all.length)]
    const after = {
      seconds: at === undefined ? Number(dateStartNs(FIRST_DATE) / 1_000_000_000n) : secondsOf(at),
      marketId: hasMarket && !isOffTick ? (at?.market_id ?? 'M1') : null,
    }
    const rest = all.filter((row) => isBehind(row, after))
    await checkFormats(lake, { ...whole, after, limit }, rest.slice(0, limit), rest.length > limit)
    await checkFormats(lake, { ...whole, limit }, all.slice(0, limit), all.length > limit)
    if (rest.length <= 5_000) await checkFormats(lake, { ...whole, after }, rest, false)
  } finally {
    rmSync(lake, { recursive: true, force: true })
  }
}

async function checkFormats(
  lake: string,
  query: LobQuery,
  rows: readonly NaiveRow[],
  hasMore: boolean,
): Promise<void> {
  const bodyOf = async (format: LobQuery['format']): Promise<Buffer> => {
    const { failure, head, body, endRows } = await collectLob(lake, { ...query, format })
    assert.equal(failure, undefined, failure?.detail)
    assert.equal(head!.rows, rows.length)
    // The rows that were made, not only those that were planned.
    assert.equal(endRows, rows.length)
    const last = rows.at(-1)
    const lastRow = hasMore ? { seconds: secondsOf(last!), marketId: last!.market_id } : null
    assert.deepEqual(head!.lastRow, lastRow)
    return body
  }
  assert.equal((await bodyOf('ndjson')).toString(), ndjsonOf(rows))
  assert.equal((await bodyOf('json')).toString(), JSON.stringify(rows))
  assert.equal((await bodyOf('csv')).toString(), csvOf(rows, query.levels))
  const levels = (side: NaiveRow['bids']): object[] =>
    side.map(({ price, qty }) => ({ price, qty: BigInt(qty) }))
  const expected = rows.map((row) =>
    rowText({ ...row, ts: BigInt(row.ts), bids: levels(row.bids), asks: levels(row.asks) }),
  )
  assert.deepEqual(await PARQUET_READERS['hyparquet']!(await bodyOf('parquet')), expected)
}

test('following Link from page to page, over dates, gives the rows of the whole answer', async (t) => {
  const { url } = await startSampleServer(t)
  const query = 'series=KXHIGHNY&from=2026-07-01&to=2026-07-03&interval=900&levels=3'
  const whole = (await (await fetch(`${url}/api/v1/lob?${query}`)).json()) as NaiveRow[]
  const rows: NaiveRow[] = []
  let target: string | undefined = `/api/v1/lob?${query}&limit=700`
  let pages = 0
  while (target !== undefined) {
    const response: Response = await fetch(url + target)
    assert.equal(response.status, 200)
    rows.push(...((await response.json()) as NaiveRow[]))
    target = /, <([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
    pages++
  }
  assert.deepEqual(rows, whole)
  assert.equal(pages, Math.ceil(whole.length / 700))
})

test('limit allows a few rows of a day that exceeds the row limit', async (t) => {
  const { url } = await startSampleServer(t)
  const target = `${url}/api/v1/lob?series=KXHIGHNY&date=2026-07-02&interval=1`
  const refused = await readProblem(await fetch(target))
  assert.equal(refused.code, 'too_many_rows')
  assert.match(refused.detail, /limit/)
  const response = await fetch(`${target}&limit=5`)
  const rows = (await response.json()) as NaiveRow[]
  assert.equal(rows.length, 5)
  assert.deepEqual(Object.keys(rows[0]!), [...SNAPSHOT_COLUMNS])
  const etags = new Set<string | null>([response.headers.get('etag')])
  for (const more of [
    '&limit=6',
    '&limit=5&after=1782950400000000000',
    '&limit=5&after=1782950400000000000,M',
  ])
    etags.add((await fetch(target + more)).headers.get('etag'))
  assert.equal(etags.size, 4, 'each has its own tag')
})
