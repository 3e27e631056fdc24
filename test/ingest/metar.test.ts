import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type DecodedMetar, decodeMetar, MetarError } from '../../server/ingest/metar/decode-metar.ts'
import { METAR_TEXT_CHARACTERS_MAX } from '../../shared/limits.ts'
import { TRACE_INCHES } from '../../shared/observation.ts'

const RECEIVED_MS = Date.parse('2026-01-19T18:58:00Z')
const HEAD = 'KJFK 191851Z'

function decode(rest: string, referenceMs = RECEIVED_MS): DecodedMetar {
  return decodeMetar(`${HEAD} ${rest}`, referenceMs)
}

test('decodes a whole report', () => {
  const decoded = decodeMetar(
    'METAR KJFK 191851Z 24019G24KT 210V270 10SM -SN BR FEW012 SCT039 SCT090 BKN150 OVC250 00/M06 A2994 RMK AO2 PK WND ' +
      '24026/1820 SLP137 P0003 4/005 T00001061 10056 21011 401061017 53010 $',
    RECEIVED_MS,
  )
  assert.equal(decoded.icao, 'KJFK')
  assert.equal(decoded.type, 'METAR')
  assert.equal(decoded.observedAtMs, Date.parse('2026-01-19T18:51:00Z'))
  assert.equal(decoded.isCorrection, false)
  assert.deepEqual(decoded.skyLayers.at(-1), { cover: 'OVC', baseFt: 25_000 })
  assert.deepEqual(decoded.weather, {
    temp_f: 32,
    dewpoint_f: 21,
    wind_speed_kt: 19,
    altimeter_inhg: 29.94,
    visibility_miles: 10,
    relative_humidity: 63.5,
    wind_dir_degrees: 240,
    wind_gust_kt: 24,
    sea_level_pressure_mb: 1013.7,
    weather_codes: '-SN BR',
    sky_cover_1: 'FEW',
    sky_base_1_ft: 1200,
    sky_cover_2: 'SCT',
    sky_base_2_ft: 3900,
    sky_cover_3: 'SCT',
    sky_base_3_ft: 9000,
    sky_cover_4: 'BKN',
    sky_base_4_ft: 15_000,
    precip_1hr_inches: 0.03,
    snow_depth_inches: 5,
    peak_wind_speed_kt: 26,
    peak_wind_dir_degrees: 240,
    peak_wind_time: Date.parse('2026-01-19T18:20:00Z'),
    feels_like_f: 19.5,
    max_temp_6hr_f: 42,
    min_temp_6hr_f: 30,
    max_temp_24hr_f: 51,
    min_temp_24hr_f: 29,
  })
})

test('values that a report does not state are null', () => {
  const { weather, temperatureC, dewpointC } = decode('AUTO')
  assert.equal(temperatureC, null)
  assert.equal(dewpointC, null)
  for (const [field, value] of Object.entries(weather)) assert.equal(value, null, field)
})

test('tenths give whole °F at an automated station, else the float is kept', () => {
  assert.equal(decode('22/17 A2990 RMK AO2 T02170172').weather.temp_f, 71)
  assert.equal(decode('22/17 A2990 RMK AO2 T02170172').weather.dewpoint_f, 63)
  assert.equal(decode('22/17 A2990 RMK A02 T02170172').weather.temp_f, 71)
  assert.equal(decode('22/17 A2990 RMK AO1 T02170172').weather.temp_f, 71.06)
  assert.equal(decode('22/17 A2990 RMK AO2').weather.temp_f, 71.6)
  assert.equal(decode('M05/M10 A2990').weather.temp_f, 23)
})

test('tenths that contradict the body by more than 1 °C are ignored', () => {
  const decoded = decode('22/17 A2990 RMK AO2 T12170172')
  assert.equal(decoded.temperatureC, 22)
  assert.equal(decoded.dewpointC, 17.2)
  assert.equal(decoded.weather.temp_f, 71.6)
})

test('a temperature without a dewpoint counts, also in the tenths', () => {
  for (const group of ['05/', '05///', '05/XX']) {
    const { weather } = decode(`${group} A2990`)
    assert.equal(weather.temp_f, 41, group)
    assert.equal(weather.dewpoint_f, null, group)
    assert.equal(weather.relative_humidity, null, group)
  }
  assert.equal(decode('05/ A2990 RMK AO2 T0050').weather.temp_f, 41)
})

test('M00 is zero and not negative zero', () => {
  const decoded = decode('M00/M00 A2990')
  assert.ok(Object.is(decoded.temperatureC, 0))
  assert.equal(decoded.weather.temp_f, 32)
})

test('a calm is 0 degrees and 0 knots, a variable wind has no direction, a missing wind is null', () => {
  const wind = (group: string): unknown[] => {
    const { wind_dir_degrees, wind_speed_kt, wind_gust_kt } = decode(`${group} 10SM CLR`).weather
    return [wind_dir_degrees, wind_speed_kt, wind_gust_kt]
  }
  assert.deepEqual(wind('00000KT'), [0, 0, null])
  assert.deepEqual(wind('00000KTS'), [0, 0, null])
  assert.deepEqual(wind('VRB06G15KT'), [null, 6, 15])
  assert.deepEqual(wind('36010KT'), [360, 10, null])
  assert.deepEqual(wind('240104G118KT'), [240, 104, 118])
  assert.deepEqual(wind('08004MPS'), [80, 8, null])
  assert.deepEqual(wind('/////KT'), [null, null, null])
  assert.deepEqual(wind('210V270'), [null, null, null])
  assert.deepEqual(wind('99910KT'), [null, null, null])
  assert.deepEqual(wind(''), [null, null, null])
})

test('a visibility is read in whole miles, fractions, bounds and metres', () => {
  for (const [group, miles] of [
    ['10SM', 10],
    ['1/4SM', 0.25],
    ['M1/4SM', 0.25],
    ['1/16SM', 0.0625],
    ['1 3/4SM', 1.75],
    ['P6SM', 6],
    ['210V270 1/4SM', 0.25],
    ['9999', 6.21],
    ['CAVOK', 6.21],
    ['2000', 1.24],
    ['////SM', null],
    ['1/0SM', null],
    ['M', null],
  ] as const) {
    assert.equal(decode(`24010KT ${group} CLR`).weather.visibility_miles, miles, group)
  }
})

test('sky cover: clear, obscured, unmeasured and unknown', () => {
  const sky = (groups: string): unknown[] => {
    const { sky_cover_1, sky_base_1_ft, sky_cover_2, sky_base_2_ft } = decode(`10SM ${groups}`).weather
    return [sky_cover_1, sky_base_1_ft, sky_cover_2, sky_base_2_ft]
  }
  assert.deepEqual(sky('CLR'), ['CLR', null, null, null])
  assert.deepEqual(sky('SKC'), ['SKC', null, null, null])
  assert.deepEqual(sky('VV000'), ['VV', 0, null, null])
  assert.deepEqual(sky('FEW000 BKN026CB'), ['FEW', 0, 'BKN', 2600])
  assert.deepEqual(sky('OVC///'), ['OVC', null, null, null])
  assert.deepEqual(sky('M'), [null, null, null, null])
})

test('the altimeter decides whether a sea-level pressure is below or above 1000 hPa', () => {
  assert.equal(decode('A2912 RMK SLP860').weather.sea_level_pressure_mb, 986)
  assert.equal(decode('A2994 RMK SLP137').weather.sea_level_pressure_mb, 1013.7)
  assert.equal(decode('A2950 RMK SLP991').weather.sea_level_pressure_mb, 999.1)
  assert.equal(decode('A3090 RMK SLP560').weather.sea_level_pressure_mb, 1056)
  // A broken sensor does not determine it.
  assert.equal(decode('A2543 RMK SLP547').weather.sea_level_pressure_mb, 1054.7)
  assert.equal(decode('RMK SLP137').weather.sea_level_pressure_mb, 1013.7)
  assert.equal(decode('A2994 RMK SLPNO').weather.sea_level_pressure_mb, null)
})

test('a group after a place name is not taken for the place', () => {
  const { weather } = decode('27/21 A2985 RMK AO2 CIG 029 SLP106 VIS 2 T02670206')
  assert.equal(weather.sea_level_pressure_mb, 1010.6)
  assert.equal(weather.temp_f, 80)
})

test('the altimeter setting is exact, and hectopascals are converted', () => {
  assert.equal(decode('A2994').weather.altimeter_inhg, 29.94)
  assert.equal(decode('Q1015').weather.altimeter_inhg, 29.97)
  assert.equal(decode('A////').weather.altimeter_inhg, null)
})

test('a trace of precipitation is neither nothing nor measurable', () => {
  assert.equal(decode('RMK AO2 P0000').weather.precip_1hr_inches, TRACE_INCHES)
  assert.equal(decode('RMK AO2 P0114').weather.precip_1hr_inches, 1.14)
  assert.equal(decode('RMK AO2').weather.precip_1hr_inches, null)
  assert.equal(decode('RMK AO2 P////').weather.precip_1hr_inches, null)
})

test('present weather is kept in the order reported', () => {
  assert.equal(decode('10SM +TSRA BR VCSH FEW010').weather.weather_codes, '+TSRA BR VCSH')
  assert.equal(decode('10SM UP BR FEW010').weather.weather_codes, 'UP BR')
  assert.equal(decode('10SM // FEW010').weather.weather_codes, null)
})

test('a correction is recognised before the station, after it and after the time', () => {
  for (const text of [
    'METAR COR KJFK 191851Z 24010KT',
    'KJFK COR 191851Z 24010KT',
    'SPECI KJFK 191851Z COR 24010KT',
    'KJFK 191851Z CCA 24010KT',
  ]) {
    const decoded = decodeMetar(text, RECEIVED_MS)
    assert.equal(decoded.isCorrection, true, text)
    assert.equal(decoded.weather.wind_speed_kt, 10, text)
  }
  assert.equal(decode('24010KT RMK COR').isCorrection, false)
})

test('the peak wind is before the report, with or without its hour', () => {
  const peak = (remark: string): string | null => {
    const ms = decodeMetar(`KJFK 010008Z 24010KT RMK AO2 ${remark}`, Date.parse('2026-03-01T00:10:00Z'))
      .weather.peak_wind_time
    return ms === null ? null : new Date(ms).toISOString()
  }
  assert.equal(peak('PK WND 24026/2355'), '2026-02-28T23:55:00.000Z')
  assert.equal(peak('PK WND 24026/0005'), '2026-03-01T00:05:00.000Z')
  assert.equal(peak('PK WND 24026/05'), '2026-03-01T00:05:00.000Z')
  assert.equal(peak('PK WND 24026/40'), '2026-02-28T23:40:00.000Z')
  assert.equal(peak('PK WND 24026/2570'), null)
})

test('the month comes from the reference time, across month ends and never from the future', () => {
  const time = (ddhhmm: string, reference: string): string | null => {
    try {
      return new Date(decodeMetar(`KJFK ${ddhhmm}Z AUTO`, Date.parse(reference)).observedAtMs).toISOString()
    } catch (error) {
      assert.ok(error instanceof MetarError)
      return null
    }
  }
  assert.equal(time('312351', '2026-02-01T00:03:00Z'), '2026-01-31T23:51:00.000Z')
  assert.equal(time('010000', '2026-01-31T23:58:00Z'), '2026-02-01T00:00:00.000Z')
  assert.equal(time('010000', '2025-12-31T23:58:00Z'), '2026-01-01T00:00:00.000Z')
  assert.equal(time('311851', '2026-03-01T12:00:00Z'), '2026-01-31T18:51:00.000Z')
  assert.equal(time('291851', '2024-03-01T12:00:00Z'), '2024-02-29T18:51:00.000Z')
  assert.equal(time('191851', '2026-01-19T12:00:00Z'), '2025-12-19T18:51:00.000Z')
  for (const impossible of ['001851', '321851', '192451', '191860']) {
    assert.equal(time(impossible, '2026-01-19T19:00:00Z'), null, impossible)
  }
})

test('a resolved time is the latest with that day, hour and minute up to an hour ahead', () => {
  const span = { min: Date.parse('2001-01-01'), max: Date.parse('2099-01-01') }
  fc.assert(
    fc.property(
      fc.integer(span),
      fc.integer({ min: 1, max: 31 }),
      fc.integer({ min: 0, max: 23 }),
      (ms, day, hour) => {
        const pad = (value: number): string => String(value).padStart(2, '0')
        const { observedAtMs } = decodeMetar(`KJFK ${pad(day)}${pad(hour)}30Z AUTO`, ms)
        const observed = new Date(observedAtMs)
        assert.deepEqual(
          [observed.getUTCDate(), observed.getUTCHours(), observed.getUTCMinutes()],
          [day, hour, 30],
        )
        assert.ok(observedAtMs <= ms + 3_600_000)
        for (let later = observedAtMs + 86_400_000; later <= ms + 3_600_000; later += 86_400_000) {
          assert.notEqual(new Date(later).getUTCDate(), day)
        }
      },
    ),
  )
})

test('text that is not a report is a typed error', () => {
  for (const text of [
    '',
    'KJFK',
    'KNMT 1218 DH0700/PPH M',
    'TAF KJFK 191720Z 1918/2024 24015KT',
    'KJFK 191851Z NIL',
    `KJFK 191851Z ${'A'.repeat(METAR_TEXT_CHARACTERS_MAX)}`,
  ]) {
    assert.throws(() => decodeMetar(text, RECEIVED_MS), MetarError, text.slice(0, 40))
  }
})

const GROUPS =
  'COR AUTO NIL RMK AO2 $ = ////// M 24010G20KT VRB03KT 210V270 1 3/4SM M1/4SM 10SM 9999 2000NE CAVOK +TSRA VCSH - ' +
  'BKN010CB VV001 CLR OVC/// 05/ M05/M10 A2994 Q1013 R04/2400FT TEMPO NOSIG SLP860 T10561106 PK WND 24026/1820 CIG 029 ' +
  'VIS P0000 10256 20167 401060056 4/012 60010 TSB32 WSHFT 98096 GR LESS THAN TORNADO B13 SNINCR 2/10 NXT FCST BY ' +
  '__proto__ constructor'

test('any sequence of groups decodes to finite numbers or fails with the typed error', () => {
  const groups = fc.array(fc.oneof(fc.constantFrom(...GROUPS.split(' ')), fc.string({ maxLength: 8 })), {
    maxLength: 40,
  })
  fc.assert(
    fc.property(fc.constantFrom(HEAD, `METAR ${HEAD}`, 'KJFK'), groups, (head, rest) => {
      let decoded: DecodedMetar
      try {
        decoded = decodeMetar([head, ...rest].join(' '), RECEIVED_MS)
      } catch (error) {
        assert.ok(error instanceof MetarError, String(error))
        return
      }
      for (const [field, value] of Object.entries(decoded.weather)) {
        assert.ok(value === null || typeof value === 'string' || Number.isFinite(value), field)
        assert.ok(!Object.is(value, -0), field)
      }
    }),
    { numRuns: 3000 },
  )
})

test('any text decodes or fails with the typed error', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      try {
        decodeMetar(text, RECEIVED_MS)
      } catch (error) {
        assert.ok(error instanceof MetarError, String(error))
      }
    }),
    { numRuns: 2000 },
  )
})
