// interface.md section 2, row by row: every field of every resource with its type and meaning, on real answers.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  bareObservation,
  type JsonRecord,
  putObservations,
  seriesRecord,
  serviceOfThisFile,
} from '../support/conformance-service.ts'
import { writeSeries } from '../../server/storage/catalogue-store.ts'
import { cellsOf } from './contract-table.ts'
import { type FieldRow, RESOURCES } from './resource-rows.ts'
import { CLIMATE_REPORT_TYPES, UNIT_ROWS } from './value-rows.ts'

const MEASURED_AT = Date.parse('2026-07-01T12:00:00Z')

const file = serviceOfThisFile({
  prepare: async (_, postgres) => {
    await postgres.transaction((transaction) => writeSeries(transaction, [seriesRecord('KXHIGHOLD')]))
    const measured = {
      temp_f: 50,
      wind_speed_kt: 10,
      altimeter_inhg: 30,
      visibility_miles: 10,
      precip_1hr_inches: 0.5,
      snow_depth_inches: 3,
    }
    await putObservations(postgres, [
      bareObservation({ station_code: 'BOS', observed_at: MEASURED_AT, ...measured }),
    ])
  },
})

const TYPE_CHECKS: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  integer: (value) => Number.isInteger(value),
  number: (value) => typeof value === 'number',
  float: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  'array of level': (value) => Array.isArray(value),
  'array of string': (value) => Array.isArray(value),
}

/** The value under a dotted path, which must be there. */
function valueAt(record: JsonRecord, path: string): unknown {
  let value: unknown = record
  for (const name of path.split('.')) {
    assert.ok(typeof value === 'object' && value !== null && name in value, `${path} is there`)
    value = (value as JsonRecord)[name]
  }
  return value
}

/** The paths of a record's values: `sync.last_sync` for a member of a member that is an object. */
function pathsOf(record: JsonRecord): string[] {
  return Object.entries(record).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.keys(value).map((inner) => `${name}.${inner}`)
      : [name],
  )
}

function checkField(
  { contract, holds, occurs = [], isNullable = false }: FieldRow,
  records: readonly JsonRecord[],
): void {
  const [name = '', type = ''] = cellsOf(contract)
  const isOfType = TYPE_CHECKS[type]
  assert.ok(isOfType !== undefined, `the type ${type} is known`)
  const values = records.map((record) => valueAt(record, name))
  for (const value of values)
    assert.ok(isOfType(value) || (isNullable && value === null), `${name} is ${JSON.stringify(value)}`)
  assert.ok(
    values.some((value) => value !== null),
    `${name} has a value somewhere`,
  )
  if (holds !== undefined) for (const record of records) holds(record)
  for (const value of occurs)
    assert.ok(values.includes(value), `${name} is ${JSON.stringify(value)} somewhere`)
}

for (const { section, targets, rows } of RESOURCES) {
  test(`${section}: every record has the fields of the interface, first and in its order`, async (t) => {
    if (section === '2.8 Health report') await healthIsSynced()
    const answers = await Promise.all(
      targets.map(async (target) => JSON.parse(await file.service.text(target))),
    )
    const records: JsonRecord[] = answers.flat()
    assert.ok(records.length > 0)
    const names = rows.map(({ contract }) => cellsOf(contract)[0])
    for (const record of records) assert.deepEqual(pathsOf(record).slice(0, names.length), names)
    for (const row of rows) await t.test(row.contract, () => checkField(row, records))
  })
}

/** At the first responses of the server the lake is still being scanned and a database may still be opening. */
async function healthIsSynced(): Promise<void> {
  for (;;) {
    const { status, sync } = await file.service.one('/health')
    if (status === 'ok' && (sync as JsonRecord)['last_sync'] !== null) return
  }
}

test('2.1 Candle: only observations have fields beyond the interface', async () => {
  for (const { section, targets, rows } of RESOURCES) {
    if (section === '2.2 Observation') continue
    const answer: unknown = JSON.parse(await file.service.text(targets[0]!))
    const [record] = [answer].flat() as JsonRecord[]
    // With sample data /health has an additional field.
    const paths = pathsOf(record!).filter((path) => !path.startsWith('samples'))
    assert.equal(paths.length, rows.length, section)
  }
})

test('2.1 forward-fill rule: a filled candle repeats the close and the open interest of the one before', async () => {
  const market = '/api/v1/candles?market=KXHIGHNY-26JUL02-B80.5&from=2026-07-02&to=2026-07-02&fill=true'
  const candles = await file.service.rows(market)
  let before: JsonRecord | undefined
  let filledCount = 0
  for (const candle of candles) {
    if (before !== undefined && candle['filled'] === true) {
      const { open, high, low, close, volume, open_interest } = candle
      assert.deepEqual(
        [open, high, low, close],
        Array.from({ length: 4 }, () => before?.['close']),
      )
      assert.deepEqual([volume, open_interest], [0, before['open_interest']])
      filledCount += 1
    }
    if (before !== undefined) {
      const stepMs = Date.parse(String(candle['end_period_ts'])) - Date.parse(String(before['end_period_ts']))
      assert.equal(stepMs, 60_000, 'no gap is left')
    }
    before = candle
  }
  assert.ok(filledCount > 100 && filledCount < candles.length)
})

test('2.1 aggregation rule: first open, highest high, lowest low, last close, sum of the volumes', async () => {
  const market = '/api/v1/candles?market=KXHIGHNY-26JUL02-B80.5&from=2026-07-02&to=2026-07-02&fill=false'
  const minutes = await file.service.rows(market)
  const hours = await file.service.rows(`${market}&aggregate=60`)
  assert.ok(hours.length > 10)
  let usedCount = 0
  for (const hour of hours) {
    const endMs = Date.parse(String(hour['end_period_ts']))
    const own = minutes.filter(({ end_period_ts }) => {
      const ms = Date.parse(String(end_period_ts))
      return ms > endMs - 3_600_000 && ms <= endMs
    })
    // The candle that ends at midnight also has minutes of the previous day, which were not requested.
    if (endMs === Date.parse('2026-07-02T00:00:00Z')) continue
    const numbers = (name: string): number[] => own.map((candle) => Number(candle[name]))
    assert.deepEqual(
      [hour['open'], hour['high'], hour['low'], hour['close']],
      [own[0]?.['open'], Math.max(...numbers('high')), Math.min(...numbers('low')), own.at(-1)?.['close']],
    )
    // Each volume is rounded to whole contracts separately.
    const volume = numbers('volume').reduce((sum, minute) => sum + minute, 0)
    assert.ok(
      Math.abs(Number(hour['volume']) - volume) <= (own.length + 1) / 2,
      `${Number(hour['volume'])} ${volume}`,
    )
    usedCount += own.length
  }
  assert.ok(usedCount > minutes.length / 2)
})

for (const { contract, field, values } of UNIT_ROWS) {
  test(`2.2 unit conversion: ${contract}`, async () => {
    for (const [units, expected] of Object.entries(values)) {
      const target = `/api/v1/observations?station=BOS&from=2026-07-01&to=2026-07-01&units=${units}`
      const [record] = await file.service.rows(target)
      assert.ok(Math.abs(Number(record?.[field]) - expected) < 0.006, `${units}: ${String(record?.[field])}`)
    }
  })
}

for (const { contract, served } of CLIMATE_REPORT_TYPES) {
  test(`2.3 report types, in priority order: ${contract}`, async () => {
    const [type] = cellsOf(contract)
    const day = `from=${served.date}&to=${served.date}`
    const records = await file.service.rows(`/api/v1/climate?station=NYC&${day}&revisions=true`)
    const types = records.map(({ report_type }) => report_type)
    assert.ok(types.includes(type))
    const [record] = await file.service.rows(`/api/v1/climate?station=NYC&${day}`)
    assert.equal(record?.['report_type'], served.as)
  })
}
