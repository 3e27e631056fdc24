// The page's state and its URL agree, whatever either contains.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  EMPTY_STATE,
  hasSameData,
  readAddress,
  VIEWS,
  type ViewState,
  writeAddress,
} from '../../explorer/view-state.ts'

const instant = fc.option(fc.integer({ min: 0, max: 4e12 }), { nil: null })
const states = fc
  .record({
    view: fc.constantFrom(...VIEWS),
    source: fc.string(),
    series: fc.string({ unit: 'binary' }),
    event: fc.string(),
    market: fc.string({ unit: 'binary' }),
    date: fc.string(),
    interval: fc.string(),
    candle: fc.string(),
    at: instant,
    window: fc.option(fc.tuple(fc.integer({ min: 0, max: 2e12 }), fc.integer({ min: 1, max: 1e9 })), {
      nil: null,
    }),
  })
  .map(({ window, ...state }): ViewState => {
    const [from, to] = window === null ? [null, null] : [window[0], window[0] + window[1]]
    return { ...state, from, to }
  })

test('a URL is parsed to the state that it was written from', () => {
  fc.assert(fc.property(states, (state) => assert.deepEqual(readAddress(writeAddress(state)), state)))
})

test('a URL is short and readable', () => {
  const state: ViewState = {
    ...EMPTY_STATE,
    view: 'book',
    market: 'KXHIGHNY-26JUL02-B80.5',
    date: '2026-07-02',
    at: Date.UTC(2026, 6, 2, 18, 5),
  }
  assert.equal(
    writeAddress(state),
    '#view=book&market=KXHIGHNY-26JUL02-B80.5&date=2026-07-02&at=2026-07-02T18:05:00Z',
  )
})

test('missing or wrong parts of a URL are left open', () => {
  assert.deepEqual(readAddress(''), EMPTY_STATE)
  assert.deepEqual(readAddress('#view=nothing&at=never&unknown=1'), EMPTY_STATE)
  assert.deepEqual(readAddress('#from=2026-07-02T02:00:00Z&to=2026-07-02T01:00:00Z'), EMPTY_STATE)
  // A wrong date is kept, so that the server reports the error.
  assert.equal(readAddress('#date=banana').date, 'banana')
})

test('another window or cursor does not count as other data', () => {
  assert.ok(hasSameData(EMPTY_STATE, { ...EMPTY_STATE, from: 1, to: 2, at: 3 }))
  assert.ok(!hasSameData(EMPTY_STATE, { ...EMPTY_STATE, date: '2026-07-02' }))
  assert.ok(!hasSameData(EMPTY_STATE, { ...EMPTY_STATE, view: 'book' }))
})
