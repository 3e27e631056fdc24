import assert from 'node:assert/strict'
import { test } from 'node:test'
import { feelsLikeF, relativeHumidity } from '../../server/ingest/metar/derived.ts'

test('relative humidity agrees with psychrometric tables', () => {
  // Smithsonian Meteorological Tables: saturation vapour pressure over water, e(Td) / e(T).
  for (const [temperature, dewpoint, percent] of [
    [20, 20, 100],
    [20, 10, 52.5],
    [30, 20, 55.1],
    [0, -10, 46.9],
    [40, 0, 8.3],
  ] as const) {
    const humidity = relativeHumidity(temperature, dewpoint)
    assert.ok(
      humidity !== null && Math.abs(humidity - percent) <= 0.3,
      `${temperature}/${dewpoint}: ${humidity}`,
    )
  }
})

test('a dewpoint rounded above the temperature is saturation, a missing one is unknown', () => {
  assert.equal(relativeHumidity(5.6, 6), 100)
  assert.equal(relativeHumidity(null, 6), null)
  assert.equal(relativeHumidity(5, null), null)
  assert.equal(relativeHumidity(5, -243.04), null)
})

test('the heat index agrees with the chart of the National Weather Service', () => {
  // https://www.weather.gov/safety/heat-index: °F, percent, index.
  for (const [temperature, humidity, index] of [
    [82, 40, 81],
    [90, 50, 95],
    [90, 70, 105],
    [96, 60, 116],
    [100, 40, 109],
    [104, 55, 137],
    [110, 40, 136],
  ] as const) {
    const feels = feelsLikeF(temperature, humidity, null)
    assert.ok(feels !== null && Math.abs(feels - index) <= 1, `${temperature}/${humidity}: ${feels}`)
  }
})

test('the heat index is lowered in dry and raised in humid air', () => {
  // The regression alone gives 94.5 and 96.5.
  assert.equal(feelsLikeF(100, 8, null), 93.4)
  assert.equal(feelsLikeF(83, 95, null), 97.3)
})

test('the wind chill agrees with the chart of the National Weather Service', () => {
  // https://www.weather.gov/safety/cold-wind-chill-chart: °F, mph, chill.
  for (const [temperature, mph, chill] of [
    [40, 5, 36],
    [30, 20, 17],
    [20, 35, 0],
    [0, 15, -19],
    [-20, 30, -53],
    [-45, 60, -98],
  ] as const) {
    const feels = feelsLikeF(temperature, null, mph / 1.15078)
    assert.ok(feels !== null && Math.abs(feels - chill) <= 0.5, `${temperature}/${mph}: ${feels}`)
  }
})

test('between the two, in light wind, and without what a formula needs', () => {
  assert.equal(feelsLikeF(65, null, null), 65)
  assert.equal(feelsLikeF(80, 90, 10), 80)
  assert.equal(feelsLikeF(40, 50, 2), 40)
  assert.equal(feelsLikeF(40, 50, null), null)
  assert.equal(feelsLikeF(90, null, 5), null)
  assert.equal(feelsLikeF(null, 50, 5), null)
})
