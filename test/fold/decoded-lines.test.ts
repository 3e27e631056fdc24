import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { areOfOneEvent } from '../../server/feed/feed-message.ts'
import type { FeedMessage } from '../../server/feed/feed-message.ts'
import { DecodedLines, DecodedSegments, IN_MEMORY } from '../../server/fold/decoded-lines.ts'
import type { Line } from '../../server/fold/piece.ts'
import { EVENT_ADD, EVENT_SET, SIDE_ASK, SIDE_BID } from '../../shared/lob-v1.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const HEADER = {
  source: 'kalshi',
  reading: { sequence: 'strict', useYesPrice: false },
  hasOverlap: true,
} as const
const FACTS = { name: 'a', lines: 1, firstTs: 1n, lastTs: 2n }

const plain = { sid: undefined, seq: undefined, ts: undefined }
const delta = { marketId: 'M', side: SIDE_ASK, price: 10_000, qty: -2.5e15 }
const set = { marketId: 'N:1', side: SIDE_BID, price: 0, qty: 0 }
const MESSAGES: readonly FeedMessage[] = [
  { sid: 7, seq: 2 ** 40, ts: 2n ** 61n + 1n, body: { kind: 'changes', event: EVENT_ADD, changes: [delta] } },
  { ...plain, ts: 0n, body: { kind: 'changes', event: EVENT_SET, changes: [set, delta] } },
  { ...plain, body: { kind: 'changes', event: EVENT_SET, changes: [] } },
  {
    sid: 0,
    seq: 0,
    ts: 5n,
    body: { kind: 'book', marketId: 'M', levels: [{ side: SIDE_ASK, price: 1, qty: 3 }] },
  },
  { ...plain, body: { kind: 'book', marketId: 'N:1', levels: [] } },
  { ...plain, body: { kind: 'other', name: 'trade' } },
  { sid: 1, seq: 9, ts: undefined, body: { kind: 'following', marketIds: new Set(['M']) } },
  // A subscription id of more than 32 bits.
  { sid: 2 ** 33, seq: 1, ts: 1n, body: { kind: 'changes', event: EVENT_ADD, changes: [delta] } },
]

function line(key: number, messages: readonly FeedMessage[], rest: Partial<Line> = {}): Line {
  return { recvTs: BigInt(key), n: undefined, key, isList: false, messages, ...rest }
}

/** The line with its messages as plain objects, because changes are decoded lazily. */
function plainLine(one: Line): Line {
  const messages = one.messages.map(({ sid, seq, ts, body }) => {
    const { kind } = body
    return {
      sid,
      seq,
      ts,
      body: kind === 'changes' ? { kind, event: body.event, changes: body.changes } : body,
    }
  })
  return { ...one, messages }
}

suite('lines in blocks', () => {
  test('are read back if a line has millions of messages', () => {
    const other: FeedMessage = { ...plain, body: { kind: 'other', name: 'ok' } }
    const lines = new DecodedLines(HEADER, IN_MEMORY)
    lines.add(
      line(
        1,
        Array.from({ length: 3_400_000 }, () => other),
      ),
      '',
    )
    lines.add(line(2, MESSAGES, { rowRecvTs: 5n }), '')
    lines.close()
    assert.deepEqual(
      Array.from(lines, ({ key, messages, rowRecvTs }) => [key, messages.length, rowRecvTs]),
      [
        [1, 3_400_000, undefined],
        [2, MESSAGES.length, 5n],
      ],
    )
  })

  test('are read back unchanged, over several blocks, and leave no file', async (t) => {
    const path = join(await temporaryDirectory(t), 'lines')
    const segments = new DecodedSegments(path)
    const lines: Line[] = []
    for (let key = 0; key < 1_000; key++)
      for (const message of MESSAGES) lines.push(line(2 ** 52 + key, [message]))
    const levels = Array.from({ length: 20_000 }, (_, index) => ({
      side: SIDE_BID,
      price: index % 9,
      qty: index,
    }))
    lines.push(
      line(1, MESSAGES, { isList: true, recvTs: undefined }),
      line(2, [], { isSkipped: true, isOverlap: false }),
      line(3, [{ ...plain, body: { kind: 'book', marketId: 'large', levels } }]),
    )
    const kept = new DecodedLines(HEADER, segments)
    for (const one of lines) kept.add(one, '')
    segments.add(FACTS, kept)
    const read = segments.read('a')!
    const inMemory = new DecodedLines(HEADER, IN_MEMORY)
    for (const one of lines) inMemory.add(one, '')
    inMemory.close()
    const [first, ...others] = lines
    const rare = { isSkipped: false, isOverlap: false, event: undefined, rowRecvTs: undefined }
    const expected = [
      { ...rare, ...first, isOverlap: true },
      ...others.map((one) => (one.isSkipped === true ? { ...rare, ...one } : one)),
    ]
    assert.deepEqual([...read.lines].map(plainLine), expected)
    assert.deepEqual([...inMemory].map(plainLine), expected)
    assert.deepEqual([...read.lines].length, read.lines.length, 'they can be read again')
    assert.deepEqual({ ...read, lines: [] }, { facts: FACTS, header: HEADER, lines: [], isNumbered: false })
    assert.ok(!existsSync(path))
    segments.discard()
  })

  test('are the same event only if their changes are equal', () => {
    const changed = (price: number): FeedMessage => ({
      ...plain,
      ts: 5n,
      body: { kind: 'changes', event: EVENT_SET, changes: [{ ...set, price }] },
    })
    const lines = new DecodedLines(HEADER, IN_MEMORY)
    for (const [key, price] of [1, 2, 1].entries()) lines.add(line(key, [changed(price)]), '')
    lines.close()
    const [first, other, again] = [...lines].map(({ messages }) => messages)
    assert.ok(areOfOneEvent(first!, again!))
    assert.ok(!areOfOneEvent(first!, other!))
    assert.ok(areOfOneEvent(first!, [changed(1)]))
  })

  test('of a recorder are read back with their numbers, events and rows', () => {
    const lines = [
      line(0, [], { n: 0, event: 'open' }),
      line(0, MESSAGES, { n: 1, isList: true, recvTs: 5n }),
      line(0, [{ ...plain, seq: -1, body: { kind: 'finished', marketId: 'M' } }], { n: 3, rowRecvTs: 7n }),
      line(0, [], { n: 2 ** 40, event: 'lost' }),
    ]
    const kept = new DecodedLines({ source: 'kalshi', recorder: 'host1' }, IN_MEMORY)
    for (const one of lines) kept.add(one, '')
    kept.close()
    const rare = { isSkipped: false, isOverlap: false, event: undefined, rowRecvTs: undefined }
    assert.deepEqual(
      [...kept].map(plainLine),
      lines.map((one) => (one.isList ? one : { ...rare, ...one })),
    )
  })

  test('are not kept if one of them is unknown or the disk is full', async (t) => {
    const segments = new DecodedSegments(join(await temporaryDirectory(t), 'missing', 'lines'))
    const unknown = new DecodedLines(HEADER, segments)
    for (const one of [line(1, MESSAGES), undefined, line(2, MESSAGES)]) unknown.add(one, '')
    segments.add(FACTS, unknown)
    const homeless = new DecodedLines(HEADER, segments)
    homeless.add(line(1, MESSAGES), '')
    segments.add({ ...FACTS, name: 'b' }, homeless)
    assert.deepEqual(
      [segments.read('a'), segments.read('b'), segments.read('c')],
      [undefined, undefined, undefined],
    )
    segments.discard()
  })
})
