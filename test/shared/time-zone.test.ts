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
          const bucket = timeZone.bucketAt(endMs - 1, minutes)
          assert.equal(
            bucket.toMs,
            bucketEnd(endMs, zone, minutes),
            `${zone} ${minutes} ${new Date(endMs).toISOString()}`,
          )
          assert.ok(bucket.fromMs < endMs && endMs <= bucket.toMs)
          assert.equal(timeZone.bucketAt(bucket.fromMs, minutes).toMs, bucket.toMs)
          assert.equal(timeZone.bucketAt(bucket.fromMs - 1, minutes).toMs, bucket.fromMs)
        },
      ),
      { numRuns: 300 },
    )
  }
})

test('a day of New York has 23, 24 or 25 hours, and an hour that comes twice is two buckets', () => {
  const zone = new TimeZone('America/New_York')
  const hours = (noon: string): number => {
    const { fromMs, toMs } = zone.bucketAt(Date.parse(noon), 1440)
    return (toMs - fromMs) / 3_600_000
  }
  assert.deepEqual(
    ['2026-03-08T16:00:00Z', '2026-07-01T16:00:00Z', '2026-11-01T16:00:00Z'].map(hours),
    [23, 24, 25],
  )
  const first = zone.bucketAt(Date.parse('2026-11-01T05:30:00Z'), 60)
  const second = zone.bucketAt(Date.parse('2026-11-01T06:30:00Z'), 60)
  assert.equal(first.toMs, second.fromMs)
  assert.equal(second.toMs - first.fromMs, 2 * 3_600_000)
})

test('a day whose midnight comes twice is one bucket of 25 hours, and its first hour two', () => {
  const zone = new TimeZone('America/Havana')
  const day = { fromMs: Date.parse('2026-11-01T04:00:00Z'), toMs: Date.parse('2026-11-02T05:00:00Z') }
  for (const instant of ['2026-11-01T04:30:00Z', '2026-11-01T05:30:00Z', '2026-11-01T18:00:00Z'])
    assert.deepEqual(zone.bucketAt(Date.parse(instant), 1440), day, instant)
  const twoOClock = Date.parse('2026-11-01T07:00:00Z')
  assert.deepEqual(zone.bucketAt(Date.parse('2026-11-01T05:30:00Z'), 120), { ...day, toMs: twoOClock })
  const first = zone.bucketAt(Date.parse('2026-11-01T04:30:00Z'), 60)
  const second = zone.bucketAt(Date.parse('2026-11-01T05:30:00Z'), 60)
  assert.equal(first.toMs, second.fromMs)
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
