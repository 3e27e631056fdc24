// How many bytes of a file the worker reads for a request.

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { test, type TestContext } from 'node:test'
import type { LobQuery } from '../../shared/lob-task.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { bookEvent, DAY_START, HOUR, SERIES, writeEvents } from '../support/recorded-events.ts'
import { lakeOfThisFile, temporaryDirectory } from '../support/temporary-lake.ts'

const DATE = '2026-07-01'
const MARKETS = 10
const EVENTS_PER_HOUR = 300

/** Ten equally busy markets all day; row groups hold a few hundred rows so that there is something to skip. */
async function writeBusyLake(lake: string): Promise<void> {
  const events = Array.from({ length: 24 * EVENTS_PER_HOUR }, (_, index) => {
    const ts = DAY_START + (BigInt(index) * HOUR) / BigInt(EVENTS_PER_HOUR)
    return Array.from({ length: MARKETS }, (_unused, market) => {
      const id = `${SERIES}-26JUL01-B${70 + market}.5`
      const qty = ((index * 7919 + market) % 100_000) * 1_000_000
      return index === 0
        ? bookEvent(id, DAY_START, 0)
        : bookEvent(
            id,
            ts + BigInt((index * 104_729) % 1_000_000),
            1,
            index & 1,
            (1 + (index % 98)) * 100,
            qty,
          )
    })
  }).flat()
  await writeEvents(lake, events, { bounds: { groupRows: EVENTS_PER_HOUR } }, DAY_START + 24n * HOUR - 1n)
}

const BUSY = lakeOfThisFile(writeBusyLake)

/** Bytes read from files while a query is answered, with the footer already cached. */
async function bytesRead(t: TestContext, lake: string, query: Partial<LobQuery>): Promise<number> {
  const whole = lobQuery({ series: SERIES, dates: [DATE], intervalS: 60, format: 'ndjson', ...query })
  await collectLob(lake, whole)
  let bytes = 0
  const readSync = fs.readSync
  const counting = t.mock.method(fs, 'readSync', (...args: Parameters<typeof readSync>) => {
    const count = readSync(...args)
    bytes += count
    return count
  })
  syncBuiltinESMExports()
  try {
    const { failure, endRows } = await collectLob(lake, whole)
    assert.equal(failure, undefined)
    assert.ok(endRows! > 0)
  } finally {
    counting.mock.restore()
    syncBuiltinESMExports()
  }
  assert.ok(bytes > 0)
  return bytes
}

test('an hour is read without the hours before it', async (t) => {
  const lake = BUSY.path
  const day = await bytesRead(t, lake, {})
  const first = await bytesRead(t, lake, { hour: 0 })
  const last = await bytesRead(t, lake, { hour: 23 })
  assert.ok(last <= first * 1.5, `hour 23 reads ${last} bytes, hour 0 ${first}`)
  assert.ok(last <= day / 10, `hour 23 reads ${last} bytes, the day ${day}`)
})

test('one market of ten is read without most of the others', async (t) => {
  const lake = BUSY.path
  const all = await bytesRead(t, lake, {})
  const one = await bytesRead(t, lake, { series: null, market: `${SERIES}-26JUL01-B74.5` })
  assert.ok(one <= all / 4, `one market reads ${one} bytes, ten ${all}`)
})

test('hourly snapshots are read from the keyframes, not from the rows between them', async (t) => {
  const lake = await temporaryDirectory(t)
  const id = `${SERIES}-26JUL01-B70.5`
  const events = Array.from({ length: 24 * 1000 }, (_, index) =>
    index === 0
      ? bookEvent(id, DAY_START, 0)
      : bookEvent(
          id,
          DAY_START + (BigInt(index) * HOUR) / 1000n,
          1,
          0,
          (1 + (index % 98)) * 100,
          index * 1_000_000,
        ),
  )
  await writeEvents(lake, events, { bounds: { groupRows: 250 } }, DAY_START + 24n * HOUR - 1n)
  const everySecond = await bytesRead(t, lake, { intervalS: 1 })
  const everyHour = await bytesRead(t, lake, { intervalS: 3600 })
  assert.ok(everyHour < everySecond / 2, `hourly reads ${everyHour} bytes, every second ${everySecond}`)
})

test('a cached footer is not read again', async (t) => {
  const lake = BUSY.path
  const hour = await bytesRead(t, lake, { hour: 5, intervalS: 3600 })
  const size = fs.statSync(`${lake}/lob/source=kalshi/series=${SERIES}/date=${DATE}/lob.parquet`).size
  assert.ok(hour < size / 20, `${hour} of ${size} bytes were read for one hour`)
})
