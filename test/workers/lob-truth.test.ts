// The truth test: with any layout of the file, the worker's answer equals the naive reference, byte for byte in json, ndjson
// and csv and value for value in parquet.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import { bookEvents, type BookScript } from '../support/book-scripts.ts'
import { runs } from '../support/effort.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { type NaiveNullRow, naiveSnapshots, withNulls } from '../support/naive-lob.ts'
import { PARQUET_READERS, rowText } from '../support/parquet-readers.ts'
import {
  csvOf,
  DATES,
  dateStartNs,
  DAY_NS,
  expectedRows,
  FIRST_DATE,
  ndjsonOf,
  type Request,
  requests,
  SERIES,
  type Shape,
  shapes,
  writeLake,
} from '../support/truth-lakes.ts'

/** More runs for a longer search: `TRUTH_RUNS=2000 npm test`. */
const RUNS = runs(6, 200, 'TRUTH_RUNS')

async function bodyOf(lake: string, query: LobQuery): Promise<string> {
  const answer = await collectLob(lake, query)
  assert.equal(answer.failure, undefined, answer.failure?.detail)
  assert.equal(answer.endRows, answer.head?.rows)
  return answer.body.toString()
}

/** A row as parquet readers return it: 64-bit integers as text. */
function parquetText(row: NaiveNullRow): string {
  const levels = (side: NaiveNullRow['bids']): object[] =>
    side.map(({ price, qty }) => ({ price, qty: BigInt(qty) }))
  return rowText({ ...row, ts: BigInt(row.ts), bids: levels(row.bids), asks: levels(row.asks) })
}

test('every format, with zeros or nulls, equals the naive reference with any layout of the file', async () => {
  await fc.assert(
    fc.asyncProperty(
      bookEvents({ marketCount: 3, startNs: dateStartNs(FIRST_DATE), hours: 48 }),
      shapes,
      requests,
      check,
    ),
    { numRuns: RUNS },
  )
})

test('the answer for a recording that the lake writer wrote equals the naive reference', async () => {
  const scripts = bookEvents({
    marketCount: 3,
    startNs: dateStartNs(FIRST_DATE),
    hours: 48,
    mayGoNegative: false,
  })
  await fc.assert(fc.asyncProperty(scripts, requests, checkRecorded), { numRuns: RUNS })
})

/** The recording covers both dates to their ends. */
async function checkRecorded({ events }: BookScript, request: Request): Promise<void> {
  const lake = mkdtempSync(join(tmpdir(), 'bookcast-truth-'))
  try {
    const writer = new LobRecordingWriter({ lake, source: 'kalshi' })
    for (const event of events) {
      const { marketId, ts, side, price } = event
      const qty = Number(event.qty)
      writer.append(SERIES, { marketId, ts, recvTs: ts, seq: 0n, event: event.event, side, price, qty })
    }
    writer.cover(SERIES, dateStartNs(FIRST_DATE) + 2n * DAY_NS - 1n)
    await writer.finish()
    for (const hour of request.hour === null ? [null] : [null, request.hour]) {
      const query = lobQuery({
        series: SERIES,
        dates: DATES,
        intervalS: Math.max(request.intervalS, 7),
        levels: request.levels,
        hour,
        format: 'ndjson',
      })
      const rows = DATES.flatMap((date) =>
        naiveSnapshots(events, {
          dateStartMs: Number(dateStartNs(date) / 1_000_000n),
          intervalS: query.intervalS,
          levels: query.levels,
          coversTo: dateStartNs(date) + DAY_NS - 1n,
          ...(hour === null ? {} : { hour }),
        }),
      )
      assert.equal(await bodyOf(lake, query), ndjsonOf(rows))
    }
  } finally {
    rmSync(lake, { recursive: true, force: true })
  }
}

async function check(script: BookScript, shape: Shape, request: Request): Promise<void> {
  const lake = mkdtempSync(join(tmpdir(), 'bookcast-truth-'))
  try {
    const { events } = script
    writeLake(lake, events, shape)
    const known = events.some(({ marketId }) => marketId === request.market)
    const query = lobQuery({
      market: known ? request.market : null,
      series: known ? null : SERIES,
      dates: request.isRange ? DATES : [DATES[1]!],
      intervalS: request.intervalS,
      levels: request.levels,
      hour: request.hour,
      format: 'ndjson',
    })
    const rows = expectedRows(events, shape, query)
    if (rows.length > 50_000) {
      const narrow = { ...query, hour: 12 }
      assert.equal(await bodyOf(lake, narrow), ndjsonOf(expectedRows(events, shape, narrow)))
      return
    }
    assert.equal(await bodyOf(lake, query), ndjsonOf(rows))
    assert.equal(await bodyOf(lake, { ...query, format: 'json' }), JSON.stringify(rows))
    assert.equal(await bodyOf(lake, { ...query, format: 'csv' }), csvOf(rows, query.levels))
    const withoutZeros = rows.map(withNulls)
    const nulls = { ...query, nulls: true }
    assert.equal(await bodyOf(lake, nulls), ndjsonOf(withoutZeros))
    assert.equal(await bodyOf(lake, { ...nulls, format: 'json' }), JSON.stringify(withoutZeros))
    assert.equal(await bodyOf(lake, { ...nulls, format: 'csv' }), csvOf(withoutZeros, query.levels))
    const { body } = await collectLob(lake, { ...nulls, format: 'parquet' })
    assert.deepEqual(await PARQUET_READERS['hyparquet']!(body), withoutZeros.map(parquetText))
  } finally {
    rmSync(lake, { recursive: true, force: true })
  }
}
