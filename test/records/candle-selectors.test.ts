// Pairs of selectors of /api/v1/candles: a row must satisfy both, whichever store holds it. Covers every pair of a matching
// name, a contradicting name and a name of another series, compared with the candles themselves.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import { candleSet, type CutOverOf, distribute } from '../support/candle-sets.ts'
import { IS_FULL_EFFORT, runs } from '../support/effort.ts'
import { naiveCandles } from '../support/naive-candles.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { fetchRows, type PlainRow } from '../support/record-rows.ts'
import { startRecordServer } from '../support/record-server.ts'

const place = storeOfThisFile()
const FROM_MS = Date.parse('2026-07-01T00:00:00Z')
const HOUR = 3_600_000
const DAYS = 2
// All markets have traded before the window, so that earlier candles are filled into it.
const WINDOW = { fromMs: FROM_MS + 18 * HOUR, toMs: FROM_MS + DAYS * 24 * HOUR }

type Selector = readonly [name: 'market' | 'event' | 'series' | 'station', value: string]

const SELECTORS: readonly Selector[] = [
  ['market', 'KXHIGHNY-A-B1'],
  ['market', 'KXHIGHNY-B-B2'],
  ['market', 'KXHIGHCHI-A-B1'],
  ['event', 'KXHIGHNY-A'],
  ['event', 'KXHIGHNY-B'],
  ['event', 'KXHIGHCHI-A'],
  ['series', 'KXHIGHNY'],
  ['series', 'KXHIGHCHI'],
  // The series parameter also accepts an event.
  ['series', 'KXHIGHNY-A'],
  ['series', 'KXHIGHNY-B'],
  ['series', 'KXHIGHCHI-A'],
  ['station', 'NYC'],
  ['station', 'PHX'],
]

const CUT_OVERS: Readonly<Record<string, CutOverOf>> = {
  cold: (_, { toMs }) => toMs,
  hot: (_, { fromMs }) => fromMs,
  mixed: () => FROM_MS + 24.5 * HOUR,
}

const STATION_SERIES: Readonly<Record<string, string>> = { NYC: 'KXHIGHNY', PHX: 'KXHIGHTPHX' }

function isMeant([name, value]: Selector, candle: StoredCandle): boolean {
  if (name === 'market') return candle.market_ticker === value
  if (name === 'event') return candle.event_ticker === value
  if (name === 'series') return candle.series_ticker === value || candle.event_ticker === value
  return candle.series_ticker === STATION_SERIES[value]
}

function expectedRows(candles: readonly StoredCandle[], selectors: readonly Selector[], fill: boolean) {
  return naiveCandles(candles, {
    isWanted: (candle) => selectors.every((selector) => isMeant(selector, candle)),
    ...WINDOW,
    interval: 60,
    aggregate: null,
    fill,
    zoneOf: () => 'UTC',
  })
}

/** Every two selectors that are different parameters. */
function pairs(): [Selector, Selector][] {
  return SELECTORS.flatMap((first, index) =>
    SELECTORS.slice(index + 1).flatMap((second): [Selector, Selector][] =>
      first[0] === second[0] ? [] : [[first, second]],
    ),
  )
}

test('two selectors give the rows that match both, from the store, the lake and both', async (t) => {
  const { url, lake } = await startRecordServer(t, place.store.postgres.address)
  const candles = candleSet(11, FROM_MS, DAYS)
  const window = `from=${new Date(WINDOW.fromMs).toISOString()}&to=${new Date(WINDOW.toMs).toISOString()}`
  let emptyPairs = 0
  const cutOvers = Object.entries(CUT_OVERS)
  for (const [turn, [name, cutOverOf]] of cutOvers.entries()) {
    await rm(join(lake, 'candles'), { recursive: true, force: true })
    await distribute(candles, cutOverOf, { lake, postgres: place.store.postgres, isDoubled: false })
    // In the quick gear the pairs take turns.
    const asked = IS_FULL_EFFORT ? pairs() : pairs().filter((_, index) => index % cutOvers.length === turn)
    for (const selectors of asked) {
      const given = selectors.map(([parameter, value]) => `${parameter}=${value}`).join('&')
      const rowsOf = async (form: string): Promise<readonly PlainRow[]> =>
        (
          await fetchRows(
            `${url}/api/v1/candles?${given}&${window}&interval=60&limit=50000&${form}`,
            'candles',
          )
        ).rows
      const traded = expectedRows(candles, selectors, false)
      if (traded.length === 0) emptyPairs++
      assert.deepEqual(await rowsOf('fill=true'), expectedRows(candles, selectors, true), `${name}: ${given}`)
      assert.deepEqual(await rowsOf('format=csv'), traded, `${name}: ${given}, csv`)
    }
  }
  assert.ok(emptyPairs > runs(20, 60), `only ${emptyPairs} pairs contradict each other`)
})
