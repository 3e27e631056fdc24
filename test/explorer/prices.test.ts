// What the page computes from prices: mid prices, the order of strikes, implied distributions, columns by market.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { gapSpans } from '../../explorer/gap-spans.ts'
import { EventStrikes, impliedDistribution, stacked } from '../../explorer/implied-distribution.ts'
import { indexAt, MarketLines, tickAt } from '../../explorer/market-lines.ts'
import { quoteMid } from '../../explorer/quote.ts'
import { eventDate, orderedStrikes, shortened } from '../../explorer/strikes.ts'

test('an empty side counts as its price bound, and an empty book has no mid price', () => {
  assert.equal(quoteMid(40, 43), 41.5)
  assert.equal(quoteMid(0, 3), 1.5)
  assert.equal(quoteMid(96, 0), 98)
  assert.equal(quoteMid(0, 0), null)
})

test('strikes are ordered from cold to hot, with the open-ended ones outside', () => {
  const event = 'KXHIGHNY-26JUL02'
  const markets = ['T83', 'B82.5', 'B80.5', 'T76', 'B78.5', 'B76.5'].map((strike) => `${event}-${strike}`)
  assert.deepEqual(
    orderedStrikes(markets).map(({ label }) => label),
    ['< 76°', '76–77°', '78–79°', '80–81°', '82–83°', '> 83°'],
  )
  assert.deepEqual(
    orderedStrikes(['X-B-3.5', 'X-B-5.5', 'X-T-6', 'X-T-2']).map(({ label }) => label),
    ['< -6°', '-6–-5°', '-4–-3°', '> -2°'],
  )
})

test('a market without a strike is shown by the end of its name', () => {
  const [one, other] = orderedStrikes(['0xff:20', '0xee:123456789012345678901234567890'])
  assert.deepEqual(one, {
    market: '0xee:123456789012345678901234567890',
    label: '12345678901234567890123…',
    isNamed: false,
  })
  assert.equal(other?.label, '20')
  // Tokens of Polymarket differ at both ends.
  const [token] = orderedStrikes([`0xee:123456${'7'.repeat(67)}8901`])
  assert.equal(token?.label, '123456…8901')
  assert.equal(shortened('<script>', 4), '<sc…')
  assert.deepEqual(orderedStrikes([]), [])
})

test('a market with a name is labelled by its degrees, date and outcome, and ordered by its degrees', () => {
  const question = (what: string): string => `Will the highest temperature in NYC be ${what} on July 2?`
  const names = new Map([
    ['0xa:1', { question: question('94°F or higher'), outcome: 'Yes' }],
    ['0xa:2', { question: question('80-81°F'), outcome: 'No' }],
    ['0xa:3', { question: question('80-81°F'), outcome: 'Yes' }],
    ['0xa:4', { question: question('79°F or below'), outcome: 'Yes' }],
    ['0xa:0', { question: question('70-71°F').replace('2?', '3?'), outcome: 'Yes' }],
    ['0xa:5', { question: 'Will it snow in New York City?', outcome: 'No' }],
  ])
  assert.deepEqual(
    orderedStrikes([...names.keys(), '0xb:6'], names).map(({ label }) => label),
    [
      '≤ 79° Jul 2',
      '80–81° Jul 2',
      '80–81° Jul 2 No',
      '≥ 94° Jul 2',
      '70–71° Jul 3',
      'Will it snow in New Yor…',
      '6',
    ],
  )
})

test('the climate date is read from the event', () => {
  assert.equal(eventDate('KXHIGHNY-26JUL02'), '2026-07-02')
  assert.equal(eventDate('KXHIGHNY-26ZZZ02'), undefined)
  assert.equal(eventDate('all'), undefined)
})

test('an implied distribution sums to 100 percent and keeps the proportions', () => {
  assert.deepEqual(impliedDistribution([10, 30, 60]), [10, 30, 60])
  assert.deepEqual(impliedDistribution([1, 1]), [50, 50])
  const mids = fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(mids, (prices) => {
      const shares = impliedDistribution(prices)
      if (prices.every((price) => price === 0)) return shares.every((share) => share === null)
      const sum = shares.reduce<number>((total, share) => total + (share ?? Number.NaN), 0)
      return Math.abs(sum - 100) < 1e-9
    }),
  )
})

test('without all strikes there is no distribution', () => {
  assert.deepEqual(impliedDistribution([10, null, 60]), [null, null, null])
  assert.deepEqual(impliedDistribution([]), [])
  assert.deepEqual(stacked([10, 30, 60]), [10, 40, 100])
  assert.deepEqual(stacked([null, null]), [null, null])
})

const NS = 1_000_000
const row = (ms: number, market: string, bid: number, ask: number) => ({
  ts: ms * NS,
  market_id: market,
  best_bid: bid,
  best_ask: ask,
})

test('rows become one column for each market, also for one that starts late', () => {
  const lines = new MarketLines()
  lines.add([row(1000, 'A', 40, 42), row(2000, 'A', 0, 0)])
  lines.add([row(2000, 'B', 0, 10), row(3000, 'A', 41, 0)])
  assert.deepEqual(lines.times, [1000, 2000, 3000])
  assert.deepEqual(
    lines.lines.map(({ market, mids }) => [market, mids]),
    [
      ['A', [41, null, 70.5]],
      ['B', [null, 5, null]],
    ],
  )
  assert.deepEqual(lines.lines[1]?.bids, [null, 0, null])
  assert.deepEqual(
    [0, 1, 2].map((index) => lines.isKnown(index)),
    [true, true, true],
  )
  assert.deepEqual(
    [500, 1000, 2999, 9000].map((ms) => indexAt(lines.times, ms)),
    [0, 0, 1, 2],
  )
})

test('gaps are the times that no known row covers', () => {
  const known = [true, false, true, true]
  const times = [20, 30, 40, 70]
  const spans = gapSpans(times, (index) => known[index] === true, 10, { fromMs: 0, toMs: 100 })
  assert.deepEqual(spans, [
    { fromMs: 0, toMs: 20 },
    { fromMs: 30, toMs: 40 },
    { fromMs: 50, toMs: 70 },
    { fromMs: 80, toMs: 100 },
  ])
  assert.deepEqual(
    gapSpans([], () => true, 10, { fromMs: 0, toMs: 5 }),
    [{ fromMs: 0, toMs: 5 }],
  )
})

test('a distribution is implied only if every strike in the catalogue has a book', () => {
  const listed = ['KXHIGHNY-26JUL02-T76', 'KXHIGHNY-26JUL02-B76.5', 'KXHIGHNY-26JUL02-B78.5']
  const [coldest = '', middle = ''] = listed
  const all = new EventStrikes(listed, [middle, coldest])
  assert.deepEqual(
    all.all.map(({ label }) => label),
    ['< 76°', '76–77°', '78–79°'],
  )
  assert.deepEqual(all.sharesOf([10, 30, 60]), [10, 30, 60])
  assert.equal(all.missingText([10, 30, 60]), '')
  assert.deepEqual(all.sharesOf([10, 30, null]), [null, null, null])
  assert.equal(all.missingText([10, 30, null]), '2 of 3 strikes')
  assert.equal(all.missingText([null, null, null]), '0 of 3 strikes')
  // Only a catalogue shows whether these are all strikes.
  const unlisted = new EventStrikes([], [middle])
  assert.deepEqual(unlisted.sharesOf([30]), [null])
  assert.equal(unlisted.missingText([30]), '')
})

test('an instant without a row has no book, neither the previous nor the next one', () => {
  const times = [1_000, 2_000, 5_000]
  const found = [0, 1_000, 1_999, 2_000, 3_000, 4_999, 5_500, 6_000].map((ms) => tickAt(times, ms, 1_000))
  assert.deepEqual(found, [null, 0, 0, 1, null, null, 2, null])
  assert.equal(tickAt([], 1_000, 1_000), null)
})
