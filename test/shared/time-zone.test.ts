import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isTimeZone, TimeZone } from '../../shared/time-zone.ts'
import { bucketEnd } from '../support/naive-candles.ts'

const MINUTE = 60_000
const DAY = 86_400_000

// Each with a day on which its clocks change: in the night, at midnight, by half an hour, or never.
const ZONES = [
  ['UTC', '2026-03-08'],
  ['America/New_York', '2026-03-08'],
  ['America/New_York', '2026-11-01'],
  ['America/Phoenix', '2026-03-08'],
  ['Australia/Lord_Howe', '2026-04-05'],
  ['Australia/Lord_Howe', '2026-10-04'],
  ['America/Sao_Paulo', '2018-11-04'],
  ['America/Havana', '2026-11-01'],
  ['Europe/Berlin', '2026-10-25'],
  ['Asia/Kolkata', '2026-01-01'],
  ['Asia/Kathmandu', '2026-01-01'],
  ['Pacific/Apia', '2011-12-30'],
] as const

test('buckets begin where the local clock shows a multiple of their minutes, also when clocks change', () => {
  for (const [zone, date] of ZONES) {
    const timeZone = new TimeZone(zone)
    const changeMs = Date.parse(`${date}T00:00:00Z`)
    fc.assert(
      fc.property(
        fc.integer({ min: -1.5 * 1440, max: 2.5 * 1440 }),
        fc.constantFrom(1, 5, 7, 15, 30, 60, 90, 120, 180, 240, 360, 420, 720, 1000, 1440),
        (minute, minutes) => {
          const endMs = changeMs + minute * MINUTE
          const found = timeZone.bucketEnd(endMs - 1, minutes)
          assert.equal(
            found,
            bucketEnd(endMs, zone, minutes),
            `${zone} ${minutes} ${new Date(endMs).toISOString()}`,
          )
          assert.ok(endMs <= found)
          assert.equal(timeZone.bucketEnd(found - 1, minutes), found)
        },
      ),
      { numRuns: 300 },
    )
  }
})

test('a day of New York has 23, 24 or 25 hours, and an hour that comes twice is two buckets', () => {
  const zone = new TimeZone('America/New_York')
  const endAt = (instant: string, minutes: number): number => zone.bucketEnd(Date.parse(instant), minutes)
  const hours = (noon: string): number =>
    (endAt(noon, 1440) - zone.bucketEnd(Date.parse(noon) - DAY, 1440)) / 3_600_000
  assert.deepEqual(
    ['2026-03-08T16:00:00Z', '2026-07-01T16:00:00Z', '2026-11-01T16:00:00Z'].map(hours),
    [23, 24, 25],
  )
  assert.equal(endAt('2026-11-01T05:30:00Z', 60), Date.parse('2026-11-01T06:00:00Z'))
  assert.equal(endAt('2026-11-01T06:30:00Z', 60), Date.parse('2026-11-01T07:00:00Z'))
})

test('a day whose midnight comes twice is one bucket of 25 hours, and its first hour two', () => {
  const zone = new TimeZone('America/Havana')
  const endAt = (instant: string, minutes: number): string =>
    new Date(zone.bucketEnd(Date.parse(instant), minutes)).toISOString()
  assert.equal(endAt('2026-11-01T03:30:00Z', 1440), '2026-11-01T04:00:00.000Z')
  for (const instant of ['2026-11-01T04:30:00Z', '2026-11-01T05:30:00Z', '2026-11-01T18:00:00Z'])
    assert.equal(endAt(instant, 1440), '2026-11-02T05:00:00.000Z', instant)
  for (const instant of ['2026-11-01T04:30:00Z', '2026-11-01T05:30:00Z'])
    assert.equal(endAt(instant, 120), '2026-11-01T07:00:00.000Z', instant)
  assert.equal(endAt('2026-11-01T04:30:00Z', 60), '2026-11-01T05:00:00.000Z')
  assert.equal(endAt('2026-11-01T05:30:00Z', 60), '2026-11-01T06:00:00.000Z')
})

test('offsets are those of the zone before, at and after a change', () => {
  const zone = new TimeZone('Europe/London')
  const change = Date.parse('2026-03-29T01:00:00Z')
  assert.equal(zone.offsetMs(change - 1), 0)
  assert.equal(zone.offsetMs(change), 3_600_000)
  assert.equal(zone.offsetMs(change + DAY), 3_600_000)
})

test('a zone is known by its IANA name alone', () => {
  for (const name of ['UTC', 'America/New_York', 'Etc/GMT+5', 'utc']) assert.ok(isTimeZone(name), name)
  for (const name of ['', '+02:00', 'Mars/Olympus', 'America/New York', 'station'])
    assert.ok(!isTimeZone(name), name)
})
