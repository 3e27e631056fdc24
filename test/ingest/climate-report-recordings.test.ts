import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseClimateText } from '../../server/ingest/climate-reports/parse.ts'
import { wrapped } from '../support/climate-text.ts'
import { realDataPath } from '../support/real-data.ts'

interface ExpectedProduct {
  readonly error?: string
  readonly wmo: string
  readonly office: string
  readonly ddhhmm: string
  readonly bbb: string | null
  readonly pil: string
  readonly valid_as_of: string | null
  readonly first_label: string
  readonly entries: readonly {
    readonly cli_station: string
    readonly cli_valid: string
    readonly high: number | null
    readonly low: number | null
  }[]
}

/**
 * Differences between the parser and the recorded decoding, and which is right. CLIPPG: the recorded decoder stops at a
 * table heading with single blanks. The text says plainly TODAY, maximum 89 and minimum 77 for 2020-12-28: the
 * parser is right.
 */
const DIFFERENCES = new Map([
  ['CLIPPG.txt', [{ cli_station: 'PAGO PAGO AIRPORT', cli_valid: '2020-12-28', high: 89, low: 77 }]],
])

const REPORTS_DIR = realDataPath('climate-reports')
const SKIP = REPORTS_DIR === undefined ? { skip: 'real recordings not present' } : {}

function realText(name: string): string {
  const path = realDataPath('climate-reports', name)
  assert.ok(path !== undefined, `${name} is missing`)
  return readFileSync(path, 'latin1')
}

function expectedProducts(): Map<string, ExpectedProduct> {
  const products: Record<string, ExpectedProduct> = JSON.parse(realText('expected.json'))
  return new Map(Object.entries(products))
}

function issued(name: string): string {
  const [report] = parseClimateText(realText(name)).reports
  assert.ok(report !== undefined)
  return new Date(report.issued_at).toISOString()
}

test('reads all real products as recorded, but for the one listed difference', SKIP, () => {
  const expected = expectedProducts()
  assert.equal(expected.size, 26)
  const differing: string[] = []
  for (const [name, product] of expected) {
    const { reports, errors } = parseClimateText(realText(name))
    assert.deepEqual(errors, [], name)
    const read = reports.map((report) => ({
      cli_station: report.stationName,
      cli_valid: report.observation_date,
      high: report.high_temp_f,
      low: report.low_temp_f,
    }))
    if (product.error !== undefined) {
      differing.push(name)
      assert.deepEqual(read, DIFFERENCES.get(name), name)
      continue
    }
    const recorded = product.entries.map(({ cli_station, cli_valid, high, low }) => ({
      cli_station,
      cli_valid,
      high,
      low,
    }))
    assert.deepEqual(read, recorded, name)
    const isPreliminary = product.valid_as_of !== null || product.first_label === 'TODAY'
    for (const report of reports) {
      assert.equal(report.report_type, isPreliminary ? 'preliminary' : 'final', name)
      const [time, ...rest] = report.product_id.split('-')
      assert.equal(time?.slice(6), product.ddhhmm, name)
      const bbb = product.bbb === null ? [] : [product.bbb]
      assert.deepEqual(rest, [product.office, product.wmo, product.pil, ...bbb], name)
    }
  }
  assert.deepEqual(differing, [...DIFFERENCES.keys()])
})

test('distinguishes preliminary, final and corrected real products', SKIP, () => {
  const kinds = [...expectedProducts().keys()].map((name) => {
    const [report] = parseClimateText(realText(name)).reports
    return [name, report?.report_type, report?.is_correction] as const
  })
  const preliminary = kinds.filter(([, kind]) => kind === 'preliminary').map(([name]) => name)
  assert.deepEqual(
    preliminary.toSorted(),
    'DRT ECP FFC ICT JNU MSO PPG PPG3'.split(' ').map((station) => `CLI${station}.txt`),
  )
  assert.deepEqual(
    kinds.filter(([, , isCorrection]) => isCorrection).map(([name]) => name),
    ['CLIEWN.txt'],
  )
})

test('resolves the issue time of real products, also where header and local line disagree', SKIP, () => {
  // Western preliminary reports carry the next day's UTC date.
  assert.equal(issued('CLIJNU.txt'), '2013-07-01T00:42:00.000Z')
  assert.equal(issued('CLIEWN.txt'), '2014-10-18T13:30:00.000Z')
  // The header says the 22nd, six days before the day reported; the local line says 5 PM on the 28th, −11 h.
  assert.equal(issued('CLIPPG.txt'), '2020-12-29T04:00:00.000Z')
})

test('reads a blank instead of the next column when a real product loses its value', SKIP, () => {
  for (const [name, product] of expectedProducts()) {
    if (product.error === undefined && product.entries.some(({ high }) => high === null)) continue
    const blanked = realText(name).replaceAll(
      /^(\s*MAXIMUM\s+)(-?\d+\(?[A-Z]?\)?)(?=\s)(?!\s*\(F\))/gm,
      (...match) => {
        const [, before = '', value = ''] = match as string[]
        return before + ' '.repeat(value.length)
      },
    )
    assert.notEqual(blanked, realText(name))
    const { reports, errors } = parseClimateText(blanked)
    assert.deepEqual(errors, [], name)
    for (const report of reports) assert.equal(report.high_temp_f, null, name)
  }
})

test('reads the same from the raw line ends, the archive wrapping and one long text', SKIP, () => {
  const names = [...expectedProducts().keys()]
  const plain = names.flatMap((name) => parseClimateText(realText(name)).reports)
  const archive = wrapped(...names.map((name) => realText(name)))
  assert.deepEqual(parseClimateText(archive), { reports: plain, errors: [] })
  assert.deepEqual(parseClimateText(archive.replaceAll('\n', '\r\r\n')), { reports: plain, errors: [] })
})
