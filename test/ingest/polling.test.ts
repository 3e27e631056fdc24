import assert from 'node:assert/strict'
import { beforeEach, test, type TestContext } from 'node:test'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import { IEM_COLUMNS } from '../../server/ingest/iem/parse.ts'
import { type IngestEvent, pollSource, type RunOutcome } from '../../server/ingest/run-source.ts'
import type { SourceName } from '../../server/ingest/source.ts'
import { productText } from '../support/climate-text.ts'
import { ghcnhTable } from '../support/ghcnh-table.ts'
import { send } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import {
  metarEntry,
  NWS_PRODUCT,
  startWorld,
  type UpstreamWorld,
  WORLD_NOW_MS,
  worldContext,
  worldSource,
} from '../support/upstream-world.ts'

const file = storeOfThisFile()
const TABLES = 'series, markets, candles, observations, climate_records, ingest_cursors, lake_manifest'
const HOUR_MS = 3_600_000

beforeEach(async () => {
  await file.store.postgres.run({ text: `TRUNCATE ${TABLES}`, parameters: [] })
})

async function count(table: 'observations' | 'climate_records'): Promise<number> {
  const [row] = await file.store.postgres.run<{ readonly count: number }>({
    text: `SELECT count(*)::int4 AS count FROM ${table}`,
    parameters: [],
  })
  return row?.count ?? 0
}

/** One poll by a new process; its problems are added to a list. */
async function poll(
  t: TestContext,
  world: UpstreamWorld,
  name: SourceName,
  { problems = [], nowMs = WORLD_NOW_MS }: { problems?: string[]; nowMs?: number } = {},
): Promise<RunOutcome> {
  return await pollSource(worldSource(t, world, name), {
    ...worldContext(file.store.postgres),
    clock: { nowMs: () => nowMs, sleep: async () => {} },
    onEvent: (event: IngestEvent) => {
      if (event.kind === 'rejected') problems.push(...event.problems)
    },
  })
}

function asosLine(valid: string): string {
  const stamp = `${valid.slice(8, 10)}${valid.slice(11, 13)}${valid.slice(14, 16)}Z`
  const metar = `KMIA ${stamp} AUTO 21007KT 10SM FEW039 26/17 A2994 RMK AO2 SLP137 T02560172`
  const cells: Record<string, string> = { station: 'MIA', valid, metar }
  return IEM_COLUMNS.map((column) => cells[column] ?? 'M').join(',')
}

/** The archive's routine reports of one station, one for each time. */
function asosAnswer(world: UpstreamWorld, times: readonly string[]): void {
  world.fault = ({ url }) => {
    if (!url.includes('asos.py')) return undefined
    const query = new URL(url, 'http://local').searchParams
    const isAsked = query.get('station') === 'MIA' && query.get('report_type') === '3'
    const [from, to] = [Date.parse(query.get('sts') ?? ''), Date.parse(query.get('ets') ?? '')]
    const within = times.filter((time) => {
      const ms = Date.parse(`${time.replace(' ', 'T')}:00Z`)
      return ms >= from && ms < to
    })
    const lines = isAsked ? within.map(asosLine) : []
    return send(200, `${[IEM_COLUMNS.join(','), ...lines].join('\n')}\n`)
  }
}

test('reports of the live feed that are two hours ahead are refused until their time', async (t) => {
  const world = await startWorld(t)
  // Without an absence one request covers all stations.
  await file.store.postgres.run({
    text: `INSERT INTO ingest_cursors (source, scope, completed) VALUES
      ('aviation-weather', 'live', '{[2026-08-30 04:30Z, 2026-08-30 11:59Z)}')`,
    parameters: [],
  })
  world.entries = [
    metarEntry('KNYC', '2026-08-30T11:51:00Z'),
    metarEntry('KNYC', '2026-08-30T12:10:00Z'),
    metarEntry('KMIA', '2026-08-30T13:53:00Z'),
  ]
  const source = worldSource(t, world, 'aviation-weather')
  let nowMs = WORLD_NOW_MS
  const problems: string[] = []
  const options = {
    ...worldContext(file.store.postgres),
    clock: { nowMs: () => nowMs, sleep: async () => {} },
    onEvent: (event: IngestEvent) => {
      if (event.kind === 'rejected') problems.push(...event.problems)
    },
  }
  const answer = send(200, JSON.stringify(world.entries), { etag: '"1"' })
  world.fault = ({ headers }) => (headers['if-none-match'] === '"1"' ? send(304) : answer)
  const first = await pollSource(source, options)
  assert.deepEqual([first.rowCount, first.errorCount], [2, 1])
  assert.deepEqual(problems, [
    '1 reports lie in the future and are refused, first MIA METAR of 2026-08-30T13:53Z,' +
      ' 113 minutes ahead of this clock',
  ])
  nowMs += 2 * HOUR_MS
  const later = await pollSource(source, options)
  assert.deepEqual([later.rowCount, later.errorCount, await count('observations')], [1, 0, 3])
})

test('future reports of the archives are refused and named, too', async (t) => {
  const world = await startWorld(t)
  asosAnswer(world, ['2026-08-30 11:51', '2026-08-30 14:51'])
  const problems: string[] = []
  await poll(t, world, 'iem', { problems })
  assert.match(problems.join('\n'), /^1 reports lie in the future and are refused, first MIA METAR of/)
  assert.equal(await count('observations'), 1)
  const table = (year: string): string =>
    ghcnhTable([{ cells: { temperature: '7.8|5' }, station: 'USW00012839' }]).replaceAll('2023|', `${year}|`)
  world.fault = ({ url }) => (url.startsWith('/ncei') ? send(200, table('2027'), { etag: '"1"' }) : undefined)
  problems.length = 0
  await poll(t, world, 'ncei', { problems })
  assert.match(problems.join('\n'), /first MIA METAR of 2027-01-03T05:52Z/)
  // Nothing of it is stored, so the file is requested again in full.
  await poll(t, world, 'ncei')
  assert.ok(world.asked.every(({ headers }) => headers['if-none-match'] === undefined))
  assert.equal(await count('observations'), 1)
})

test('days that a clock ahead by days marked complete are requested when they come', async (t) => {
  const world = await startWorld(t)
  const told = ['2026-08-30 10:53', '2026-08-30 23:53', '2026-08-31 23:53', '2026-09-01 23:53']
  asosAnswer(world, told)
  const day = 24 * HOUR_MS
  await poll(t, world, 'iem', { nowMs: WORLD_NOW_MS + 5 * day })
  await file.store.postgres.run({ text: 'TRUNCATE observations', parameters: [] })
  await file.store.postgres.run({ text: "UPDATE ingest_cursors SET state = '{}'", parameters: [] })
  for (const [index] of told.entries()) {
    await poll(t, world, 'iem', { nowMs: WORLD_NOW_MS + index * day })
    assert.equal(await count('observations'), index + 1)
  }
})

test('a climate report from the future is refused, and stored at its time', async (t) => {
  const world = await startWorld(t)
  const text = productText({
    header: 'CDUS42 KMFL 310824',
    issued: '424 AM EDT MON AUG 31 2026',
    summaries: [{ name: 'MIAMI', date: 'AUGUST 30 2026' }],
  })
  world.fault = ({ url }) =>
    url.endsWith(`/products/${NWS_PRODUCT}`)
      ? send(200, JSON.stringify({ id: NWS_PRODUCT, productText: text }))
      : undefined
  const problems: string[] = []
  await poll(t, world, 'climate-nws', { problems })
  assert.match(problems.join('\n'), /^1 reports lie in the future and are refused/)
  assert.equal(await count('climate_records'), 0)
  assert.equal((await poll(t, world, 'climate-nws', { nowMs: WORLD_NOW_MS + 24 * HOUR_MS })).errorCount, 0)
  assert.equal(await count('climate_records'), 1)
})

test('rows that have moved to the lake are not stored again when an archive returns them again', async (t) => {
  const world = await startWorld(t)
  const times = ['2026-08-28 11:53', '2026-08-29 11:53', '2026-08-29 12:53']
  for (const name of ['iem', 'ncei'] as const) {
    const answer = (reports: readonly string[], tag: string): void => {
      if (name === 'iem') asosAnswer(world, reports)
      else {
        const rows = reports.map((time) => ({
          cells: { temperature: '7.8|5' },
          station: 'USW00012839',
          minute: time.slice(14),
        }))
        const table = ghcnhTable(rows).split('\n')
        const dated = table.map((line, index) => {
          const time = reports[index - 1]
          return time === undefined
            ? line
            : line.replace('|2023|01|03|05|', `|2026|08|${time.slice(8, 10)}|${time.slice(11, 13)}|`)
        })
        world.fault = ({ url }) =>
          url.includes('USW00012839') ? send(200, dated.join('\n'), { etag: tag }) : send(404)
      }
    }
    await file.store.postgres.run({ text: `TRUNCATE ${TABLES}`, parameters: [] })
    answer(times, '"1"')
    assert.equal((await poll(t, world, name)).rowCount, 3, name)
    // Deletes the rows like compaction.
    await file.store.postgres.run({ text: 'DELETE FROM observations', parameters: [] })
    answer(times, '"2"')
    assert.equal((await poll(t, world, name)).rowCount, 0, name)
    assert.equal(await count('observations'), 0, name)
    // Only a day with a new report is stored again.
    answer([...times, '2026-08-29 13:53'], '"3"')
    assert.equal((await poll(t, world, name)).rowCount, 3, name)
  }
})

test('the last reports of a year are taken from its file when the next year has begun', async (t) => {
  const world = await startWorld(t)
  const files: Record<string, string[]> = { 2026: ['|2026|12|29|05|52|'], 2027: ['|2027|01|01|05|52|'] }
  world.fault = ({ url, headers }) => {
    const times = url.includes('USW00012839') ? (files[url.slice(-8, -4)] ?? []) : []
    const tag = `"${times.join()}"`
    if (headers['if-none-match'] === tag) return send(304)
    const rows = times.map(() => ({ cells: { temperature: '7.8|5' }, station: 'USW00012839' }))
    const lines = ghcnhTable(rows).split('\n')
    const dated = lines.map((line, index) => line.replace('|2023|01|03|05|52|', times[index - 1] ?? ''))
    return times.length === 0 ? send(404) : send(200, dated.join('\n'), { etag: tag })
  }
  const rowsAt = async (time: string): Promise<number> =>
    (await poll(t, world, 'ncei', { nowMs: Date.parse(time) })).rowCount
  assert.equal(await rowsAt('2026-12-31T12:00Z'), 1)
  files['2026']!.push('|2026|12|31|05|52|')
  assert.equal(await rowsAt('2027-01-03T12:00Z'), 2)
  assert.equal(await rowsAt('2027-01-04T12:00Z'), 0)
  assert.equal(await count('observations'), 3)
  const conditional = world.asked.slice(-4).filter(({ headers }) => headers['if-none-match'] !== undefined)
  assert.equal(conditional.length, 2)
})

test('no part of a known day is stored again from the file of a past year', async (t) => {
  const world = await startWorld(t)
  const times = ['|2026|12|01|05|52|', '|2026|12|01|15|52|']
  world.fault = ({ url }) => {
    if (!url.includes('USW00012839') || !url.includes('2026')) return send(404)
    const rows = times.map(() => ({ cells: { temperature: '7.8|5' }, station: 'USW00012839' }))
    const lines = ghcnhTable(rows).split('\n')
    return send(
      200,
      lines.map((line, at) => line.replace('|2023|01|03|05|52|', times[at - 1] ?? '')).join('\n'),
    )
  }
  await poll(t, world, 'ncei', { nowMs: Date.parse('2026-12-31T12:00Z') })
  assert.equal(await count('observations'), 2)
  await file.store.postgres.run({ text: 'TRUNCATE observations', parameters: [] })
  // 60 days later, within the first unsettled day.
  await poll(t, world, 'ncei', { nowMs: Date.parse('2027-01-30T12:00Z') })
  assert.equal(await count('observations'), 0)
})

test('an archive that returns a moved day again does not make compaction write a file', async (t) => {
  const world = await startWorld(t)
  const { postgres } = file.store
  const lake = await temporaryDirectory(t)
  const clock = { nowMs: () => WORLD_NOW_MS, sleep: async () => {} }
  asosAnswer(world, ['2026-08-27 11:53', '2026-08-28 11:53'])
  assert.equal((await poll(t, world, 'iem')).rowCount, 2)
  const moved = await compactClosedDays({ postgres, lake, clock, delayMs: 0 })
  assert.deepEqual([moved.partitions.length, moved.failures, await count('observations')], [1, [], 0])
  for (let round = 0; round < 2; round += 1) {
    assert.equal((await poll(t, world, 'iem')).rowCount, 0)
    const again = await compactClosedDays({ postgres, lake, clock, delayMs: 0 })
    assert.deepEqual([again.partitions, again.failures, await count('observations')], [[], [], 0])
  }
})

test('a market that the exchange refuses does not affect the candles of others', async (t) => {
  const world = await startWorld(t)
  await poll(t, world, 'exchange-catalogue')
  const refused = 'KXHIGHNY-26AUG30-T75'
  const isRefused = (url: string): boolean => url.includes('market_tickers') && url.includes(refused)
  world.fault = ({ url }) => (isRefused(url) ? send(400, '{"error":"bad request"}') : undefined)
  const problems: string[] = []
  const outcome = await poll(t, world, 'exchange-candles', { problems })
  assert.deepEqual([outcome.failure, outcome.rowCount > 0], [null, true])
  assert.deepEqual(problems, [`${refused}: kalshi: status 400: {"error":"bad request"}`])
  // Once it is no longer refused, its candles are fetched from the beginning.
  world.fault = () => undefined
  assert.equal((await poll(t, world, 'exchange-candles')).errorCount, 0)
  const counts = await file.store.postgres.run<{ readonly count: number }>({
    text: `SELECT count(*)::int4 AS count FROM candles WHERE market_ticker LIKE 'KXHIGHNY-26AUG30%' GROUP BY market_ticker`,
    parameters: [],
  })
  assert.equal(counts.length, 2)
  assert.equal(counts[0]?.count, counts[1]?.count)
})

test('a climate product is fetched once, also by the process after a restart', async (t) => {
  const world = await startWorld(t)
  assert.equal((await poll(t, world, 'climate-nws')).rowCount, 1)
  const before = world.asked.length
  world.fault = ({ headers }) => (headers['if-none-match'] === '"a"' ? send(304) : undefined)
  assert.equal((await poll(t, world, 'climate-nws')).errorCount, 0)
  const asked = world.asked.slice(before)
  assert.ok(asked.length > 0 && asked.every(({ url }) => !url.includes(NWS_PRODUCT)))
  assert.ok(asked.every(({ headers }) => headers['if-none-match'] === '"a"'))
  // After a change of the list only new products are fetched.
  world.fault = () => undefined
  assert.equal((await poll(t, world, 'climate-nws')).errorCount, 0)
  assert.ok(world.asked.slice(before).every(({ url }) => !url.endsWith(`/products/${NWS_PRODUCT}`)))
})

test('an unreadable entry of a list does not affect other entries', async (t) => {
  const world = await startWorld(t)
  const product = { id: NWS_PRODUCT, issuanceTime: '2026-08-30T08:24:00+00:00', productCode: 'CLI' }
  const graph = [{ id: 'no id', issuanceTime: 'yesterday', productCode: 'CLI' }, product]
  const problems: string[] = []
  world.fault = ({ url }) => {
    if (url.endsWith('/MIA')) return send(200, JSON.stringify({ '@graph': graph }), { etag: '"a"' })
    if (!url.startsWith('/acis')) return undefined
    const data = [
      ['2026-08-27', 'warm', '71'],
      ['2026-08-28', '88', '71'],
      // A day without any value gives no estimate.
      ['2026-08-29', 'M', 'M'],
    ]
    return send(200, JSON.stringify({ meta: { sids: ['KMIA 5', 'KNYC 5'] }, data }))
  }
  assert.equal((await poll(t, world, 'climate-nws', { problems })).rowCount, 1)
  assert.match(problems.join('\n'), /^nws: a listed product cannot be read: \{"id":"no id"/)
  problems.length = 0
  assert.equal((await poll(t, world, 'climate-statistics', { problems })).rowCount, 2)
  assert.match(problems.join('\n'), /^unknown value in \["2026-08-27","warm","71"\]/)
})
