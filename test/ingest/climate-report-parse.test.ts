import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type ClimateReport, parseClimateText } from '../../server/ingest/climate-reports/parse.ts'
import { headerInstantMs, readHeader } from '../../server/ingest/climate-reports/wmo-header.ts'
import { HEADING, productText, type SummaryText, wrapped } from '../support/climate-text.ts'

function only(text: string): ClimateReport {
  const { reports, errors } = parseClimateText(text)
  assert.deepEqual(errors, [])
  assert.equal(reports.length, 1)
  const [report] = reports
  assert.ok(report !== undefined)
  return report
}

function onlyError(text: string): string {
  const { reports, errors } = parseClimateText(text)
  assert.deepEqual(reports, [])
  assert.equal(errors.length, 1)
  return errors[0]!
}

function summary(changes: Partial<SummaryText> = {}): SummaryText {
  return { name: 'MIAMI', date: 'AUGUST 29 2026', ...changes }
}

test('reads every field of a final report', () => {
  assert.deepEqual(only(productText({ summaries: [summary()] })), {
    pil: 'CLIMIA',
    stationName: 'MIAMI',
    observation_date: '2026-08-29',
    high_temp_f: 90,
    low_temp_f: 76,
    report_type: 'final',
    is_correction: false,
    product_id: '202608300824-KMFL-CDUS42-CLIMIA',
    issued_at: Date.parse('2026-08-30T08:24:00Z'),
  })
})

test('treats a report with VALID AS OF or TODAY as preliminary, at any hour', () => {
  const cases: Partial<SummaryText>[] = [
    { label: 'TODAY', validAsOf: 'VALID TODAY AS OF 0400 PM LOCAL TIME.' },
    { label: 'TODAY', validAsOf: 'VALID AS OF 735 AM LOCAL TIME.' },
    { label: 'TODAY', validAsOf: 'VALID TODAY AS OF 4:00 PM LOCAL TIME.' },
    { label: 'TODAY', validAsOf: 'VALID AS OF 1230 AM LOCAL TIME.' },
    { label: 'YESTERDAY', validAsOf: 'VALID AS OF 1200 PM LOCAL TIME.' },
    { label: null, validAsOf: 'VALID AS OF 0500PM LOCAL TIME.' },
    { label: 'TODAY' },
    { label: null, temperatureTitle: 'TEMPERATURE (F) TODAY' },
    { label: 'TODAY', headlineTail: '...\nYESTERDAY WAS DRY' },
  ]
  for (const changes of cases) {
    const report = only(productText({ summaries: [summary(changes)] }))
    assert.equal(report.report_type, 'preliminary')
  }
})

test('recognises a correction by header, title or headline, and not a retransmission', () => {
  const isCorrection = (changes: Parameters<typeof productText>[0]): boolean =>
    only(productText(changes)).is_correction
  const summaries = [summary()]
  assert.equal(isCorrection({ summaries, header: 'CDUS42 KMFL 300824 CCA' }), true)
  assert.equal(isCorrection({ summaries, header: 'CDUS42 KMFL 300824 CCB' }), true)
  assert.equal(isCorrection({ summaries, header: 'CDUS42 KMFL 300824 RRA' }), false)
  assert.equal(isCorrection({ summaries, title: 'CLIMATE REPORT...CORRECTED LOW TEMPERATURE...' }), true)
  assert.equal(isCorrection({ summaries, title: 'CLIMATE REPORT (CORRECTION)' }), true)
  assert.equal(isCorrection({ summaries: [summary({ headlineTail: ' CORRECTION' })] }), true)
  assert.equal(isCorrection({ summaries, tail: 'CORRECTED FOR SNOWFALL\n$$' }), false)
  const preliminary = productText({
    header: 'CDUS42 KMFL 292148 CCA',
    issued: '548 PM EDT SAT AUG 29 2026',
    summaries: [summary({ label: 'TODAY', validAsOf: 'VALID TODAY AS OF 0400 PM LOCAL TIME.' })],
  })
  assert.equal(only(preliminary).report_type, 'preliminary')
  assert.equal(only(preliminary).product_id, '202608292148-KMFL-CDUS42-CLIMIA-CCA')
})

test('reads values with their marks and keeps missing ones null', () => {
  const cases: [string, number | null][] = [
    ['         90   3:25 PM  95', 90],
    ['        100R  325 PM 100', 100],
    ['         57(E)  221 AM  88', 57],
    ['         31 E  651 AM  22', 31],
    ['        -21R   355 AM -21', -21],
    ['         -3    829 AM -39', -3],
    ['         79*   325 PM  95', 79],
    ['         78     12 AM', 78],
    ['         0      12 AM', 0],
    ['         88', 88],
    ['\t 77   325 PM  95', 77],
    ['         MM        MM  70', null],
    ['         M         M   70', null],
    ['                325 PM  95', null],
    ['                3:25 PM  95', null],
    ['                 12 AM  95', null],
    ['                       95    1952', null],
    [' \t\t\t95    1952', null],
    ['         90   3:25 PM\n  MAXIMUM         91', 90],
    ['', null],
  ]
  for (const [maximum, high] of cases) {
    const report = only(productText({ summaries: [summary({ maximum })] }))
    assert.equal(report.high_temp_f, high, JSON.stringify(maximum))
    assert.equal(report.low_temp_f, 76)
  }
  assert.equal(only(productText({ summaries: [summary({ maximum: null })] })).high_temp_f, null)
})

function typed(changes: Partial<SummaryText>): (number | null)[] {
  const text = productText({ summaries: [summary(changes)] })
  const { high_temp_f, low_temp_f } = only(text.replaceAll(/^ +/gm, ''))
  return [high_temp_f, low_temp_f]
}

test('reads hand-typed tables: single blanks, no indentation, no unit', () => {
  const heading = 'WEATHER ITEM OBSERVED TIME RECORD YEAR NORMAL DEPARTURE LAST'
  const minimum = ' 77 550 AM 70 1967 77 0 78'
  assert.deepEqual(typed({ heading, maximum: ' 89 150 PM 91 2008 88 1 82', minimum }), [89, 77])
  assert.deepEqual(typed({ heading, maximum: ' 150 PM 91 2008 88 1 82', minimum }), [null, 77])
  assert.deepEqual(
    typed({
      temperatureTitle: 'TEMPERATURE ',
      maximum: '            29  0432 PM    49  1926     25       4     15 ',
      minimum: '            -9  0420 AM   -13  1975     14       5      2 ',
    }),
    [29, -9],
  )
  assert.deepEqual(typed({ temperatureTitle: 'TEMPERATURE(F)', heading: '' }), [90, 76])
})

test('never takes a value from outside the temperature block', () => {
  const text = productText({
    summaries: [summary({ minimum: null })],
    tail: '&&\nMINIMUM TEMPERATURE... 39\n MINIMUM         41\n$$',
  })
  assert.equal(only(text).low_temp_f, null)
})

test('reads every station of a product, each with its own kind, and reports the unreadable one', () => {
  const text = productText({
    pil: 'CLIHOU',
    summaries: [
      summary({ name: 'HOUSTON INTERCONTINENTAL' }),
      summary({ name: 'HOUSTON/HOBBY AIRPORT', maximum: '         8O    200 PM' }),
      summary({ name: 'GALVESTON SCHOLES FIELD', validAsOf: 'VALID AS OF 0700 AM LOCAL TIME.' }),
    ],
  })
  const { reports, errors } = parseClimateText(text)
  assert.deepEqual(
    reports.map(({ stationName, report_type }) => [stationName, report_type]),
    [
      ['HOUSTON INTERCONTINENTAL', 'final'],
      ['GALVESTON SCHOLES FIELD', 'preliminary'],
    ],
  )
  const line = 1 + text.split('\n').findIndex((each) => each.trim() === 'MAXIMUM         8O    200 PM')
  assert.match(errors[0] ?? '', new RegExp(`^climate report CLIHOU KMFL 300824, line ${line}: .*8O`))
})

test('reads headlines that run over two lines, abbreviate the month or say FROM', () => {
  const plain = productText({ summaries: [summary({ name: 'PAGO PAGO AIRPORT' })] })
  const headline = '...THE PAGO PAGO AIRPORT CLIMATE SUMMARY FOR AUGUST 29 2026...'
  const variants = [
    '...THE PAGO PAGO AIRPORT CLIMATE SUMMARY FOR\nAUGUST 29 2026...',
    '...THE PAGO PAGO AIRPORT\nCLIMATE SUMMARY FOR AUGUST 29 2026...',
    '...THE PAGO PAGO AIRPORT CLIMATE\nSUMMARY FOR AUGUST 29 2026...',
    '...THE  PAGO  PAGO AIRPORT CLIMATE SUMMARY FOR AUG 29 2026... ',
    '...The Pago Pago Airport Climate Summary From August 29, 2026...',
    'THE PAGO PAGO AIRPORT CLIMATE SUMMARY FOR AUGUST 29 2026',
  ]
  for (const variant of variants) {
    const report = only(plain.replace(headline, variant))
    assert.equal(report.stationName, 'PAGO PAGO AIRPORT', variant)
    assert.equal(report.observation_date, '2026-08-29', variant)
  }
})

test('resolves month and year of the header across month ends, year ends and clock changes', () => {
  const cases: [header: string, issued: string | null, date: string, instant: string][] = [
    ['010430', '1130 PM EST THU DEC 31 2026', 'DECEMBER 30 2026', '2027-01-01T04:30'],
    ['010642', '1242 AM CST FRI JAN 01 2027', 'DECEMBER 31 2026', '2027-01-01T06:42'],
    ['312359', '359 PM PST THU DEC 31 2026', 'DECEMBER 30 2026', '2026-12-31T23:59'],
    ['010005', '405 PM AKDT SAT FEB 29 2028', 'FEBRUARY 28 2028', '2028-03-01T00:05'],
    ['080615', '115 AM EST SUN MAR 08 2026', 'MARCH 7 2026', '2026-03-08T06:15'],
    ['080715', '315 AM EDT SUN MAR 08 2026', 'MARCH 7 2026', '2026-03-08T07:15'],
    ['010530', '130 AM EDT SUN NOV 01 2026', 'OCTOBER 31 2026', '2026-11-01T05:30'],
    ['010630', '130 AM EST SUN NOV 01 2026', 'OCTOBER 31 2026', '2026-11-01T06:30'],
    ['010630', '1:30 AM EST SUN NOV 01 2026', 'OCTOBER 31 2026', '2026-11-01T06:30'],
    // An unknown zone does not matter: the header has the time. Without a local line the date's own month counts.
    ['300824', '424 AM XYZ SUN AUG 30 2026', 'AUGUST 29 2026', '2026-08-30T08:24'],
    ['010630', null, 'OCTOBER 31 2026', '2026-11-01T06:30'],
    ['300824', null, 'AUGUST 29 2026', '2026-08-30T08:24'],
  ]
  for (const [header, issued, date, instant] of cases) {
    const text = productText({ header: `CDUS42 KMFL ${header}`, issued, summaries: [summary({ date })] })
    const report = only(text)
    assert.equal(new Date(report.issued_at).toISOString(), `${instant}:00.000Z`)
    assert.equal(report.product_id, `${instant.replaceAll(/\D/g, '')}-KMFL-CDUS42-CLIMIA`)
  }
})

test('uses the header as the time of issue unless it is before the day of the report', () => {
  const issued = (header: string, local: string): string =>
    new Date(
      only(productText({ header: `CDUS42 KMFL ${header}`, issued: local, summaries: [summary()] })).issued_at,
    ).toISOString()
  const local = '424 AM EDT SUN AUG 30 2026'
  assert.equal(issued('301500', local), '2026-08-30T15:00:00.000Z')
  // Sent again three days later with the old local line.
  assert.equal(issued('020824', local), '2026-09-02T08:24:00.000Z')
  // A header that was not updated for six days.
  assert.equal(issued('240824', local), '2026-08-30T08:24:00.000Z')
  assert.equal(issued('240824', '1224 AM EDT SUN AUG 30 2026'), '2026-08-30T04:24:00.000Z')
  assert.equal(issued('240824', '1224 PM EDT SUN AUG 30 2026'), '2026-08-30T16:24:00.000Z')
  const impossible = productText({
    header: 'CDUS42 KMFL 240824',
    issued: '424 AM XYZ SUN AUG 30 2026',
    summaries: [summary()],
  })
  assert.match(onlyError(impossible), /does not fit the issue time/)
})

test('resolves a header only to a month that has its day', () => {
  const header = readHeader(['CDUS42 KMFL 310005', 'CLIMIA'])
  assert.ok(header !== undefined)
  const instant = headerInstantMs(header, Date.parse('2026-03-02T00:00:00Z'))
  assert.equal(instant, Date.parse('2026-03-31T00:05:00Z'))
})

test('names product and line of what it cannot parse', () => {
  const summaries = [summary()]
  const whole = productText({ summaries })
  const cases: [RegExp, string][] = [
    [/no WMO header/, 'nothing of the kind'],
    [/no WMO header/, productText({ summaries, header: 'CDUS42 KMFL 390824' })],
    [/no WMO header/, productText({ summaries, header: 'CDUS42 KMFL 302524' })],
    [/is no daily climate report/, productText({ summaries, pil: 'CF6MIA' })],
    [/is no daily climate report/, productText({ summaries, pil: 'CLMMIA' })],
    [/a test:/, productText({ summaries, title: 'TEST...CLIMATE REPORT...TEST' })],
    [/a test:/, productText({ summaries, title: 'CLIMATE REPORT\nTHIS IS A TEST' })],
    [/no climate summary headline/, productText({ summaries: [] })],
    [/unreadable headline/, productText({ summaries: [summary({ date: 'YESTERDAY' })] })],
    [/no such date/, productText({ summaries: [summary({ date: 'FEBRUARY 30 2026' })] })],
    [/does not fit the issue time/, productText({ summaries: [summary({ date: 'AUGUST 29 2025' })] })],
    [/does not fit the issue time/, productText({ summaries: [summary({ date: 'AUGUST 29 2027' })] })],
    [/was not over/, productText({ summaries: [summary({ date: 'AUGUST 30 2026' })] })],
    [/temperature block/, productText({ summaries: [summary({ temperatureTitle: 'TEMPERATURE (C)' })] })],
    [/temperature block/, productText({ summaries: [summary({ maximum: null, minimum: null })] })],
    [/no (?:air )?temperature/, productText({ summaries: [summary({ maximum: '         9O' })] })],
    [/no (?:air )?temperature/, productText({ summaries: [summary({ maximum: '         900' })] })],
    [/no (?:air )?temperature/, productText({ summaries: [summary({ minimum: '         7690' })] })],
    [/cut off/, wrapped(whole).slice(0, -5)],
    [/at most \d+ are read/, whole + ' '.repeat(300_000)],
  ]
  for (const [reason, text] of cases) {
    const error = onlyError(text)
    assert.match(error, reason)
    assert.match(error, /^climate report (#1|C\w{5} KMFL \d{6}), line \d+: /)
  }
  const unlabelled = productText({ summaries: [summary({ label: null })] }).replaceAll('FOR TODAY', '')
  assert.match(onlyError(unlabelled), /neither TODAY, YESTERDAY nor VALID AS OF/)
})

test('continues after a broken product', () => {
  const good = productText({ summaries: [summary()] })
  const { reports, errors } = parseClimateText(`${wrapped(good)}\u0001\n884\nGARBAGE\n\u0001\n${good}\u0003`)
  assert.equal(reports.length, 2)
  assert.equal(errors.length, 1)
  assert.match(errors[0]!, /^climate report #2, line \d+: no WMO header/)
})

const HEADINGS: readonly string[] = [
  HEADING,
  'WEATHER ITEM   OBSERVED TIME   NORMAL DEPARTURE LAST',
  'WEATHER ITEM   OBSERVED RECORD YEAR NORMAL DEPARTURE LAST',
  'WEATHER ITEM   OBSERVED',
  'WEATHER ITEM   OBSERVED TIME       LAST',
  'WEATHER ITEM  OBSERVED    TIME      RECORD    YEAR    NORMAL   DEPARTURE   LAST',
]

test('reads back whatever a report states, in every layout', () => {
  const temperature = fc.option(fc.integer({ min: -60, max: 134 }), { nil: null })
  const value = fc.record({
    tempF: temperature,
    mark: fc.constantFrom('', 'R', ' E', '(E)'),
    time: fc.constantFrom('', '  325 PM', '  3:25 PM', '   12 AM', '     MM'),
    rest: fc.constantFrom('', '  95    1952  90      0       93', '  MM      MM'),
  })
  type Value = typeof value extends fc.Arbitrary<infer V> ? V : never
  const column = ({ tempF, mark, time, rest }: Value): string =>
    (tempF === null ? 'MM' : `${tempF}${mark}`).padStart(11).padEnd(14) + time + rest
  const cases = fc.record({
    high: value,
    low: value,
    heading: fc.constantFrom(...HEADINGS),
    isFinal: fc.boolean(),
    lineEnd: fc.constantFrom('\n', '\r\n', '\r\r\n'),
  })
  fc.assert(
    fc.property(cases, ({ high, low, heading, isFinal, lineEnd }) => {
      const text = productText({
        summaries: [
          summary({
            heading,
            maximum: column(high),
            minimum: column(low),
            label: isFinal ? 'YESTERDAY' : 'TODAY',
          }),
        ],
      })
      const report = only(text.replaceAll('\n', lineEnd))
      assert.equal(report.high_temp_f, high.tempF)
      assert.equal(report.low_temp_f, low.tempF)
      assert.equal(report.report_type, isFinal ? 'final' : 'preliminary')
    }),
    { numRuns: 300 },
  )
})

test('returns reports or named errors for any damage, and no values that are not in the text', () => {
  const whole = wrapped(
    productText({ summaries: [summary(), summary({ name: 'MIAMI BEACH' })] }),
    productText({
      pil: 'CLINYC',
      header: 'CDUS41 KOKX 300642 CCA',
      summaries: [summary({ name: 'CENTRAL PARK NY' })],
    }),
  )
  const damage = fc.record({
    at: fc.nat(whole.length),
    length: fc.nat(120),
    insert: fc.oneof(
      fc.string({ maxLength: 30 }),
      fc.constantFrom('\u0001', '\u0003', '\n', '...', '-', '1'),
    ),
  })
  fc.assert(
    fc.property(fc.array(damage, { minLength: 1, maxLength: 6 }), (damages) => {
      let text = whole
      for (const { at, length, insert } of damages) {
        text = text.slice(0, at) + insert + text.slice(at + length)
      }
      const { reports, errors } = parseClimateText(text)
      for (const error of errors) assert.match(error, /^climate report .*, line [1-9]\d*: /)
      for (const report of reports) {
        for (const value of [report.high_temp_f, report.low_temp_f]) {
          assert.ok(value === null || text.includes(String(Math.abs(value))))
        }
        assert.match(report.observation_date, /^\d{4}-\d\d-\d\d$/)
        assert.match(report.product_id, /^\d{12}-[A-Z]{4}-[A-Z0-9]{6}-CLI[A-Z0-9]{1,3}(-[A-Z]{3})?$/)
        assert.ok(report.issued_at >= Date.parse(report.observation_date) - 14 * 3_600_000)
      }
    }),
    { numRuns: 500 },
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => {
      assert.deepEqual(parseClimateText(text).reports, [])
    }),
  )
})
