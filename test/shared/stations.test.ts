import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findStation, STATIONS } from '../../shared/stations.ts'

test('twenty stations, each with its own code, identifiers and series', () => {
  assert.equal(STATIONS.length, 20)
  for (const key of ['code', 'icao', 'climatePil', 'ghcnId', 'highSeries', 'lowSeries'] as const) {
    assert.equal(new Set(STATIONS.map((station) => station[key])).size, 20, key)
  }
})

test('a station is found by code or ICAO identifier in any case', () => {
  assert.equal(findStation('nyc')?.climatePil, 'CLINYC')
  assert.equal(findStation('KNYC'), findStation('NYC'))
  assert.equal(findStation('kLax')?.highSeries, 'KXHIGHLAX')
  assert.equal(findStation('JFK'), undefined)
  assert.equal(findStation(''), undefined)
})

test('every identifier has its form', () => {
  for (const station of STATIONS) {
    assert.match(station.code, /^[A-Z]{3}$/)
    assert.equal(station.icao, `K${station.code}`)
    assert.match(station.ghcnId, /^USW000\d{5}$/)
    assert.match(station.wfo, /^[A-Z]{3}$/)
    assert.match(station.highSeries, /^KXHIGH[A-Z]+$/)
    assert.match(station.lowSeries, /^KXLOWT[A-Z]+$/)
  }
})

test('the standard offset is that of the zone in winter', () => {
  const january = new Date('2026-01-15T12:00:00Z')
  for (const { timeZone, standardOffsetHours } of STATIONS) {
    const format = new Intl.DateTimeFormat('en-US', { timeZone, hour: '2-digit', hourCycle: 'h23' })
    assert.equal(Number(format.format(january)), 12 + standardOffsetHours, timeZone)
  }
})
