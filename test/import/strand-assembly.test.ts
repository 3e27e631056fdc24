// Which spans are one strand: by numbers, by what one recording held together, and without numbers by how messages come.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FeedSpans } from '../../server/feed/feed-spans.ts'
import { looseSpans } from '../../server/import/series-spans.ts'
import { assembleStrands } from '../../server/import/strand-assembly.ts'
import type { LooseSpan } from '../../server/import/strand-chain.ts'

const S = 1_000_000_000n
const TOKENS = new Set(['0xc0:1'])

/** A span of numbers `from` to `to`, one a second from `at` seconds on. */
function numbered(from: number, to: number, at: number, more: Partial<LooseSpan> = {}): LooseSpan {
  const anchors = Array.from({ length: to - from + 1 }, (_, index) => {
    const recvTs = BigInt(Math.round((at + index) * 1000)) * 1_000_000n
    return { seq: from + index, recvTs, ts: recvTs, isAfterSilence: false }
  })
  return spanOf(anchors, { sid: 1, firstSeq: from, lastSeq: to, isBegun: from === 1, ...more })
}

/**
 * A span without numbers: a heartbeat each ten seconds, and the world's changes, one each thirty seconds, that were
 * `lagMs` under way.
 */
function heard(from: number, to: number, lagMs: number, more: Partial<LooseSpan> = {}): LooseSpan {
  const anchors = Array.from({ length: Math.floor((to - from) / 10) + 1 }, (_, beat) => {
    const recvTs = BigInt(Math.round((from + beat * 10) * 1000)) * 1_000_000n
    const tenth = Math.floor((from + beat * 10) / 10)
    const changeTs = BigInt(tenth * 10 + 5) * S
    return [
      { seq: 0, recvTs, ts: recvTs, isAfterSilence: false },
      ...(tenth % 3 === 0
        ? [{ seq: 0, recvTs: changeTs + BigInt(lagMs) * 1_000_000n, ts: changeTs, isAfterSilence: false }]
        : []),
    ]
  }).flat()
  return spanOf(anchors, { sid: null, firstSeq: 0, lastSeq: 0, marketIds: TOKENS, ...more })
}

function spanOf(anchors: LooseSpan['anchors'], more: Partial<LooseSpan>): LooseSpan {
  const [first, last] = [anchors[0]!, anchors.at(-1)!]
  return {
    sid: null,
    firstSeq: 0,
    lastSeq: 0,
    firstTs: first.ts,
    lastTs: last.ts,
    firstRecvTs: first.recvTs,
    lastRecvTs: last.recvTs,
    isTurned: null,
    isBegun: false,
    isEnded: false,
    anchors,
    name: '',
    previous: undefined,
    isPreviousSure: true,
    connection: undefined,
    marketIds: new Set(),
    end: 'end of file',
    ...more,
  }
}

const strandsOf = (...spans: LooseSpan[]): number[][] =>
  assembleStrands(spans).map((strand) => [...strand.spans].toSorted((a, b) => a - b))

test('the next number goes on, another or an old one does not', () => {
  assert.deepEqual(strandsOf(numbered(1, 4, 0), numbered(5, 6, 10)), [[0, 1]])
  assert.deepEqual(strandsOf(numbered(1, 4, 0), numbered(6, 7, 10)), [[0], [1]])
  assert.deepEqual(strandsOf(numbered(1, 4, 200_000), numbered(5, 6, 10)), [[1], [0]])
})

test('a number met by chance after a silence gives way to one that fits', () => {
  const chance = numbered(5, 6, 5000, { previous: 0, isPreviousSure: false })
  assert.deepEqual(strandsOf(numbered(1, 4, 0), chance), [[0, 1]])
  assert.deepEqual(strandsOf(numbered(1, 4, 0), chance, numbered(5, 5, 10)), [[0, 2], [1]])
  assert.deepEqual(strandsOf(numbered(1, 4, 0), chance, numbered(5, 5, 10), numbered(1, 4, 4000)), [
    [0, 2],
    [1, 3],
  ])
})

test('of two recorders at one number each goes on with its own', () => {
  const [a, b] = [numbered(1, 4, 0), numbered(1, 4, 1, { name: 'b' })]
  const [a2, b2] = [
    numbered(5, 6, 5000, { previous: 0, isPreviousSure: false }),
    numbered(5, 6, 4000, { previous: 1, isPreviousSure: false }),
  ]
  assert.deepEqual(strandsOf(a, b, a2, b2), [
    [0, 2],
    [1, 3],
  ])
})

test('of two recorders of different markets each goes on with its own', () => {
  const [a, b] = [{ marketIds: new Set(['A']) }, { marketIds: new Set(['B']) }]
  // The other was heard of a moment later, or earlier.
  for (const later of [0.3, -0.3]) {
    assert.deepEqual(
      strandsOf(
        numbered(1, 4, 0, a),
        numbered(1, 4, later, b),
        numbered(5, 6, 10, a),
        numbered(5, 6, 10 + later, b),
      ),
      [
        [0, 2],
        [1, 3],
      ].toSorted((x, y) => (later > 0 ? x[0]! - y[0]! : y[0]! - x[0]!)),
    )
  }
  // One connection cut market by market.
  assert.deepEqual(strandsOf(numbered(1, 4, 0, a), numbered(5, 6, 10, b)), [[0, 1]])
})

test('of two recorders that count one apart, neither goes on with the same message of the other', () => {
  const changes = (from: number, at: number, lagMs: number, count = 1): LooseSpan => {
    const anchors = Array.from({ length: count }, (_, index) => {
      const ts = BigInt(at + index) * S
      return { seq: from + index, recvTs: ts + BigInt(lagMs) * 1_000_000n, ts, isAfterSilence: false }
    })
    return spanOf(anchors, { sid: 1, firstSeq: from, lastSeq: from + count - 1, isBegun: from === 1 })
  }
  const strands = assembleStrands([
    changes(1, 0, 20, 6),
    changes(1, 0, 40, 7),
    changes(7, 600, 20),
    changes(8, 600, 40),
  ])
  assert.deepEqual(
    strands.map(({ spans }) => spans),
    [
      [0, 2],
      [1, 3],
    ],
  )
})

test('a recording goes on with what it heard before, not with what another heard a moment after', () => {
  const [a, b] = [numbered(1, 4, 0), numbered(1, 4, 1)]
  // a's number 5 came between its own number 4 and b's.
  const a2 = numbered(5, 6, 3, { firstRecvTs: 3n * S + 1n })
  assert.deepEqual(strandsOf(a, b, a2, numbered(5, 6, 1000)), [
    [0, 2],
    [1, 3],
  ])
})

test('of two that may go on, it is the one that nothing was seen to end', () => {
  const over = numbered(1, 4, 300, { end: 'new connection' })
  assert.deepEqual(strandsOf(numbered(1, 4, 0), over, numbered(5, 6, 310)), [[0, 2], [1]])
  assert.deepEqual(strandsOf(over, numbered(5, 6, 310)), [[0, 1]])
  // A recording that missed the next numbers was still there.
  const broken = { ...over, end: 'sequence break' } as const
  assert.deepEqual(strandsOf(numbered(1, 4, 0), broken, numbered(5, 6, 310)), [[0], [1, 2]])
})

test('a subscription that seemed over goes on to where its connection ended', () => {
  const other = { sid: 2, connection: 'a', isEnded: true, end: 'disconnect' } as const
  const silent = numbered(1, 4, 0, { connection: 'a', isEnded: true })
  const [strand] = assembleStrands([silent, numbered(1, 9, 1, other)])
  assert.deepEqual([strand!.lastTs, strand!.isEnded, strand!.end], [9n * S, true, 'disconnect'])
})

test('two recorders that began together and were mixed up do not keep each other alive', () => {
  // Both heard the same, so that the second files of each go on with the first of the other as well as with its own.
  const [a, b] = [{ connection: 'a 0' }, { connection: 'b 0' }]
  const other = (from: number, to: number, at: number, more: Partial<LooseSpan>): LooseSpan =>
    numbered(from, to, at, { sid: 9, ...more })
  const strands = assembleStrands([
    numbered(1, 60, 100, a),
    numbered(61, 100, 160, { ...b, end: 'new connection' }),
    numbered(1, 60, 100.5, b),
    numbered(61, 200, 160.5, a),
    other(1, 50, 100, b),
    other(51, 90, 150, a),
  ])
  const ended = strands.find(({ sid, lastSeq }) => sid === 1 && lastSeq === 100)!
  assert.equal(ended.lastTs, 199n * S)
})

test('a number that fits goes on with nothing when another heard a change meanwhile', () => {
  const marketIds = new Set(['A', 'B'])
  const a = numbered(1, 4, 0, { marketIds })
  const late = numbered(5, 6, 5000, { marketIds })
  const between = (more: Partial<LooseSpan>): LooseSpan =>
    numbered(7, 9, 1000, { sid: 2, marketIds, ...more })
  const stamped = between({}).anchors.map((anchor) => ({ ...anchor, ts: anchor.ts - 1n }))
  assert.deepEqual(strandsOf(a, late, between({ anchors: stamped })), [[0], [2], [1]])
  // Of other markets, or a book that was sent when a subscription began, it tells nothing.
  assert.deepEqual(strandsOf(a, late, between({ anchors: stamped, marketIds: new Set(['A', 'C']) })), [
    [0, 1],
    [2],
  ])
  assert.deepEqual(strandsOf(a, late, between({})), [[0, 1], [2]])
  // Nor does it where the recording itself held both, which it may have heard late.
  const next = numbered(5, 6, 1001, { marketIds })
  assert.deepEqual(strandsOf(a, next, between({ anchors: stamped })), [[0, 1], [2]])
})

test('what one recording held together stays together where another could go on too', () => {
  const ahead = numbered(5, 6, 20, { previous: 0 })
  assert.deepEqual(strandsOf(numbered(1, 4, 0), ahead, numbered(5, 5, 10)), [[0, 1], [2]])
})

test('without numbers, heartbeats in step tell which connection goes on', () => {
  const [a, b] = [heard(0, 100, 20, { isBegun: true }), heard(3, 103, 20, { isBegun: true })]
  // b was heard of last, and is the next to speak.
  assert.deepEqual(strandsOf(a, b, heard(110, 200, 20), heard(113, 200, 20)), [
    [0, 2],
    [1, 3],
  ])
  assert.deepEqual(strandsOf(a, b, heard(113, 200, 20), heard(120, 200, 20)), [
    [0, 3],
    [1, 2],
  ])
})

test('with heartbeats in one step, the way of messages tells', () => {
  const [slow, quick] = [heard(0, 100, 40, { isBegun: true }), heard(0, 100, 10, { isBegun: true })]
  assert.deepEqual(strandsOf(slow, quick, heard(110, 200, 11), heard(110.001, 200, 39)), [
    [0, 3],
    [1, 2],
  ])
})

test('a piece with heartbeats alone belongs to the connection that it continues', () => {
  const none = new Set<string>()
  const spans = [
    heard(0, 100, 20, { isBegun: true }),
    heard(110, 400, 20, { marketIds: none }),
    heard(410, 500, 20),
  ]
  assert.deepEqual(strandsOf(...spans), [[0, 1, 2]])
})

test('a subscription whose connection was seen to end ends with it, though it had said nothing for long', () => {
  const quiet = numbered(1, 2, 0, { connection: 'file 0' })
  const lively = numbered(1, 9, 0, { sid: 2, connection: 'file 0' })
  const later = numbered(10, 12, 600, {
    sid: 2,
    connection: 'other file 0',
    isEnded: true,
    end: 'disconnect',
  })
  const strands = assembleStrands([quiet, lively, later])
  assert.deepEqual(
    strands.map(({ sid, isEnded, lastTs }) => [sid, isEnded, lastTs]),
    [
      [1, true, later.lastTs],
      [2, true, later.lastTs],
    ],
  )
})

test('two recorders that say at the same instants that they have listened are two', () => {
  const spans = new FeedSpans({ partsAtSilence: false })
  for (const [name, heartbeatNs] of [
    ['a', 3n * S],
    ['b', 7n * S],
  ] as const) {
    const facts = { sid: null, isBegun: true, isTurned: null, connection: 0 }
    const run = spans.start(facts, name)
    for (let ts = 0n; ts < 60n * S; ts += 10n * S) {
      const heartbeatTs = ts + heartbeatNs
      run.take(0, heartbeatTs, heartbeatTs)
      run.take(0, heartbeatTs, ts + 10n * S, true)
    }
  }
  const loose = looseSpans(spans, 'any')
  assert.deepEqual(strandsOf(...loose), [[0], [1]])
  // Another copy of a recording is the same.
  assert.deepEqual(strandsOf(...loose, { ...loose[1]!, name: 'copy' }), [[0], [1, 2]])
})

test('without numbers, a connection ends where the next one begins, though its last message came a moment later', () => {
  const connection = 'one file'
  const first = heard(0, 100, 200, { connection, end: 'new connection' })
  const next = heard(99.9, 600, 200, { connection, isBegun: true })
  assert.deepEqual(
    assembleStrands([first, next]).map(({ lastTs }) => lastTs),
    [first.lastTs, next.lastTs],
  )
})
