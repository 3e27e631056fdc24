// Every kind of segment line is read as it was written.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import type { Frame } from '../../server/feed/frame.ts'
import {
  SKIPPED_TEXT,
  SegmentLineError,
  eventText,
  framesText,
  headerText,
  messageText,
  parseSegmentLine,
  seriesText,
} from '../../server/raw/segment-lines.ts'
import type { ConnectionPlace, SegmentHeader } from '../../server/raw/segment-lines.ts'

const aTime = fc.bigInt({ min: 0n, max: 9_223_286_400_000_000_000n })
const maybeTime = fc.option(aTime, { nil: undefined })
const aConnection = fc.oneof(fc.constant('host1/1783015200000/0/1'), fc.string())
const maybePlace: fc.Arbitrary<ConnectionPlace | undefined> = fc.option(
  fc.record({ connection: aConnection, n: fc.nat() }),
  { nil: undefined },
)
const aFrame = fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<Frame>

/** As JSON reads it: -0 is 0. */
const asRead = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

test('frames and lists of frames are read as they were written, with their text', () => {
  fc.assert(
    fc.property(
      maybeTime,
      maybePlace,
      fc.oneof(aFrame, fc.array(aFrame, { maxLength: 4 })),
      (recvTs, place, value) => {
        const isList = Array.isArray(value)
        const json = JSON.stringify(value)
        const text = framesText(recvTs, json, isList, place)
        assert.ok(!text.includes('\n'))
        assert.ok(typeof JSON.parse(text) === 'object')
        const line = parseSegmentLine(text)
        assert.ok(line.kind === 'frames')
        assert.deepEqual(asRead(line.frames), asRead(isList ? value : [value]))
        assert.deepEqual(
          {
            recvTs: line.recvTs,
            connection: line.connection,
            n: line.n,
            isList: line.isList,
            text: line.text,
          },
          { recvTs, connection: place?.connection, n: place?.n, isList, text: json },
        )
      },
    ),
  )
})

test('a frame keeps the text that it was received with', () => {
  const json = '{ "a" : 1.0, "b":1782316195033836123 ,"a":2 }'
  const line = parseSegmentLine(framesText(1n, json, false))
  assert.ok(line.kind === 'frames')
  assert.equal(line.text, json)
})

test('non-JSON messages, events and series are read as they were written', () => {
  fc.assert(
    fc.property(
      aTime,
      fc.record({ connection: aConnection, n: fc.nat() }),
      fc.string(),
      fc.constantFrom('open' as const, 'close' as const, 'alive' as const, 'lost' as const),
      fc.dictionary(
        fc.string().filter((key) => key !== '__proto__'),
        fc.string(),
      ),
      (recvTs, place, text, event, series) => {
        assert.deepEqual(parseSegmentLine(messageText(recvTs, text, place)), {
          kind: 'text',
          recvTs,
          ...place,
          text,
        })
        assert.deepEqual(parseSegmentLine(eventText(recvTs, event, place)), {
          kind: 'event',
          recvTs,
          ...place,
          event,
        })
        const bySeries = new Map(Object.entries(series))
        const line = parseSegmentLine(seriesText(recvTs, bySeries))
        assert.ok(line.kind === 'series')
        assert.deepEqual([line.recvTs, line.series], [recvTs, bySeries])
      },
    ),
  )
  assert.equal(parseSegmentLine(SKIPPED_TEXT).kind, 'skipped')
})

test('a header states the reading options, and keeps its text', () => {
  const headers: [SegmentHeader, string][] = [
    [
      { source: 'kalshi', reading: { series: 'KXHIGHNY', sequence: 'per-market', useYesPrice: true } },
      '{"segment":1,"source":"kalshi","reading":{"series":"KXHIGHNY","sequence":"per-market","use_yes_price":true}}',
    ],
    [
      { source: 'polymarket', reading: { series: undefined, sequence: 'strict', useYesPrice: false } },
      '{"segment":1,"source":"polymarket","reading":{"sequence":"strict","use_yes_price":false}}',
    ],
    [
      {
        source: 'kalshi',
        reading: { series: undefined, sequence: 'ignore', useYesPrice: false },
        hasOverlap: true,
      },
      '{"segment":1,"source":"kalshi","overlap":true,"reading":{"sequence":"ignore","use_yes_price":false}}',
    ],
    [{ source: 'kalshi', recorder: 'host1' }, '{"segment":1,"source":"kalshi","recorder":"host1"}'],
  ]
  for (const [header, text] of headers) {
    assert.equal(headerText(header), text)
    const line = parseSegmentLine(text)
    assert.ok(line.kind === 'header')
    assert.deepEqual(line.header, header)
  }
})

test('spaces between the members of a line do not matter', () => {
  const line = parseSegmentLine(
    '{ "recv_ts": "17", "connection": "a/1/0/0", "n": 3, "frame": { "type": "ok" } }',
  )
  assert.deepEqual(line, {
    kind: 'frames',
    recvTs: 17n,
    connection: 'a/1/0/0',
    n: 3,
    frames: [{ type: 'ok' }],
    isList: false,
    text: '{"type":"ok"}',
  })
})

test('an invalid line is refused with the reason', () => {
  const cases: [string, RegExp][] = [
    ['', /not valid JSON/],
    ['[]', /not a JSON object/],
    ['{"recv_ts":"1","frame":{"type":"a"}', /not valid JSON/],
    ['{"recv_ts":"1","frame":7}', /frame is not an object/],
    ['{"recv_ts":"1","frame":{"type":"a"},"frame":2}', /not valid JSON/],
    ['{"recv_ts":"1","frames":{"type":"a"}}', /frames is not a list of frames/],
    ['{"recv_ts":"1","frames":[1]}', /frames is not a list of frames/],
    ['{"recv_ts":1,"text":"PONG"}', /recv_ts is not a time/],
    ['{"recv_ts":"1","connection":"a","text":"PONG"}', /n is not a whole number/],
    ['{"recv_ts":"1"}', /neither frame/],
    ['{"event":"open"}', /neither frame/],
    ['{"recv_ts":"1","event":"else"}', /neither frame/],
    ['{"recv_ts":"1","event":"series","series":{"a":1}}', /a series is not a text/],
    ['{"skipped":2}', /neither frame/],
    ['{"segment":2,"source":"kalshi","recorder":"a"}', /its format is 2, which this version does not read/],
    ['{"segment":1,"source":"nyse","recorder":"a"}', /unknown source, "nyse"/],
    ['{"segment":1,"source":"kalshi"}', /neither a reading nor a recorder/],
    ['{"segment":1,"source":"kalshi","recorder":"A/B"}', /neither a reading nor a recorder/],
    [
      '{"segment":1,"source":"kalshi","reading":{"sequence":"loose","use_yes_price":false}}',
      /reading settings of its header/,
    ],
  ]
  for (const [text, reason] of cases) {
    assert.throws(
      () => parseSegmentLine(text),
      (error) => error instanceof SegmentLineError && reason.test(error.message),
      text,
    )
  }
})

test('any text is read or refused in this way', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.dictionary(fc.string(), fc.jsonValue()).map((v) => JSON.stringify(v)),
      ),
      (text) => {
        try {
          parseSegmentLine(text)
        } catch (error) {
          assert.ok(error instanceof SegmentLineError)
        }
      },
    ),
  )
})
