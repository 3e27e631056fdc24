import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  CLIMATE_FIELDS,
  type ClimateRecord,
  REPORT_TYPES,
  servedRecord,
  servedRecords,
} from '../../shared/climate.ts'

const ISSUED_MS = Date.parse('2026-08-30T08:24:00Z')

function record(changes: Partial<ClimateRecord> = {}): ClimateRecord {
  return {
    station_code: 'MIA',
    observation_date: '2026-08-29',
    high_temp_f: 90,
    low_temp_f: 76,
    report_type: 'final',
    source: 'nws',
    product_id: '202608300824-KMFL-CDUS42-CLIMIA',
    issued_at: ISSUED_MS,
    ...changes,
  }
}

const temperature = fc.option(fc.integer({ min: 60, max: 63 }), { nil: null })
// Records without a prototype differ from others to deepEqual alone.
const anyRecord = fc.record(
  {
    station_code: fc.constantFrom('MIA', 'NYC'),
    observation_date: fc.constantFrom('2026-08-28', '2026-08-29'),
    high_temp_f: temperature,
    low_temp_f: temperature,
    report_type: fc.constantFrom(...REPORT_TYPES),
    source: fc.constantFrom('nws', 'iem'),
    product_id: fc.constantFrom('a', 'b', 'c'),
    issued_at: fc.integer({ min: 0, max: 5 }),
  },
  { noNullPrototype: true },
)
const anyRecords = fc.array(anyRecord, { maxLength: 12 })

test('declares every field of a record once, in the order of the interface', () => {
  assert.deepEqual(
    CLIMATE_FIELDS.map(({ name }) => name),
    Object.keys(record()),
  )
})

test('serves the report type of highest priority', () => {
  const all = REPORT_TYPES.map((report_type, i) => record({ report_type, issued_at: ISSUED_MS - i }))
  for (let i = 0; i < all.length; i += 1) {
    assert.equal(servedRecord(all.slice(i))?.report_type, REPORT_TYPES[i])
  }
  assert.equal(servedRecord([]), undefined)
})

test('serves the first issued of equals', () => {
  const first = record({ high_temp_f: 90 })
  const second = record({ high_temp_f: 85, issued_at: ISSUED_MS + 46 * 60_000, product_id: 'later' })
  assert.equal(servedRecord([second, first]), first)
})

test('gives a final with a missing value up for the next report that adds it and agrees', () => {
  const first = record({ high_temp_f: 93, low_temp_f: null })
  const later = (changes: Partial<ClimateRecord>): ClimateRecord =>
    record({
      issued_at: ISSUED_MS + 3_600_000,
      high_temp_f: 93,
      low_temp_f: 77,
      product_id: 'later',
      ...changes,
    })
  assert.equal(servedRecord([first, later({})])?.low_temp_f, 77)
  assert.equal(servedRecord([first, later({ report_type: 'correction' })])?.low_temp_f, 77)
  assert.equal(servedRecord([first, later({ high_temp_f: 92 })]), first)
  assert.equal(servedRecord([first, later({ report_type: 'preliminary' })]), first)
  assert.equal(servedRecord([first, later({ report_type: 'estimated', issued_at: null })]), first)
})

test('does not complete a final with a value that another report stated differently before', () => {
  const first = record({ high_temp_f: 93, low_temp_f: null })
  const other = record({
    high_temp_f: 92,
    low_temp_f: 70,
    report_type: 'correction',
    issued_at: ISSUED_MS + 1,
  })
  const third = record({
    high_temp_f: 93,
    low_temp_f: 71,
    report_type: 'correction',
    issued_at: ISSUED_MS + 2,
  })
  assert.equal(servedRecord([first, other, third]), first)
})

test('does not give a final up for a correction that disagrees, not even for an earlier one', () => {
  const early = { report_type: 'correction', issued_at: ISSUED_MS - 1 } as const
  const noLow = record({ high_temp_f: 93, low_temp_f: null })
  assert.equal(servedRecord([noLow, record({ ...early, high_temp_f: 92, low_temp_f: 70 })]), noLow)
  const noHigh = record({ high_temp_f: null, low_temp_f: 71 })
  assert.equal(servedRecord([noHigh, record({ ...early, high_temp_f: 92, low_temp_f: 70 })]), noHigh)
})

test('keeps an official report without any value above a preliminary report and an estimate', () => {
  const empty = record({ high_temp_f: null, low_temp_f: null })
  const others = [
    record({ report_type: 'preliminary' }),
    record({ report_type: 'estimated', issued_at: null }),
  ]
  assert.equal(servedRecord([...others, empty]), empty)
})

test('serves the same records whatever order they come in', () => {
  const shuffled = anyRecords.chain((records) =>
    fc.record({
      records: fc.constant(records),
      other: fc.shuffledSubarray(records, { minLength: records.length }),
    }),
  )
  fc.assert(
    fc.property(shuffled, ({ records, other }) => {
      assert.deepEqual(servedRecords(other), servedRecords(records))
    }),
  )
})

test('serves one stored record per station and date, never one mixed out of two', () => {
  fc.assert(
    fc.property(anyRecords, (records) => {
      const served = servedRecords(records)
      const keys = served.map((r) => `${r.observation_date} ${r.station_code}`)
      assert.deepEqual(
        keys,
        [...new Set(records.map((r) => `${r.observation_date} ${r.station_code}`))].toSorted(),
      )
      for (const one of served) assert.ok(records.some((r) => r === one))
    }),
  )
})

/** Final and correction complete one another, so they are one class. */
function classOf(one: ClimateRecord): number {
  return Math.max(1, REPORT_TYPES.indexOf(one.report_type))
}

test('serves no lower class than the best one there is', () => {
  fc.assert(
    fc.property(anyRecords, (records) => {
      for (const one of servedRecords(records)) {
        const rivals = records.filter(
          (r) => r.station_code === one.station_code && r.observation_date === one.observation_date,
        )
        assert.equal(classOf(one), Math.min(...rivals.map(classOf)))
      }
    }),
  )
})
