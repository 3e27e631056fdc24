// The running maximum and minimum of a climate day, and columns over one time axis.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alignedColumns } from '../../explorer/aligned-columns.ts'
import { runningExtremum } from '../../explorer/running-extremum.ts'
import { weatherPlan } from '../../explorer/weather-requests.ts'
import { EMPTY_STATE } from '../../explorer/view-state.ts'
import { climateDay } from '../../shared/climate-day.ts'

const HOUR_MS = 3_600_000
const NEW_YORK = { station: 'NYC', kind: 'high', standardOffsetHours: -5 } as const

test('the maximum so far is that of the climate day, which begins at midnight local standard time', () => {
  const day = climateDay('2026-07-02', -5)
  const at = (hours: number, tempF: number | null) => ({ ms: day.fromMs + hours * HOUR_MS, tempF })
  // The 99 degrees an hour before midnight and at the next midnight belong to other days.
  const temperatures = [at(-1, 99), at(0, null), at(1, 70), at(9, 68), at(15, 87), at(20, 80), at(24, 99)]
  assert.deepEqual(runningExtremum(temperatures, day, 'high'), [null, null, 70, 70, 87, 87, null])
  assert.deepEqual(runningExtremum(temperatures, day, 'low'), [null, null, 70, 68, 68, 68, null])
  assert.deepEqual(runningExtremum([], day, 'high'), [])
})

test('the requests cover the climate day of the event, whatever date is shown', () => {
  const state = {
    ...EMPTY_STATE,
    source: 'kalshi',
    series: 'KXHIGHNY',
    event: 'KXHIGHNY-26JUL02',
    date: '2026-07-01',
  }
  const { day, observations, climate, quotes } = weatherPlan(state, NEW_YORK)
  assert.deepEqual(day, { fromMs: Date.UTC(2026, 6, 2, 5), toMs: Date.UTC(2026, 6, 3, 5) })
  assert.deepEqual(observations?.parameters, {
    station: 'NYC',
    from: '2026-07-02T05:00:00Z',
    to: '2026-07-03T10:00:00Z',
  })
  assert.deepEqual(climate?.parameters, {
    station: 'NYC',
    from: '2026-07-02',
    to: '2026-07-02',
    revisions: true,
  })
  assert.equal(quotes?.parameters['from'], '2026-07-02')
  assert.equal(quotes?.parameters['to'], '2026-07-03')
})

test('without a station no weather is requested, and an invalid date is sent to the server unchanged', () => {
  const state = { ...EMPTY_STATE, series: 'X', event: 'all', date: 'banana' }
  const { observations, climate, quotes } = weatherPlan(state, {
    station: null,
    kind: 'high',
    standardOffsetHours: null,
  })
  assert.deepEqual([observations, climate], [null, null])
  assert.equal(quotes?.parameters['date'], 'banana')
})

test('a time without a row is undefined, which is not the same as an unknown value', () => {
  const { times, columns } = alignedColumns([
    { times: [10, 30], values: [1, null] },
    { times: [20, 30], values: [5, 6] },
  ])
  assert.deepEqual(times, [10, 20, 30])
  assert.deepEqual(columns, [
    [1, undefined, null],
    [undefined, 5, 6],
  ])
})
