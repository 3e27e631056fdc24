// Feeds that break off again and again: a recorder goes on through days of that.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FeedSpans } from '../../server/feed/feed-spans.ts'
import { LiveStrands } from '../../server/recorder/live-strands.ts'

const START_NS = 1_790_000_000_000_000_000n
const CONNECTION_NS = 3_000_000_000n
/** One each three seconds for two days. */
const CONNECTIONS = 57_600

/** So many connections, one after another, of one market each. */
function connected(spans: FeedSpans, count: number): void {
  for (let connection = 0; connection < count; connection++) {
    const ts = START_NS + BigInt(connection) * CONNECTION_NS
    const run = spans.start({ sid: 1, isBegun: true, isTurned: true, connection }, 'a lane')
    run.take(1, ts, ts)
    run.addMarket('KXHIGHNY', 'KXHIGHNY-26NOV20-B45.5', ts)
    run.end('disconnect')
  }
}

test('a recorder is connected anew every few seconds for two days, and an import says what is wrong', () => {
  const spans = new FeedSpans({ partsAtSilence: false })
  connected(spans, CONNECTIONS)
  assert.equal(spans.list.size, CONNECTIONS)
  assert.throws(
    () => connected(new FeedSpans({ partsAtSilence: true }), CONNECTIONS),
    /holes in the sequence numbers/,
  )
})

test('whether a strand is numbered is told without a look at all others', () => {
  const spans = new FeedSpans({ partsAtSilence: false })
  connected(spans, 100)
  let looks = 0
  class Watched extends Map<number, never> {
    override [Symbol.iterator](): MapIterator<[number, never]> {
      looks++
      return super[Symbol.iterator]()
    }
    override values(): MapIterator<never> {
      looks++
      return super.values()
    }
  }
  const list = new Watched(spans.list as ReadonlyMap<number, never>)
  const strands = new LiveStrands(
    'kalshi',
    'KXHIGHNY',
    Object.create(spans, { list: { value: list } }) as FeedSpans,
  )
  for (const number of list.keys()) assert.equal(strands.isNumbered(strands.strandOf(number)), true)
  assert.equal(looks, 0)
})
