// /api/v1/lob/dates over the sample lake, damaged and foreign files, and the nearest dates in no_data errors.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { EVENT_CLEAR } from '../../shared/lob-v1.ts'
import { lobFilePath, lobSeriesDirectory } from '../../shared/lake-layout.ts'
import { addDays, MS_PER_DAY, utcDateOf } from '../../shared/utc-date.ts'
import { readRows } from '../support/lob-rows.ts'
import { bookEvent, DAY_START, HOUR, pathOfDate, SERIES, writeEvents } from '../support/recorded-events.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { readProblem, startTestServer } from '../support/test-server.ts'

interface Dates {
  readonly date: string
  readonly state: string
  readonly bytes: number
  readonly rows: number | null
}

test('returns the dates of a series and of an event from their files', async (t) => {
  const { url } = await startSampleServer(t)
  const get = async (query: string): Promise<Dates[]> =>
    (await (await fetch(`${url}/api/v1/lob/dates?${query}`)).json()) as Dates[]
  const names = readdirSync(lobSeriesDirectory(SAMPLE_LAKE, 'kalshi', SERIES)).toSorted()
  const expected: Dates[] = []
  const ofEvent: Dates[] = []
  for (const name of names) {
    const date = name.slice('date='.length)
    const path = lobFilePath(SAMPLE_LAKE, 'kalshi', SERIES, date)
    const rows = await readRows(path)
    const entry = { date, state: 'closed', bytes: statSync(path).size, rows: rows.length }
    expected.push(entry)
    const own = rows.filter(({ market_id: id }) => id.startsWith('KXHIGHNY-26JUL02-')).length
    if (own > 0) ofEvent.push({ ...entry, rows: own })
  }
  assert.ok(expected.length >= 3)
  assert.deepEqual(await get(`series=${SERIES}`), expected)
  assert.deepEqual(await get(`series=${SERIES}&from=2026-07-02`), expected.slice(1))
  assert.deepEqual(await get(`series=${SERIES}&to=2026-07-02`), expected.slice(0, -1))
  assert.deepEqual(await get(`series=${SERIES}&from=2030-01-01`), [])
  assert.deepEqual(await get('series=KXHIGHNY-26JUL02'), ofEvent)
  assert.ok(ofEvent.length > 0 && ofEvent.length < expected.length + 1)
  const page = await fetch(`${url}/api/v1/lob/dates?series=${SERIES}&limit=2`)
  assert.deepEqual(await page.json(), expected.slice(0, 2))
  const next = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1]
  const last = await fetch(url + next!)
  assert.deepEqual(await last.json(), expected.slice(2, 4))
})

test('reports open dates and unreadable files, and refuses unknown names', async (t) => {
  const lake = await temporaryDirectory(t)
  const today = utcDateOf(Date.now())
  const now = BigInt(Date.parse(`${today}T00:00:00Z`)) * 1_000_000n
  await writeEvents(lake, [bookEvent(`${SERIES}-A-1`, DAY_START + HOUR, EVENT_CLEAR)])
  await writeEvents(lake, [bookEvent(`${SERIES}-B-1`, now, EVENT_CLEAR)])
  const broken = pathOfDate(lake, '2026-07-03')
  mkdirSync(dirname(broken))
  writeFileSync(broken, 'no parquet at all, and longer than a trailer')
  mkdirSync(join(dirname(dirname(broken)), 'date=2026-07-05.part'))
  mkdirSync(dirname(lobFilePath(lake, 'kalshi', 'KXEMPTY', '2026-07-01')), { recursive: true })
  const loop = lobFilePath(lake, 'kalshi', 'KXLOOP', '2026-07-01')
  mkdirSync(dirname(loop), { recursive: true })
  symlinkSync(loop, loop)
  const { url } = await startTestServer(t, { lake }, { worker: 'real' })
  const get = async (query: string): Promise<Response> => fetch(`${url}/api/v1/lob/dates?${query}`)
  const dates = (await (await get(`series=${SERIES}`)).json()) as Dates[]
  assert.deepEqual(
    dates.map(({ date, state, rows }) => [date, state, rows === null]),
    [
      ['2026-07-01', 'closed', false],
      ['2026-07-03', 'invalid', true],
      [today, 'open', false],
    ],
  )
  const looped = [{ date: '2026-07-01', state: 'invalid', bytes: 0, rows: null }]
  assert.deepEqual(await (await get('series=KXLOOP')).json(), looped)
  for (const series of ['KXNOSUCH', 'KXEMPTY'])
    assert.equal((await readProblem(await get(`series=${series}`))).code, 'unknown_series')
  const wrong = [
    ['', 'series'],
    ['series=', 'series'],
    ['series=..', 'series'],
    ['series=a/b', 'series'],
    [`series=${SERIES}&series=${SERIES}`, 'series'],
    [`series=${SERIES}&source=binance`, 'source'],
    [`series=${SERIES}&from=2026-7-1`, 'from'],
    [`series=${SERIES}&to=today`, 'to'],
    [`series=${SERIES}&from=2026-07-02&to=2026-07-01`, 'to'],
    [`series=${SERIES}&limit=0`, 'limit'],
    [`series=${SERIES}&limit=10001`, 'limit'],
    [`series=${SERIES}&offset=-1`, 'offset'],
    [`series=${SERIES}&date=2026-07-01`, 'date'],
  ] as const
  for (const [query, name] of wrong) {
    const response = await get(query)
    assert.equal(response.status, 400, query)
    const { errors } = await readProblem(response)
    assert.deepEqual(
      errors?.map(({ parameter }) => parameter),
      [name],
      query,
    )
  }
  const lob = async (query: string): Promise<string> =>
    (await readProblem(await fetch(`${url}/api/v1/lob?series=${SERIES}&${query}`))).detail
  assert.match(await lob('date=2026-06-15'), /The nearest date is 2026-07-01\.$/)
  assert.match(await lob('date=2026-07-02'), /The nearest dates are 2026-07-01 and 2026-07-03\.$/)
  assert.match(await lob('from=2026-07-05&to=2026-07-09'), new RegExp(`are 2026-07-03 and ${today}\\.$`))
  // A process may die between creating a directory and renaming its file.
  mkdirSync(dirname(pathOfDate(lake, '2026-07-04')))
  mkdirSync(dirname(pathOfDate(lake, '2026-07-06')))
  execFileSync('mkfifo', [pathOfDate(lake, '2026-07-06')])
  writeFileSync(dirname(pathOfDate(lake, '2026-07-07')), 'in the place of a directory')
  for (const page of ['', '&limit=3'])
    assert.deepEqual(await (await get(`series=${SERIES}${page}`)).json(), dates)
})

test('lists dates in Partial-Dates that are known but still open', async (t) => {
  const lake = await temporaryDirectory(t)
  const open = utcDateOf(Date.now() - MS_PER_DAY)
  const closed = addDays(open, -1)
  const start = BigInt(Date.parse(closed)) * 1_000_000n
  const [first, next] = [`${SERIES}-A-1`, `${SERIES}-A-2`]
  await writeEvents(lake, [bookEvent(first, start, EVENT_CLEAR)], {}, start + 48n * HOUR - 1n)
  await writeEvents(lake, [bookEvent(next, start + 48n * HOUR, EVENT_CLEAR)])
  const { url } = await startTestServer(t, { lake }, { worker: 'real' })
  const partial = async (query: string): Promise<string | null> => {
    const answer = await fetch(`${url}/api/v1/lob?series=${SERIES}&interval=3600&${query}`)
    assert.equal(answer.status, 200)
    return answer.headers.get('partial-dates')
  }
  assert.equal(await partial(`date=${closed}`), null)
  assert.equal(await partial(`from=${closed}&to=${open}`), open)
  assert.equal(await partial(`from=${closed}&to=${open}&limit=24`), null)
  assert.equal(await partial(`from=${closed}&to=${open}&limit=25`), open)
})
