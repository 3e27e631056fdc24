// The books at one instant: against the naive reference, at nanoseconds and by either clock; against the stream at whole
// seconds; and how much of the file is read.

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdtempSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { groupedBy } from '../../shared/grouped-by.ts'
import type { LobInstant, LobQuery } from '../../shared/lob-task.ts'
import { bookEvents, withKeyframes } from '../support/book-scripts.ts'
import { IS_FULL_EFFORT, runs } from '../support/effort.ts'
import { runImport } from '../support/import-harness.ts'
import { readRows } from '../support/lob-rows.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { type NaiveEvent, naiveRowAt } from '../support/naive-lob.ts'
import { realDataPath } from '../support/real-data.ts'
import { bookEvent, DAY_START, HOUR, writeEvents } from '../support/recorded-events.ts'
import { lakeOfThisFile, temporaryDirectory } from '../support/temporary-lake.ts'
import { DATES, dateStartNs, DAY_NS, FIRST_DATE, SERIES, shapes, writeLake } from '../support/truth-lakes.ts'

const RUNS = runs(3, 200, 'TRUTH_RUNS')
/** Instants per lake; 10,000 in all with full effort. */
const INSTANTS = runs(20, 50)
/** Two streams at interval 1 take as long as hundreds of instants, so there are fewer lakes with more instants each. */
const STREAMED_RUNS = runs(3, 20, 'TRUTH_RUNS')
const STREAMED_INSTANTS = runs(20, 500)
const REAL_INSTANTS = runs(40, 1_000)

interface Record {
  readonly ts: bigint
  readonly market_id: string
  readonly provenance: { readonly [Name in string]: bigint | string | null }
}

/** Parses integers beyond the exact range of doubles as bigints. */
function parseExact(text: string): Record[] {
  const marked = text.replaceAll(/:(\d{16,})(?=[,}\]])/g, ':"@$1"')
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === 'string' && /^@\d+$/.test(value) ? BigInt(value.slice(1)) : value,
  ) as Record[]
}

async function booksAt(lake: string, at: LobInstant, query: Partial<LobQuery> = {}): Promise<Record[]> {
  const date = new Date(Number(BigInt(at.ns) / 1_000_000n)).toISOString().slice(0, 10)
  const answer = await collectLob(
    lake,
    lobQuery({ series: SERIES, dates: [date], intervalS: 1, ...query, at }),
  )
  // If no market of the date is ever known, the date has no file.
  if (answer.failure?.code === 'no_data') return []
  assert.equal(answer.failure, undefined, answer.failure?.detail)
  const records = parseExact(answer.body.toString())
  assert.equal(answer.endRows, records.length)
  assert.equal(answer.head?.rows, records.length)
  return records
}

type TimedEvent = NaiveEvent & { readonly recvTs: bigint }

/** The reference's book of every market, from the events of one date up to the instant. */
function expectedAt(events: readonly TimedEvent[], date: string, { ns, by }: LobInstant, levels: number) {
  const start = dateStartNs(date)
  const ids = [...new Set(events.map(({ marketId }) => marketId))].toSorted()
  const counts = ({ ts, recvTs }: TimedEvent): boolean => (by === 'exchange' ? ts : recvTs) <= BigInt(ns)
  return ids.flatMap((id) => {
    const its = events.filter(({ marketId, ts }) => marketId === id && ts < start + DAY_NS)
    const row = naiveRowAt(
      its.filter(({ ts }) => ts < start),
      its.filter((event) => event.ts >= start && counts(event)),
      levels,
    )
    return row === undefined ? [] : [{ market_id: id, ...row }]
  })
}

function withoutProvenance(records: readonly Record[]): unknown[] {
  return records.map(({ provenance: _provenance, ts: _ts, ...row }) => row)
}

function instants(count: number): fc.Arbitrary<bigint[]> {
  const within = { min: 0n, max: 2n * DAY_NS - 1n }
  return fc.array(fc.bigInt(within), { minLength: count, maxLength: count })
}

/** Random instants, and instants at and just before events and receive times. */
function instantsOf(random: readonly bigint[], events: readonly TimedEvent[]): bigint[] {
  const first = dateStartNs(FIRST_DATE)
  return random.map((offset, index) => {
    const event = events[Number(offset % BigInt(Math.max(events.length, 1)))]
    if (event === undefined || index % 3 === 0) return first + offset
    return (index % 2 === 0 ? event.ts : event.recvTs) - (index % 3 === 1 ? 0n : 1n)
  })
}

const scripts = bookEvents({
  marketCount: 3,
  startNs: dateStartNs(FIRST_DATE),
  hours: 48,
  mayGoNegative: false,
})

test('the books of a recording match the reference at any nanosecond, by either clock', async () => {
  // Receive times up to two hours late, and up to a minute early because clocks differ.
  const delays = fc.array(fc.bigInt({ min: -60n * 1_000_000_000n, max: 2n * HOUR }), {
    minLength: 1,
    maxLength: 20,
  })
  let compared = 0
  await fc.assert(
    fc.asyncProperty(scripts, delays, instants(INSTANTS), async ({ events: script }, late, random) => {
      const events = script.map((event, index) => ({
        ...event,
        recvTs: event.ts + late[index % late.length]!,
      }))
      const lake = mkdtempSync(join(tmpdir(), 'bookcast-at-'))
      try {
        const writer = new LobRecordingWriter({ lake, source: 'kalshi' })
        for (const event of events) writer.append(SERIES, { ...event, qty: Number(event.qty), seq: 9n })
        writer.cover(SERIES, dateStartNs(FIRST_DATE))
        writer.cover(SERIES, dateStartNs(DATES[1]!) + DAY_NS - 1n)
        await writer.finish()
        for (const instant of instantsOf(random, events)) {
          const date = DATES[instant < dateStartNs(DATES[1]!) ? 0 : 1]!
          if (instant < dateStartNs(FIRST_DATE) || instant >= dateStartNs(DATES[1]!) + DAY_NS) continue
          for (const by of ['exchange', 'received'] as const) {
            const at = { ns: String(instant), by }
            const records = await booksAt(lake, at, { levels: 5 })
            assert.deepEqual(withoutProvenance(records), expectedAt(events, date, at, 5), `${by} ${instant}`)
            compared += records.length
          }
        }
      } finally {
        rmSync(lake, { recursive: true })
      }
    }),
    // The same lakes each time in the quick gear, so that some have books.
    { numRuns: RUNS, ...(IS_FULL_EFFORT ? {} : { seed: 4 }) },
  )
  assert.ok(compared > 0, `${compared} books`)
})

test('the books of files of any writer match the reference and, at whole seconds, the last row of the stream', async () => {
  await fc.assert(
    fc.asyncProperty(
      scripts,
      shapes,
      instants(STREAMED_INSTANTS),
      async ({ events: script }, shape, random) => {
        const events = script.map((event) => ({ ...event, recvTs: event.ts }))
        const lake = mkdtempSync(join(tmpdir(), 'bookcast-at-'))
        try {
          writeLake(lake, script, shape)
          const written = shape.hasKeyframes ? withKeyframes(script, dateStartNs(FIRST_DATE), 48) : script
          for (const date of DATES) {
            const start = dateStartNs(date)
            if (!written.some(({ ts }) => ts >= start && ts < start + DAY_NS)) continue
            const query = {
              series: SERIES,
              dates: [date],
              intervalS: 1,
              format: 'ndjson',
              levels: 3,
            } as const
            const stream = (await collectLob(lake, lobQuery(query))).body.toString().split('\n')
            const rowsAt = groupedBy(stream, (row) => row.slice(0, row.indexOf(',')))
            const coversTo = written.reduce(
              (last, { ts }) => (ts < start + DAY_NS && ts > last ? ts : last),
              0n,
            )
            for (const instant of instantsOf(random, events)) {
              if (instant < start || instant > coversTo) continue
              const at = { ns: String(instant), by: 'exchange' } as const
              const records = await booksAt(lake, at, { levels: 3 })
              assert.deepEqual(withoutProvenance(records), expectedAt(events, date, at, 3), String(instant))
              const whole = instant - (instant % 1_000_000_000n)
              const atSecond = await booksAt(lake, { ...at, ns: String(whole) }, { levels: 3 })
              const its = rowsAt.get(`{"ts":${whole}`) ?? []
              assert.deepEqual(withoutProvenance(atSecond), withoutProvenance(parseExact(`[${its.join()}]`)))
            }
          }
        } finally {
          rmSync(lake, { recursive: true })
        }
      },
    ),
    { numRuns: STREAMED_RUNS },
  )
})

test('the books of a real recording match the reference at any nanosecond, by either clock', async (t) => {
  const path = realDataPath('order-books', 'kalshi', 'INXD-23AUG31-B4512.part1.ndjson.gz')
  if (path === undefined) return t.skip('real recordings not present')
  const lake = await temporaryDirectory(t)
  const { files } = await runImport(lake, 'kalshi', { paths: [path] })
  const rows = await readRows(files[0]!.path)
  const events = rows
    .filter(({ seq }) => seq !== 0n)
    .map(({ market_id: marketId, recv_ts: recvTs, ...row }) => ({ marketId, recvTs, ...row }))
  const first = events[0]!.ts
  const span = Number(events.at(-1)!.ts - first)
  for (let number = 0; number < REAL_INSTANTS; number++) {
    const ns = String(first + BigInt(Math.floor((span * (number + 0.37)) / REAL_INSTANTS)))
    for (const by of ['exchange', 'received'] as const) {
      const records = await booksAt(lake, { ns, by }, { series: 'INXD', levels: 50 })
      assert.deepEqual(
        withoutProvenance(records),
        expectedAt(events, '2023-08-31', { ns, by }, 50),
        `${by} ${ns}`,
      )
    }
  }
})

const ID = `${SERIES}-26JUL01-B70.5`
const SECOND = 1_000_000_000n

/** One market with a change a minute from 00:30 on, a gap at 20:00:30 and a bid above the ask at 19:00:30. */
const MINUTES = lakeOfThisFile(async (lake) => {
  const events = Array.from({ length: 24 * 60 - 30 }, (_, index) => {
    const ts = DAY_START + HOUR / 2n + BigInt(index) * 60n * SECOND
    if (index === 0) return bookEvent(ID, ts, 0)
    const minute = index + 30
    if (minute === 19 * 60) return bookEvent(ID, ts + 30n * SECOND, 1, 0, 9_000, 5_000_000)
    if (minute === 20 * 60) return bookEvent(ID, ts + 30n * SECOND, 3)
    return bookEvent(ID, ts, 1, index & 1, (index & 1) === 0 ? 4_000 : 6_000, (1 + index) * 1_000_000)
  })
  await writeEvents(lake, events, {}, DAY_START + 23n * HOUR)
})

async function provenanceAt(offset: bigint, by: LobInstant['by'] = 'exchange', closesAtMs = {}) {
  const lake = MINUTES.path
  const ns = String(DAY_START + offset)
  const query = lobQuery({ series: SERIES, dates: ['2026-07-01'], intervalS: 1, at: { ns, by } })
  const catalogue = { series: null, markets: null, closesAtMs }
  const answer = await collectLob(lake, query, { catalogue })
  return parseExact(answer.body.toString())[0]?.provenance
}

test('provenance states the keyframe, the last event, the number of replayed events and the age', async () => {
  const at = DAY_START + 5n * HOUR
  const found = await provenanceAt(5n * HOUR + 150n * SECOND + 7n)
  assert.deepEqual(found, {
    file: 'lob/source=kalshi/series=KXHIGHNY/date=2026-07-01/lob.parquet',
    row_group: 5,
    keyframe_ts: at,
    last_event_ts: at + 120n * SECOND,
    last_received_ts: at + 120n * SECOND + 5n,
    sequence: 7,
    // The clear and two levels of the keyframe, and the changes of minutes 0, 1 and 2.
    events_applied: 6,
    age_ms: 30_000,
    state: 'known',
  })
  const received = await provenanceAt(5n * HOUR + 120n * SECOND + 4n, 'received')
  assert.equal(received?.['last_event_ts'], at + 60n * SECOND)
})

test('the state says whether a book is known, and a book that is not yet known has no record', async () => {
  assert.equal(await provenanceAt(HOUR / 4n), undefined)
  assert.equal((await provenanceAt(HOUR))?.['state'], 'known')
  assert.equal((await provenanceAt(19n * HOUR + 40n * SECOND))?.['state'], 'crossed')
  assert.equal((await provenanceAt(20n * HOUR + 31n * SECOND))?.['state'], 'gap')
  assert.equal((await provenanceAt(21n * HOUR + 31n * SECOND))?.['state'], 'gap')
  assert.equal((await provenanceAt(24n * HOUR - SECOND))?.['state'], 'not_recorded')
  const closesAtMs = { [ID]: Number((DAY_START + 2n * HOUR) / 1_000_000n) }
  const closed = await provenanceAt(3n * HOUR, 'exchange', closesAtMs)
  assert.deepEqual([closed?.['state'], closed?.['last_event_ts']], ['closed', DAY_START + 2n * HOUR])
})

test('hours after the end of the recording, a book is the last one', async (t) => {
  const lake = await temporaryDirectory(t)
  const covered = DAY_START + 2n * HOUR + HOUR / 2n
  await writeEvents(
    lake,
    [
      bookEvent(ID, DAY_START + HOUR, 0),
      bookEvent(ID, DAY_START + HOUR, 1, 0, 4_000, 3_000_000),
      bookEvent(ID, covered - SECOND, 1, 1, 6_000, 5_000_000),
    ],
    {},
    covered,
  )
  for (const by of ['exchange', 'received'] as const) {
    const [last] = await booksAt(lake, { ns: String(covered), by })
    for (const later of [covered + 1n, covered + HOUR, DAY_START + DAY_NS - 1n]) {
      const [record] = await booksAt(lake, { ns: String(later), by })
      assert.deepEqual(withoutProvenance([record!]), withoutProvenance([last!]), `${by} ${later}`)
      assert.deepEqual(
        [record?.provenance['state'], record?.provenance['last_event_ts']],
        ['not_recorded', covered - SECOND],
      )
    }
  }
})

test('an instant reads only the row groups of its hour', async (t) => {
  await provenanceAt(12n * HOUR)
  let reads = 0
  const readSync = fs.readSync
  const counting = t.mock.method(fs, 'readSync', (...args: Parameters<typeof readSync>) => {
    reads++
    return readSync(...args)
  })
  syncBuiltinESMExports()
  try {
    for (const by of ['exchange', 'received'] as const) await provenanceAt(12n * HOUR + HOUR / 2n, by)
  } finally {
    counting.mock.restore()
    syncBuiltinESMExports()
  }
  // Eight columns of one row group, twice.
  assert.equal(reads, 16)
})
