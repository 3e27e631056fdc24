import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { climateDateAt, climateDay, lastClosedClimateDate } from '../../shared/climate-day.ts'
import { STATIONS } from '../../shared/stations.ts'
import { addDays, MS_PER_DAY } from '../../shared/utc-date.ts'

const offset = fc.integer({ min: -11, max: 10 })
const instant = fc.integer({ min: Date.parse('1990-01-01'), max: Date.parse('2060-01-01') })

test('runs from 05:00 to 05:00 UTC in New York in winter, in summer and when the clock changes', () => {
  for (const date of ['2026-01-15', '2026-07-15', '2026-03-08', '2026-11-01']) {
    assert.deepEqual(climateDay(date, -5), {
      fromMs: Date.parse(`${date}T05:00:00Z`),
      toMs: Date.parse(`${addDays(date, 1)}T05:00:00Z`),
    })
  }
})

function closedAt(time: string): string {
  return lastClosedClimateDate(Date.parse(time), -5)
}

test('closes a day at midnight standard time, which is 1 AM on the summer clock', () => {
  assert.equal(closedAt('2026-08-30T00:59:59.999-04:00'), '2026-08-28')
  assert.equal(closedAt('2026-08-30T01:00:00-04:00'), '2026-08-29')
  assert.equal(closedAt('2026-12-30T23:59:59.999-05:00'), '2026-12-29')
  assert.equal(closedAt('2026-12-31T00:00:00-05:00'), '2026-12-30')
  // The days on which the clock changes are as long as every other.
  assert.equal(closedAt('2026-03-09T00:59:00-04:00'), '2026-03-07')
  assert.equal(closedAt('2026-03-09T01:00:00-04:00'), '2026-03-08')
  assert.equal(closedAt('2026-11-01T01:59:00-04:00'), '2026-10-31')
  assert.equal(closedAt('2026-11-01T01:00:00-05:00'), '2026-10-31')
  assert.equal(closedAt('2026-11-02T00:00:00-05:00'), '2026-11-01')
})

test('gives every instant to exactly one day, and days follow each other without a gap', () => {
  fc.assert(
    fc.property(instant, offset, (ms, hours) => {
      const date = climateDateAt(ms, hours)
      const day = climateDay(date, hours)
      assert.ok(day.fromMs <= ms && ms < day.toMs)
      assert.equal(day.toMs - day.fromMs, MS_PER_DAY)
      assert.equal(climateDay(addDays(date, 1), hours).fromMs, day.toMs)
      assert.ok(climateDay(lastClosedClimateDate(ms, hours), hours).toMs <= ms)
    }),
  )
})

test('knows a whole-hour standard offset of every station', () => {
  for (const { code, timeZone, standardOffsetHours } of STATIONS) {
    const january = new Intl.DateTimeFormat('en-US', { timeZone, hour: 'numeric', hourCycle: 'h23' })
    const localHour = Number(january.format(new Date('2026-01-15T12:00:00Z')))
    assert.equal(localHour, 12 + standardOffsetHours, code)
  }
})
