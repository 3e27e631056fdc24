// Compares /api/v1/coverage and /api/v1/gaps of a series with counts over the events of its files.

import assert from 'node:assert/strict'
import { groupedBy } from '../../shared/grouped-by.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { readFooterValue, readRows } from './lob-rows.ts'
import { naiveCoverage, naivePercentileMs } from './naive-coverage.ts'

export interface CoverageRow {
  readonly market_id: string | null
  readonly date?: string
  readonly hour?: string
  readonly state: string
  readonly condition?: string
  readonly known_s: number
  readonly gap_s: number
  readonly gaps: number
  readonly events: number
  readonly first_book_ts: number | null
  readonly snapshots: number
  readonly recv_lag_p50_ms: number | null
  readonly recv_lag_p99_ms: number | null
  readonly file: string | null
}

const SECOND_NS = 1_000_000_000n
const DAY_NS = 86_400n * SECOND_NS

export const dayStartOf = (date: string): bigint => BigInt(Date.parse(`${date}T00:00:00Z`)) * 1_000_000n

export function asker(url: string) {
  return async <Row>(query: string): Promise<Row[]> => {
    const rows: Row[] = []
    for (let next: string | undefined = `/api/v1/${query}`; next !== undefined;) {
      const response = await fetch(url + next)
      assert.equal(response.status, 200, `${next}: ${response.status === 200 ? '' : await response.text()}`)
      rows.push(...((await response.json()) as Row[]))
      next = /^<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
    }
    return rows
  }
}

/** A lag is never too small, but for rounding to three digits, and at most a tenth too large. A microsecond is none. */
function assertLag(given: number | null, lags: readonly bigint[], share: number): void {
  const exact = naivePercentileMs(lags, share)
  if (exact === null || exact <= 0.001) return assert.equal(given, null)
  assert.ok(given !== null)
  assert.ok(given >= exact * 0.99 && given <= exact * 1.1, `${given} is not ${exact}`)
}

/** Compares the hours, dates and gaps of a series with the events of its files. */
export async function compare(
  url: string,
  lake: string,
  place: {
    readonly source: 'kalshi' | 'polymarket'
    readonly series: string
    readonly dates: readonly string[]
  },
): Promise<number> {
  const ask = asker(url)
  const { source, series, dates } = place
  const query = `series=${series}&source=${source}`
  const hours = await ask<CoverageRow>(`coverage?${query}&by=hour&limit=5000`)
  const days = await ask<CoverageRow>(`coverage?${query}&by=day&limit=7`)
  const gaps = await ask<{ market_id: string; from_ts: number; to_ts: number; cause: string }>(
    `gaps?${query}&limit=50000`,
  )
  let before = new Map<string, boolean>()
  let [hourAt, dayAt] = [0, 0]
  const expectedGaps: { market_id: string; from: bigint; to: bigint; cause: string }[] = []
  for (const date of dates) {
    const path = lobFilePath(lake, source, series, date)
    const rows = await readRows(path)
    const covers = async (key: string): Promise<bigint> => BigInt((await readFooterValue(path, key))!)
    const span = { from: await covers('covers_from'), to: (await covers('covers_to')) + 1n }
    const dayStart = dayStartOf(date)
    const byMarket = groupedBy(rows, ({ market_id: id }) => id)
    const after = new Map<string, boolean>()
    for (const id of [...byMarket.keys()].toSorted((a, b) => (a < b ? -1 : 1))) {
      const events = byMarket.get(id)!.map(({ ts, recv_ts: recvTs, event }) => ({ ts, recvTs, event }))
      const known = before.get(id)
      const state = known === undefined ? 'none' : known ? 'known' : 'unknown'
      const counted = naiveCoverage(events, dayStart, span, state)
      after.set(id, counted.endsKnown)
      expectedGaps.push(...counted.gaps.map((gap) => ({ market_id: id, ...gap })))
      const sum = { known_s: 0, gap_s: 0, gaps: 0, events: 0, snapshots: 0 }
      const own = hours.slice(hourAt, (hourAt += 24))
      for (const [index, hour] of own.entries()) {
        const naive = counted.hours[index]!
        const { market_id, known_s, gap_s, events: eventCount, snapshots, first_book_ts } = hour
        assert.deepEqual(
          {
            market_id,
            hour: hour.hour,
            known_s,
            gap_s,
            gaps: hour.gaps,
            eventCount,
            snapshots,
            first_book_ts,
          },
          {
            market_id: id,
            hour: `${date}T${String(index).padStart(2, '0')}:00:00Z`,
            known_s: Number(naive.known) / 1e9,
            gap_s: Number(naive.gap) / 1e9,
            gaps: naive.gaps,
            eventCount: naive.events,
            snapshots: naive.snapshots,
            first_book_ts: naive.firstBook === null ? null : Number(naive.firstBook),
          },
          `${id} ${hour.hour}`,
        )
        assertLag(hour.recv_lag_p50_ms, naive.lags, 0.5)
        assertLag(hour.recv_lag_p99_ms, naive.lags, 0.99)
        for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += hour[name]
      }
      const day = days[dayAt++]!
      const lags = counted.hours.flatMap(({ lags: ofHour }) => ofHour)
      assert.deepEqual([day.market_id, day.date], [id, date])
      for (const [name, value] of Object.entries(sum))
        assert.ok(
          Math.abs((day[name as keyof CoverageRow] as number) - value) < 1e-6,
          `${id} ${date} ${name}`,
        )
      assert.equal(day.first_book_ts, own.find(({ first_book_ts: ts }) => ts !== null)?.first_book_ts ?? null)
      assertLag(day.recv_lag_p50_ms, lags, 0.5)
      assertLag(day.recv_lag_p99_ms, lags, 0.99)
      const states = own.map(({ state: ofHour }) => ofHour).filter((one) => one !== 'not_listed')
      // An hour in which the market was not listed says nothing about a recording that began or ended in it.
      const isRecorded = span.to - span.from > DAY_NS - SECOND_NS
      if (states.every((one) => one === 'complete') && states.length > 0)
        assert.deepEqual(
          [day.state, day.condition],
          isRecorded ? ['complete', 'available'] : ['partial', 'degraded'],
        )
      if (day.gap_s > 0) assert.equal(day.condition, 'degraded')
    }
    before = after
  }
  assert.deepEqual([hours.length, days.length], [hourAt, dayAt])
  const merged: typeof expectedGaps = []
  for (const gap of expectedGaps) {
    const last = merged.findLast(({ market_id: id }) => id === gap.market_id)
    if (last?.to === gap.from && last.cause === gap.cause) last.to = gap.to
    else merged.push({ ...gap })
  }
  const inOrder = merged.toSorted((a, b) => Number(a.from - b.from) || (a.market_id < b.market_id ? -1 : 1))
  assert.deepEqual(
    gaps.filter(({ cause }) => cause !== 'not_recorded'),
    inOrder.map(({ market_id: id, from, to, cause }) => ({
      market_id: id,
      from_ts: Number(from),
      to_ts: Number(to),
      cause,
    })),
  )
  return hours.length
}
