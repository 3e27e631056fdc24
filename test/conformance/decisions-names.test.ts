// decisions.md, "Names the interface leaves open": a test for each sentence, in its order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STATIONS } from '../../shared/stations.ts'
import { writeClimateReports } from '../../server/storage/climate-store.ts'
import {
  bareObservation,
  type JsonRecord,
  putObservations,
  serviceOfThisFile,
} from '../support/conformance-service.ts'
import { fetchRows } from '../support/record-rows.ts'
import { PARQUET_READERS } from '../support/parquet-readers.ts'

const OBSERVED = Date.parse('2026-07-01T10:51:00Z')
const DAY = 'from=2026-07-01&to=2026-07-01'

const file = serviceOfThisFile({
  prepare: async (_, postgres) => {
    await putObservations(
      postgres,
      (['awc', 'iem', 'ncei'] as const).map((source, index) =>
        bareObservation({
          station_code: 'BOS',
          observed_at: OBSERVED + index * 60_000,
          source,
          temp_f: 50,
          wind_speed_kt: 10,
        }),
      ),
    )
    const issued = {
      station_code: 'BOS',
      high_temp_f: 86,
      low_temp_f: 68,
      report_type: 'final' as const,
      issued_at: Date.parse('2026-07-02T06:00:00Z'),
      is_correction: false,
    }
    await postgres.transaction((transaction) =>
      writeClimateReports(
        transaction,
        [
          { ...issued, observation_date: '2026-07-01', source: 'nws', product_id: 'a' },
          { ...issued, observation_date: '2026-07-02', source: 'iem', product_id: 'b' },
        ],
        (reports) => reports,
      ),
    )
  },
})

const LOB = '/api/v1/lob?date=2026-07-01&interval=3600'
const SECOND_SERIES = 'series=highest-temperature-in-nyc'

test('the source of order books is kalshi, the default, or polymarket', async () => {
  const { service } = file
  assert.equal(
    await service.text(`${LOB}&series=KXHIGHNY&source=kalshi`),
    await service.text(`${LOB}&series=KXHIGHNY`),
  )
  assert.ok((await service.rows(`${LOB}&${SECOND_SERIES}&source=polymarket`)).length > 0)
  assert.equal((await service.get(`${LOB}&${SECOND_SERIES}`)).status, 404)
})

test('Polymarket market ids are <condition_id>:<token_id>', async () => {
  const { service } = file
  const rows = await service.rows(`${LOB}&${SECOND_SERIES}&source=polymarket`)
  const id = String(rows[0]?.['market_id'])
  assert.match(id, /^0x[0-9a-f]{64}:\d+$/)
  const ofMarket = await service.rows(`${LOB}&market=${id}&source=polymarket`)
  assert.deepEqual(
    ofMarket,
    rows.filter((row) => row['market_id'] === id),
  )
})

test('observations come from awc, iem or ncei', async () => {
  const rows = await file.service.rows(`/api/v1/observations?station=BOS&${DAY}`)
  assert.deepEqual(
    rows.map((row) => row['source']),
    ['awc', 'iem', 'ncei'],
  )
})

test('official climate records come from nws or iem, estimates from acis', async () => {
  const { service } = file
  const official = await service.rows('/api/v1/climate?station=BOS')
  assert.deepEqual(
    official.map((row) => row['source']),
    ['nws', 'iem'],
  )
  const [estimate] = await service.rows('/api/v1/climate?station=NYC&from=2026-06-25&to=2026-06-25')
  assert.deepEqual([estimate?.['report_type'], estimate?.['source']], ['estimated', 'acis'])
})

test('station codes are three letters, and requests may name the ICAO form', async () => {
  const { service } = file
  for (const target of [
    `/api/v1/candles?${DAY}&interval=60&station=`,
    `/api/v1/observations?${DAY}&station=`,
    '/api/v1/climate?station=',
    '/api/v1/analysis/climate-gaps?from=2026-06-01&to=2026-07-03&station=',
    '/api/v1/markets?station=',
  ]) {
    const text = await service.text(`${target}NYC`)
    assert.ok(text.length > 2)
    assert.equal(await service.text(`${target}KNYC`), text, target)
    assert.doesNotMatch(text, /"station_code":"KNYC"/)
  }
})

test('the 20 stations that settle the daily temperature markets are in one table and all known', async () => {
  const codes = 'NYC MDW MIA AUS DEN PHL LAX ATL BOS DFW DCA HOU LAS MSP MSY OKC PHX SAT SEA SFO'.split(' ')
  assert.deepEqual(
    STATIONS.map(({ code }) => code),
    codes,
  )
  for (const code of codes) {
    assert.equal((await file.service.get(`/api/v1/climate?station=${code}`)).status, 200, code)
    assert.equal((await file.service.get(`/api/v1/observations?station=K${code}`)).status, 200, code)
  }
  assert.equal((await file.service.get('/api/v1/climate?station=ZZZ')).status, 404)
})

test('series of order books and of candles also accepts an event ticker: the markets of that event', async () => {
  const { service } = file
  for (const [target, field] of [
    [LOB, 'market_id'],
    [`/api/v1/candles?${DAY}&interval=60`, 'market_ticker'],
  ] as const) {
    const all = await service.rows(`${target}&series=KXHIGHNY`)
    const expected = all.filter((row) => String(row[field]).startsWith('KXHIGHNY-26JUL02-'))
    assert.ok(expected.length > 0 && expected.length < all.length)
    assert.deepEqual(await service.rows(`${target}&series=KXHIGHNY-26JUL02`), expected)
  }
})

test('parquet, csv and ndjson rows have the columns of the JSON records, in the same order', async () => {
  const { service } = file
  for (const [kind, target] of [
    ['candles', `/api/v1/candles?${DAY}&interval=60&fill=false`],
    ['observations', `/api/v1/observations?${DAY}`],
    ['climate', '/api/v1/climate?to=2026-07-03'],
  ] as const) {
    // The reader compares names and order of every format with the declared fields.
    const { rows } = await fetchRows(`${service.url}${target}&format=json`, kind)
    assert.ok(rows.length > 0)
    for (const format of ['ndjson', 'csv', 'parquet'])
      assert.deepEqual((await fetchRows(`${service.url}${target}&format=${format}`, kind)).rows, rows)
    const [record] = await service.rows(target)
    const recordFile = await service.bytes(`${target}&format=parquet`)
    for (const read of Object.values(PARQUET_READERS)) {
      const [first] = await read(recordFile)
      assert.deepEqual(Object.keys(JSON.parse(first ?? '') as object), Object.keys(record ?? {}), kind)
    }
  }
  const [snapshot] = await service.rows(`${LOB}&series=KXHIGHNY`)
  const [line] = (await service.text(`${LOB}&series=KXHIGHNY&format=ndjson`)).split('\n')
  assert.deepEqual(Object.keys(JSON.parse(line ?? '') as object), Object.keys(snapshot ?? {}))
  const parquet = await service.bytes(`${LOB}&series=KXHIGHNY&format=parquet`)
  for (const read of Object.values(PARQUET_READERS))
    assert.deepEqual(
      Object.keys(JSON.parse((await read(parquet))[0] ?? '') as object),
      Object.keys(snapshot ?? {}),
    )
})

test('observation and climate fields keep their raw suffix under other units', async () => {
  const { service } = file
  const names = async (target: string): Promise<string[]> =>
    Object.keys((await service.rows(target))[0] ?? {})
  const observations = `/api/v1/observations?station=BOS&${DAY}`
  for (const units of ['metric', 'imperial'])
    assert.deepEqual(await names(`${observations}&units=${units}`), await names(observations))
  const [metric] = await service.rows(`${observations}&units=metric`)
  assert.equal(metric?.['temp_f'], 10, 'temp_f holds degrees Celsius')
  const climate = '/api/v1/climate?station=BOS&from=2026-07-01&to=2026-07-01'
  assert.deepEqual(await names(`${climate}&units=metric`), await names(climate))
  const [day] = await service.rows(`${climate}&units=metric`)
  assert.deepEqual([day?.['high_temp_f'], day?.['low_temp_f']], [30, 20])
})

test('ndjson is accepted wherever format is; on candles fill is ignored as for csv', async () => {
  const { service } = file
  const lines = async (target: string): Promise<JsonRecord[]> =>
    (await service.text(`${target}&format=ndjson`))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  for (const target of [
    `${LOB}&series=KXHIGHNY`,
    `/api/v1/observations?${DAY}`,
    '/api/v1/climate?to=2026-07-03',
    `/api/v1/candles?${DAY}&fill=false`,
  ])
    assert.deepEqual(await lines(target), await service.rows(target))
  const candles = `/api/v1/candles?market=KXHIGHNY-26JUL02-B80.5&from=2026-07-02&to=2026-07-02`
  const traded = await service.rows(`${candles}&fill=false`)
  assert.ok(traded.length < (await service.rows(candles)).length)
  for (const fill of ['', '&fill=true', '&fill=false'])
    assert.deepEqual(await lines(`${candles}${fill}`), traded)
})
