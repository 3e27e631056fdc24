// decisions.md, "Climate": a test for each sentence, in order. Products pass through the ingest, from their text through the
// store to the response.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseClimateText } from '../../server/ingest/climate-reports/parse.ts'
import { classifyReports, matchStations } from '../../server/ingest/climate-reports/station-reports.ts'
import { writeClimateEstimates, writeClimateReports } from '../../server/storage/climate-store.ts'
import { STATIONS } from '../../shared/stations.ts'
import { productText, wrapped } from '../support/climate-text.ts'
import { type JsonRecord, serviceOfThisFile } from '../support/conformance-service.ts'

const file = serviceOfThisFile()

/** Ingests products of Miami one after the other, as the live feed delivers them. */
async function ingest(...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    const { reports, errors } = parseClimateText(wrapped(text))
    assert.deepEqual(errors, [])
    const matched = matchStations(reports, STATIONS, 'nws')
    assert.equal(matched.length, reports.length)
    await file.service.postgres.transaction((transaction) =>
      writeClimateReports(transaction, matched, (stored) => classifyReports(stored)),
    )
  }
}

async function estimate(date: string, highF: number): Promise<void> {
  const record = {
    station_code: 'MIA',
    observation_date: date,
    high_temp_f: highF,
    low_temp_f: 70,
    received_at: 0,
  }
  await file.service.postgres.transaction((transaction) => writeClimateEstimates(transaction, [record]))
}

interface ProductOptions {
  /** Day of August 2026 that is reported, and the WMO header's day, hour and minute. */
  readonly day: number
  readonly header: string
  readonly highF: number
  /** `VALID … AS OF …`: what makes a report preliminary. */
  readonly validAsOf?: string
  readonly isCorrected?: boolean
}

function product({ day, header, highF, validAsOf, isCorrected = false }: ProductOptions): string {
  return productText({
    header: `CDUS42 KMFL ${header}`,
    title: isCorrected ? 'CLIMATE REPORT...CORRECTED' : 'CLIMATE REPORT ',
    issued: `${validAsOf === undefined ? '424 AM' : '430 PM'} EDT SUN AUG ${validAsOf === undefined ? day + 1 : day} 2026`,
    summaries: [
      {
        name: 'MIAMI',
        date: `AUGUST ${day} 2026`,
        maximum: `         ${highF}   3:25 PM  95    1952  90      0       93        `,
        ...(validAsOf === undefined ? {} : { validAsOf, label: 'TODAY' }),
      },
    ],
  })
}

const AFTERNOON = 'VALID TODAY AS OF 0400 PM LOCAL TIME.'

async function served(day: number): Promise<readonly (readonly unknown[])[]> {
  return described(`from=2026-08-${day}&to=2026-08-${day}`)
}

async function revisions(day: number): Promise<readonly (readonly unknown[])[]> {
  return described(`from=2026-08-${day}&to=2026-08-${day}&revisions=true`)
}

async function described(query: string): Promise<readonly (readonly unknown[])[]> {
  const rows = await file.service.rows(`/api/v1/climate?station=MIA&${query}`)
  return rows.map((row) => [row['report_type'], row['high_temp_f']])
}

test('of a date the record of highest priority is served: final, correction, preliminary, estimated', async () => {
  await estimate('2026-08-10', 80)
  assert.deepEqual(await served(10), [['estimated', 80]])
  await ingest(product({ day: 10, header: '102030', highF: 81, validAsOf: AFTERNOON }))
  assert.deepEqual(await served(10), [['preliminary', 81]])
  await ingest(product({ day: 10, header: '111500', highF: 83, isCorrected: true }))
  assert.deepEqual(await served(10), [['correction', 83]])
  await ingest(product({ day: 10, header: '110824', highF: 82 }))
  assert.deepEqual(await served(10), [['final', 82]])
})

test('every product is kept, and revisions=true returns all of them', async () => {
  assert.deepEqual(await revisions(10), [
    ['preliminary', 81],
    ['final', 82],
    ['correction', 83],
    ['estimated', 80],
  ])
})

test('of equals the first issued is served, in whatever order they come in', async () => {
  const early = product({ day: 11, header: '120824', highF: 90 })
  const late = product({ day: 11, header: '121300', highF: 90 })
  await ingest(late, early)
  const [record] = await file.service.rows('/api/v1/climate?station=MIA&from=2026-08-11&to=2026-08-11')
  assert.equal(record?.['issued_at'], '2026-08-12T08:24:00Z')
  assert.deepEqual(await revisions(11), [
    ['final', 90],
    ['final', 90],
  ])
})

test("the kind comes from the product's text, not from its time stamp", async () => {
  // Both are stamped in the same hour of the same evening; one states that its day is not over.
  await ingest(
    product({ day: 12, header: '122200', highF: 88, validAsOf: AFTERNOON }),
    product({
      day: 13,
      header: '132200',
      highF: 89,
      isCorrected: false,
      validAsOf: 'VALID AS OF 0600 PM LOCAL TIME.',
    }),
  )
  assert.deepEqual([await served(12), await served(13)], [[['preliminary', 88]], [['preliminary', 89]]])
  await ingest(product({ day: 12, header: '130824', highF: 87 }))
  assert.deepEqual(await served(12), [['final', 87]])
})

test('a second final with other values is a correction, also when it does not say so', async () => {
  await ingest(
    product({ day: 14, header: '150824', highF: 90 }),
    product({ day: 14, header: '150910', highF: 85 }),
  )
  assert.deepEqual(await revisions(14), [
    ['final', 90],
    ['correction', 85],
  ])
  assert.deepEqual(await served(14), [['final', 90]])
})

const GAPS = '/api/v1/analysis/climate-gaps'

/** The last missing date of a station that has no records at all. */
async function lastGapEnd(station: string, from: string): Promise<unknown> {
  const gaps = await file.service.rows(`${GAPS}?station=${station}&from=${from}`)
  return gaps.at(-1)?.['gap_end']
}

test('the climate day is midnight to midnight local standard time all year', async (t) => {
  for (const [station, now, last] of [
    // New York's clocks show 01:00 when the day of standard time ends in summer.
    ['DCA', '2026-07-10T04:59:59Z', '2026-07-08'],
    ['DCA', '2026-07-10T05:00:00Z', '2026-07-09'],
    ['DCA', '2026-01-10T04:59:59Z', '2026-01-08'],
    ['DCA', '2026-01-10T05:00:00Z', '2026-01-09'],
    ['LAX', '2026-07-10T07:59:59Z', '2026-07-08'],
    ['LAX', '2026-07-10T08:00:00Z', '2026-07-09'],
  ] as const) {
    t.mock.timers.enable({ apis: ['Date'], now: Date.parse(now) })
    assert.equal(await lastGapEnd(station, '2026-01-01'), last, `${station} ${now}`)
    t.mock.timers.reset()
  }
})

async function gapsOf(query: string): Promise<readonly (readonly unknown[])[]> {
  const gaps = await file.service.rows(`${GAPS}?station=MIA&${query}`)
  return gaps.map((gap: JsonRecord) => [gap['gap_start'], gap['gap_end'], gap['missing_days']])
}

test('a gap is a date for which no record at all exists', async () => {
  await ingest(product({ day: 20, header: '210824', highF: 90 }))
  await ingest(product({ day: 22, header: '222030', highF: 90, validAsOf: AFTERNOON }))
  await estimate('2026-08-23', 90)
  assert.deepEqual(await gapsOf('from=2026-08-19&to=2026-08-25'), [
    ['2026-08-19', '2026-08-19', 1],
    ['2026-08-21', '2026-08-21', 1],
    ['2026-08-24', '2026-08-25', 2],
  ])
})

test('with official=true a date that has none but an estimate is a gap too', async () => {
  assert.deepEqual(await gapsOf('from=2026-08-19&to=2026-08-25&official=true'), [
    ['2026-08-19', '2026-08-19', 1],
    ['2026-08-21', '2026-08-21', 1],
    ['2026-08-23', '2026-08-25', 3],
  ])
  const without = await gapsOf('from=2026-08-19&to=2026-08-25')
  assert.deepEqual(await gapsOf('from=2026-08-19&to=2026-08-25&official=false'), without)
})

test("dates after the station's last closed climate day are not gaps", async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-08-24T12:00:00Z') })
  assert.deepEqual(await gapsOf('from=2026-08-22&to=2026-08-30'), [])
  t.mock.timers.setTime(Date.parse('2026-08-26T12:00:00Z'))
  assert.deepEqual(await gapsOf('from=2026-08-22&to=2026-08-30'), [['2026-08-24', '2026-08-25', 2]])
})
