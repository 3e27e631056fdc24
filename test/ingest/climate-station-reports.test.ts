import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { parseClimateText } from '../../server/ingest/climate-reports/parse.ts'
import { classifyReports, matchStations } from '../../server/ingest/climate-reports/station-reports.ts'
import type { ClimateReportRow } from '../../server/storage/climate-store.ts'
import { servedRecord } from '../../shared/climate.ts'
import { type Station, STATIONS } from '../../shared/stations.ts'
import { productText, wrapped } from '../support/climate-text.ts'
import { realDataPath } from '../support/real-data.ts'

const MIAMI = { name: 'MIAMI', date: 'AUGUST 29 2026' }

function stored(text: string, source: ClimateReportRow['source'] = 'nws'): ClimateReportRow[] {
  const { reports, errors } = parseClimateText(text)
  assert.deepEqual(errors, [])
  const matched = matchStations(reports, STATIONS, source)
  assert.equal(matched.length, reports.length)
  return classifyReports(matched)
}

function report(changes: Partial<ClimateReportRow> = {}): ClimateReportRow {
  return {
    station_code: 'MIA',
    observation_date: '2026-08-29',
    high_temp_f: 90,
    low_temp_f: 76,
    report_type: 'final',
    source: 'nws',
    product_id: 'p0',
    issued_at: 0,
    is_correction: false,
    ...changes,
  }
}

test('treats an unmarked re-issue with other values as a correction and serves the first', () => {
  const first = productText({ header: 'CDUS42 KMFL 300824', summaries: [MIAMI] })
  const second = productText({
    header: 'CDUS42 KMFL 300910',
    issued: '510 AM EDT SUN AUG 30 2026',
    summaries: [{ ...MIAMI, maximum: '         85   3:25 PM  95    1952  90     -5       93        ' }],
  })
  for (const text of [wrapped(first, second), wrapped(second, first)]) {
    const reports = stored(text)
    assert.deepEqual(
      reports.map((r) => [r.report_type, r.high_temp_f, r.low_temp_f, r.product_id]),
      [
        ['final', 90, 76, '202608300824-KMFL-CDUS42-CLIMIA'],
        ['correction', 85, 76, '202608300910-KMFL-CDUS42-CLIMIA'],
      ],
    )
    assert.equal(servedRecord(reports)?.high_temp_f, 90)
  }
})

test('keeps a retransmission final and serves the original', () => {
  const reports = stored(
    wrapped(
      productText({ header: 'CDUS42 KMFL 300824 RRA', summaries: [MIAMI] }),
      productText({ header: 'CDUS42 KMFL 300824', summaries: [MIAMI] }),
    ),
  )
  assert.deepEqual(
    reports.map(({ report_type }) => report_type),
    ['final', 'final'],
  )
  assert.equal(servedRecord(reports)?.product_id, '202608300824-KMFL-CDUS42-CLIMIA')
})

test('lets a later final add a missing value, and treats it as a correction if it changes one', () => {
  const first = productText({ summaries: [{ ...MIAMI, minimum: '         MM        MM' }] })
  const later = (maximum: string): string =>
    productText({ header: 'CDUS42 KMFL 301200', summaries: [{ ...MIAMI, maximum }] })
  const filled = stored(wrapped(first, later('         90   3:25 PM')))
  assert.deepEqual(
    filled.map(({ report_type }) => report_type),
    ['final', 'final'],
  )
  assert.equal(servedRecord(filled)?.low_temp_f, 76)
  const changed = stored(wrapped(first, later('         91   3:25 PM')))
  assert.deepEqual(
    changed.map(({ report_type }) => report_type),
    ['final', 'correction'],
  )
  assert.deepEqual([servedRecord(changed)?.high_temp_f, servedRecord(changed)?.low_temp_f], [90, null])
})

test('treats a corrected preliminary report as preliminary, and a corrected final as a correction', () => {
  const preliminary = { ...MIAMI, label: 'TODAY', validAsOf: 'VALID TODAY AS OF 0400 PM LOCAL TIME.' }
  const reports = stored(
    wrapped(
      productText({
        header: 'CDUS42 KMFL 292148 CCA',
        issued: '548 PM EDT SAT AUG 29 2026',
        summaries: [preliminary],
      }),
      productText({ header: 'CDUS42 KMFL 300824', summaries: [MIAMI] }),
      productText({ header: 'CDUS42 KMFL 300850 CCA', summaries: [MIAMI] }),
    ),
  )
  assert.deepEqual(
    reports.map(({ report_type }) => report_type),
    ['preliminary', 'final', 'correction'],
  )
})

test('classifies three real reports of one date: the first is final, the others correct it', (t) => {
  const paths = ['CLICVG_newer.txt', 'CLICVG.txt', 'CLICVG_older.txt'].map((name) =>
    realDataPath('climate-reports', name),
  )
  const texts = paths.map((path) => (path === undefined ? undefined : readFileSync(path, 'latin1')))
  if (texts.includes(undefined)) {
    t.skip('real recordings not present')
    return
  }
  const [miami] = STATIONS
  assert.ok(miami !== undefined)
  const cincinnati: Station = { ...miami, code: 'CVG', climatePil: 'CLICVG', climateName: 'CINCINNATI' }
  const parsed = texts.flatMap((text) => parseClimateText(text ?? '').reports)
  const reports = classifyReports(matchStations(parsed, [cincinnati], 'iem'))
  assert.deepEqual(
    reports.map((r) => [r.report_type, r.high_temp_f]),
    [
      ['final', 68],
      ['correction', 69],
      ['correction', 70],
    ],
  )
  assert.equal(servedRecord(reports)?.high_temp_f, 68)
})

function match(text: string): string[] {
  return matchStations(parseClimateText(text).reports, STATIONS, 'iem').map((r) => r.station_code)
}

test('finds the station by product line and headline, and stores no other places', () => {
  const houston = (name: string): string => productText({ pil: 'CLIHOU', summaries: [{ ...MIAMI, name }] })
  assert.deepEqual(match(houston('HOUSTON/HOBBY AIRPORT')), ['HOU'])
  assert.deepEqual(match(houston('HOUSTON INTERCONTINENTAL')), [])
  assert.deepEqual(match(productText({ pil: 'CLIXYZ', summaries: [MIAMI] })), [])
  const both = productText({ summaries: [MIAMI, { ...MIAMI, name: 'MIAMI BEACH' }] })
  assert.deepEqual(match(both), [])
})

test('matches the headline that each station has in its reports', () => {
  const headlines: Record<string, string> = {
    NYC: 'CENTRAL PARK NY',
    MDW: 'CHICAGO-MIDWAY',
    MIA: 'MIAMI',
    AUS: 'AUSTIN BERGSTROM',
    DEN: 'DENVER CO',
    PHL: 'PHILADELPHIA PA',
    LAX: 'LOS  ANGELES INTL AIRPORT CA',
    ATL: 'ATLANTA',
    BOS: 'BOSTON MA',
    DFW: 'DALLAS/FORT WORTH',
    DCA: 'WASHINGTON NATIONAL DC',
    HOU: 'HOUSTON/HOBBY AIRPORT',
    LAS: 'LAS VEGAS NV',
    MSP: 'TWIN CITIES MN',
    MSY: 'NEW ORLEANS',
    OKC: 'OKLAHOMA CITY',
    PHX: 'PHOENIX AZ',
    SAT: 'SAN ANTONIO',
    SEA: 'SEATTLE-TACOMA WA AIRPORT',
    SFO: 'SAN FRANCISCO AIRPORT',
  }
  assert.deepEqual(Object.keys(headlines).toSorted(), STATIONS.map(({ code }) => code).toSorted())
  for (const [code, name] of Object.entries(headlines)) {
    const [first] = stored(productText({ pil: `CLI${code}`, summaries: [{ ...MIAMI, name }] }))
    assert.equal(first?.station_code, code)
  }
})

const temperature = fc.option(fc.integer({ min: 60, max: 62 }), { nil: null })
const anyReport = fc
  .record({
    high_temp_f: temperature,
    low_temp_f: temperature,
    report_type: fc.constantFrom('final', 'preliminary'),
    source: fc.constantFrom('nws', 'iem'),
    issued_at: fc.nat(8),
    is_correction: fc.boolean(),
  })
  .map((changes) => report({ ...changes, product_id: `p${changes.issued_at}` }))
const anyReports = fc.uniqueArray(anyReport, { maxLength: 8, selector: ({ product_id }) => product_id })

test('classifies reports equally in any order, also if some were classified before', () => {
  const cases = anyReports.chain((reports) =>
    fc.record({
      reports: fc.constant(reports),
      shuffled: fc.shuffledSubarray(reports, { minLength: reports.length }),
      earlier: fc.subarray(reports),
    }),
  )
  fc.assert(
    fc.property(cases, ({ reports, shuffled, earlier }) => {
      const once = classifyReports(reports)
      assert.deepEqual(classifyReports(shuffled), once)
      const before = new Map(classifyReports(earlier).map((each) => [each.product_id, each]))
      const again = shuffled.map((each) => before.get(each.product_id) ?? each)
      assert.deepEqual(classifyReports(again), once)
      assert.deepEqual(classifyReports(once), once)
    }),
    { numRuns: 300 },
  )
})

test('serves each value from the first non-preliminary report that states it, or none', () => {
  fc.assert(
    fc.property(anyReports, (reports) => {
      const classified = classifyReports(reports)
      const settling = classified.filter(({ report_type }) => report_type !== 'preliminary')
      const served = servedRecord(classified)
      if (served === undefined || settling.length === 0) return
      assert.notEqual(served.report_type, 'preliminary')
      for (const field of ['high_temp_f', 'low_temp_f'] as const) {
        const first = settling.find((r) => r[field] !== null)?.[field] ?? null
        assert.ok(served[field] === null || served[field] === first)
      }
    }),
    { numRuns: 500 },
  )
})
