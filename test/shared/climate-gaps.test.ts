import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type ReportType, REPORT_TYPES } from '../../shared/climate.ts'
import { type ClimateGap, climateGaps, type ClimateGapQuery } from '../../shared/climate-gaps.ts'
import { addDays, utcDatesBetween } from '../../shared/utc-date.ts'

interface Row {
  readonly station_code: string
  readonly observation_date: string
  readonly report_type: ReportType
}

const FIRST = '2026-02-20'

function rows(dates: readonly string[], report_type: ReportType = 'final'): Row[] {
  return dates.map((observation_date) => ({ station_code: 'NYC', observation_date, report_type }))
}

function query(changes: Partial<ClimateGapQuery> = {}): ClimateGapQuery {
  return {
    stationCode: 'NYC',
    from: '2026-02-26',
    to: '2026-03-05',
    lastClosedDate: '2026-12-31',
    official: false,
    ...changes,
  }
}

function gap(gap_start: string, gap_end: string, missing_days: number): ClimateGap {
  return { station_code: 'NYC', gap_start, gap_end, missing_days }
}

test('joins missing dates to gaps over the end of a month, and counts a single day as one', () => {
  const present = rows(['2026-02-26', '2026-03-02', '2026-03-04', '2026-03-05'])
  assert.deepEqual(climateGaps(query(), present), [
    gap('2026-02-27', '2026-03-01', 3),
    gap('2026-03-03', '2026-03-03', 1),
  ])
})

test('takes the whole range for one gap without records, and none for a complete one', () => {
  assert.deepEqual(climateGaps(query(), []), [gap('2026-02-26', '2026-03-05', 8)])
  assert.deepEqual(climateGaps(query(), rows(utcDatesBetween('2026-02-26', '2026-03-05'))), [])
  assert.deepEqual(climateGaps(query({ from: '2026-03-06' }), []), [])
})

test('does not count open days as missing', () => {
  assert.deepEqual(climateGaps(query({ lastClosedDate: '2026-02-28' }), []), [
    gap('2026-02-26', '2026-02-28', 3),
  ])
  assert.deepEqual(climateGaps(query({ lastClosedDate: '2026-02-25' }), []), [])
})

test('counts an estimated date as missing only if official reports are requested', () => {
  const dates = utcDatesBetween('2026-02-26', '2026-03-05')
  const records = [...rows(dates, 'estimated'), ...rows(['2026-03-01'], 'preliminary')]
  assert.deepEqual(climateGaps(query(), records), [])
  assert.deepEqual(climateGaps(query({ official: true }), records), [
    gap('2026-02-26', '2026-02-28', 3),
    gap('2026-03-02', '2026-03-05', 4),
  ])
})

test('finds exactly the dates that a day-by-day search finds', () => {
  const day = fc.nat(30).map((days) => addDays(FIRST, days))
  const record = fc.record({
    station_code: fc.constantFrom('NYC', 'MIA'),
    observation_date: day,
    report_type: fc.constantFrom(...REPORT_TYPES),
  })
  const queries = fc.record({ from: day, to: day, lastClosedDate: day, official: fc.boolean() })
  fc.assert(
    fc.property(queries, fc.array(record, { maxLength: 40 }), (changes, records) => {
      const asked = query(changes)
      const naive = utcDatesBetween(FIRST, addDays(FIRST, 30)).filter(
        (date) =>
          date >= asked.from &&
          date <= asked.to &&
          date <= asked.lastClosedDate &&
          !records.some(
            (r) =>
              r.station_code === 'NYC' &&
              r.observation_date === date &&
              (!asked.official || r.report_type !== 'estimated'),
          ),
      )
      const gaps = climateGaps(asked, records)
      const found = gaps.flatMap(({ gap_start, gap_end }) => utcDatesBetween(gap_start, gap_end))
      assert.deepEqual(found, naive)
      for (const [i, { gap_start, gap_end, missing_days }] of gaps.entries()) {
        assert.equal(utcDatesBetween(gap_start, gap_end).length, missing_days)
        // Two gaps are never adjacent: they would be one.
        assert.notEqual(gaps[i + 1]?.gap_start, addDays(gap_end, 1))
      }
    }),
  )
})
