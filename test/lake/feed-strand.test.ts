// Which of a span's messages are anchors: few of a fast feed's, whatever it is made of, and enough to find any two parts of it
// to be parts of one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnchorCollector, joinOutlines } from '../../server/lake/feed-strand.ts'
import type { FeedAnchor, FeedSpan } from '../../server/lake/feed-strand.ts'
import { assembleStrands } from '../../server/import/strand-assembly.ts'
import type { LooseSpan } from '../../server/import/strand-chain.ts'
import { SeededRandom } from '../import/pieces/seeded-random.ts'

const START_NS = 1_790_000_000_000_000_000n
const NS_PER_S = 1_000_000_000n
const MS = 1_000_000n

type Message = Pick<FeedAnchor, 'seq' | 'recvTs' | 'ts'>

/** Messages 1 to `count`, `perSecond` of them, with a silence after each of `silences`. */
function messages(count: number, perSecond: number, silences: ReadonlySet<number> = new Set()): Message[] {
  let silenceNs = 0n
  return Array.from({ length: count }, (_, index) => {
    const recvTs = START_NS + silenceNs + ((BigInt(index) * NS_PER_S) / BigInt(perSecond) / MS) * MS
    if (silences.has(index + 1)) silenceNs += 100n * NS_PER_S
    return { seq: index + 1, recvTs, ts: recvTs - 3n * MS }
  })
}

function collected(list: readonly Message[]): AnchorCollector {
  const collector = new AnchorCollector(true)
  for (const { seq, recvTs, ts } of list) collector.add(seq, recvTs, ts)
  return collector
}

function spanOf(list: readonly Message[], name: string): LooseSpan {
  const [first, last] = [list[0]!, list.at(-1)!]
  return {
    sid: 1,
    firstSeq: first.seq,
    lastSeq: last.seq,
    firstTs: first.ts,
    lastTs: last.ts,
    firstRecvTs: first.recvTs,
    lastRecvTs: last.recvTs,
    isTurned: true,
    isBegun: first.seq === 1,
    isEnded: false,
    anchors: collected(list).result(),
    name,
    previous: undefined,
    isPreviousSure: true,
    connection: undefined,
    marketIds: new Set(['M']),
    end: 'end of file',
  }
}

const outline = ({ anchors }: Pick<FeedSpan, 'anchors'>): readonly string[] =>
  anchors.map(({ seq, recvTs, isAfterSilence }) => `${seq} ${recvTs}${isAfterSilence ? ' !' : ''}`)

test('anchors grow with the time that a feed is heard, not with its messages', () => {
  const seconds = 120
  // At both ends 128 messages and 128 regular anchors, one each two seconds between, and what waits to be thinned out.
  const [foundMax, heldMax] = [4 * 128 + seconds / 2 + 2, 4 * 128 + seconds / 2 + 1_100]
  for (const perSecond of [5_000, 10_000]) {
    const collector = collected(messages(seconds * perSecond, perSecond))
    const { kept, newest } = collector.state()
    const [found, held] = [collector.result().length, kept.length + newest.length]
    assert.ok(found <= foundMax, `${found} anchors at ${perSecond} a second`)
    assert.ok(held <= heldMax, `${held} anchors are held at ${perSecond} a second`)
  }
})

test('a slow feed keeps every regular anchor', () => {
  const anchors = collected(messages(100_000, 50)).result()
  const regular = anchors.filter(({ seq }) => seq % 128 === 0)
  assert.equal(regular.length, Math.floor(100_000 / 128))
})

test('a collector that was put away goes on with the same anchors', () => {
  const list = messages(90_000, 5_000, new Set([30_001]))
  const first = collected(list.slice(0, 41_000))
  const second = new AnchorCollector(true, structuredClone(first.state()))
  for (const { seq, recvTs, ts } of list.slice(41_000)) second.add(seq, recvTs, ts)
  assert.deepEqual(second.result(), collected(list).result())
})

test('parts of a span have together the anchors of the whole', () => {
  const random = new SeededRandom(11)
  for (let round = 0; round < 12; round++) {
    const silences = new Set(Array.from({ length: 3 }, () => random.int(1, 100_000)))
    const list = messages(100_000, random.pick([100, 1_000, 5_000, 20_000]), silences)
    const cuts = [0, ...Array.from({ length: random.int(1, 4) }, () => random.int(1, 99_999)), list.length]
    const ends = cuts.toSorted((a, b) => a - b)
    const parts = ends.slice(1).flatMap((to, index) => {
      // Some begin before the one before them ends.
      const from = Math.max(0, ends[index]! - random.pick([0, 0, 1, 100, 5_000, 40_000]))
      return to > from ? [spanOf(list.slice(from, to), `part ${index}`)] : []
    })
    assert.deepEqual(outline(joinOutlines(parts)), outline(spanOf(list, 'whole')), `round ${round}`)
  }
})

test('two recordings of a fast feed that overlap are found to be of one, by however little', () => {
  const list = messages(120_000, 5_000)
  for (const overlap of [
    1, 100, 128, 129, 255, 256, 257, 5_000, 16_383, 16_385, 16_512, 32_768, 33_000, 50_000,
  ]) {
    const middle = 60_000
    const spans = [list.slice(0, middle), list.slice(middle - overlap)].map((part, index) =>
      spanOf(part, `file ${index}`),
    )
    assert.equal(assembleStrands(spans).length, 1, `an overlap of ${overlap}`)
  }
})
