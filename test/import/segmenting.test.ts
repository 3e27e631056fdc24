// How recordings become raw segments: where they are cut, what they contain, and how unreadable lines are handled.

import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { describeLakeWriteError } from '../../server/lake/lake-write-error.ts'
import { rawSegmentOfName } from '../../shared/lake-layout.ts'
import {
  Recordings,
  at,
  kalshiDelta,
  kalshiLine,
  ns,
  onlySegment,
  polymarketBook,
  polymarketChange,
  recordings,
  segmentPaths,
  segmentsOf,
} from '../support/segmented-recordings.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

test('a recording is cut where the hour advances, and each further piece begins with the previous line', async (t) => {
  const all = await recordings(t)
  const times = ['10:58:00', '10:59:59.999', '11:00:00', '11:30:00', '13:00:00', '23:59:59', '23:59:59.500']
  const lines = times.map(kalshiLine)
  const segmented = await all.import('kalshi', lines)
  const written = lines.map((line) => {
    const [, recvTs = '', frame = ''] = /^\{"recv_ts":(\d+),"msg":(.*)\}$/.exec(line)!
    return `{"recv_ts":"${recvTs}000000","frame":${frame}}`
  })
  const reading = { sequence: 'strict', use_yes_price: false }
  const header = { segment: 1, source: 'kalshi', reading }
  const further = { ...header, overlap: true }
  assert.deepEqual(await segmentsOf(all.lake), [
    ['2026-07-01 10', header, written.slice(0, 2)],
    ['2026-07-01 11', further, written.slice(1, 4)],
    ['2026-07-01 13', further, written.slice(3, 5)],
    ['2026-07-01 23', further, written.slice(4)],
  ])
  assert.deepEqual(segmented.dates, ['2026-07-01'])
  assert.equal(segmented.tally.messages, 7)
  assert.deepEqual(
    segmented.segments.map(({ facts, isPresent }) => [
      rawSegmentOfName(facts.name)?.hour,
      facts.lines,
      facts.firstTs,
      facts.lastTs,
      isPresent,
    ]),
    [
      [10, 2, BigInt(ns(at(times[0]!) + 40)), BigInt(ns(at(times[1]!) + 40)), false],
      [11, 3, BigInt(ns(at(times[1]!) + 40)), BigInt(ns(at(times[3]!) + 40)), false],
      [13, 2, BigInt(ns(at(times[3]!) + 40)), BigInt(ns(at(times[4]!) + 40)), false],
      [23, 3, BigInt(ns(at(times[4]!) + 40)), BigInt(ns(at(times[6]!) + 40)), false],
    ],
  )
})

test('a header states the reading options', async (t) => {
  const all = await recordings(t)
  await all.import('kalshi', [kalshiLine('10:00:00')], {
    series: 'OTHER',
    sequence: 'per-market',
    useYesPrice: true,
  })
  const [, header] = await onlySegment(all.lake)
  assert.deepEqual(header, {
    segment: 1,
    source: 'kalshi',
    reading: { series: 'OTHER', sequence: 'per-market', use_yes_price: true },
  })
})

test('the text of a frame is kept as received, in whatever shape it was recorded', async (t) => {
  const all = await recordings(t)
  const frame = '{"type":"trade" , "sid":1,"seq":1.0,"msg":{"ts_ms":1782900000000,"é":"\\u0041"}}'
  const same = JSON.stringify(JSON.parse(frame))
  const recv = '1782900000000'
  const whole = `{"recv_ts":"${recv}000000","frame":`
  const shapes: [string, string][] = [
    [frame, `{"frame":${frame}}`],
    [`  ${frame}\r`, `{"frame":${frame}}`],
    [`{"recv_ts":${recv},"msg":${frame}}`, `${whole}${frame}}`],
    [`{ "recv_ts" : "${recv}" , "data" : ${frame} }`, `${whole}${frame}}`],
    [`{"data":${frame}}`, `{"frame":${frame}}`],
    [`{"msg":${frame},"recv_ts":${recv}}`, `${whole}${same}}`],
    [`{"recv_ts":${recv},"host":"a","msg":${frame}}`, `${whole}${same}}`],
    [`{"recv_ts":${recv},"msg":${frame},"msg":${frame}}`, `${whole}${same}}`],
    [`{"recv_ts":${recv},"raw":${JSON.stringify(frame)}}`, `${whole}${frame}}`],
    [`{"recv_ts":${recv},"raw":${JSON.stringify(frame.replace(' , ', '\n,'))}}`, `${whole}${same}}`],
    [`${recv} ${frame}`, `${whole}${frame}}`],
    [`[${recv},${frame}]`, `${whole}${same}}`],
    [`[${frame}, ${frame}]`, `{"frames":[${frame}, ${frame}]}`],
    [`{"recv_ts":${recv},"msg":[${frame}]}`, `{"recv_ts":"${recv}000000","frames":[${frame}]}`],
    ['PONG', '{"text":"PONG"}'],
    [`${recv} PING`, `{"recv_ts":"${recv}000000","text":"PING"}`],
    [`{"recv_ts":${recv},"msg":"PONG"}`, `{"recv_ts":"${recv}000000","text":"PONG"}`],
  ]
  await all.import(
    'kalshi',
    shapes.map(([line]) => line),
  )
  const [, , lines] = await onlySegment(all.lake)
  for (const [index, [shape, expected]] of shapes.entries()) assert.equal(lines[index], expected, shape)
  assert.equal(lines.length, shapes.length)
})

test('a receive time within the frame is kept there, and is also written beside the frame', async (t) => {
  const all = await recordings(t)
  const frame = kalshiDelta('10:00:00').replace(/\}$/, ',"_received_at":"2026-07-01T10:00:00.123456789Z"}')
  await all.import('kalshi', [frame])
  const [, , lines] = await onlySegment(all.lake)
  assert.deepEqual(lines, [`{"recv_ts":"${at('10:00:00') / 1000}123456789","frame":${frame}}`])
})

test('polymarket: the time of a book, which is that of its last change, does not determine the hour', async (t) => {
  const all = await recordings(t)
  await all.import('polymarket', [
    `[${polymarketBook('03:00:00')},${polymarketBook('09:59:59', '8')}]`,
    'PONG',
    polymarketChange('10:00:01'),
    polymarketBook('07:00:00'),
    polymarketChange('11:00:01'),
    polymarketChange('11:00:02'),
  ])
  const places = (await segmentsOf(all.lake)).map(([place, , lines]) => [place, lines.length])
  assert.deepEqual(places, [
    ['2026-07-01 10', 4],
    ['2026-07-01 11', 3],
  ])
})

test('polymarket: books alone are filed by their receive times, or without them by the latest book', async (t) => {
  const all = await recordings(t)
  await all.import('polymarket', [`[${polymarketBook('03:00:00')},${polymarketBook('09:00:00', '8')}]`])
  await all.import('polymarket', [`{"recv_ts":${at('12:00:00')},"msg":${polymarketBook('03:00:00')}}`])
  assert.deepEqual(
    (await segmentsOf(all.lake)).map(([place]) => place),
    ['2026-07-01 09', '2026-07-01 12'],
  )
})

test('a late line stays in the open segment, and one wrong time moves no line', async (t) => {
  const all = await recordings(t)
  const times = ['10:59:59', '11:00:00', '10:59:59.900', '19:00:00', '11:00:02', '10:30:00', '11:00:03']
  await all.import(
    'kalshi',
    times.map((time) => kalshiDelta(time)),
  )
  assert.deepEqual(
    (await segmentsOf(all.lake)).map(([place, , lines]) => [place, lines.length]),
    [
      ['2026-07-01 10', 1],
      ['2026-07-01 11', 7],
    ],
  )
})

test('a line whose time jumps ahead waits for at most a thousand lines without a time', async (t) => {
  const all = await recordings(t)
  const snapshot = (seq: number): string =>
    `{"type":"orderbook_snapshot","sid":2,"seq":${seq},"msg":{"market_ticker":"A-B"}}`
  const snapshots = Array.from({ length: 3_000 }, (_, index) => snapshot(index + 1))
  const lines = [kalshiDelta('10:00:00'), kalshiDelta('10:00:01'), kalshiDelta('12:00:00'), ...snapshots]
  await all.import('kalshi', lines)
  const [place, , written] = await onlySegment(all.lake)
  assert.equal(place, '2026-07-01 10')
  assert.deepEqual(
    written,
    lines.map((line) => `{"frame":${line}}`),
  )
})

test('a recording without any times is refused by its name, or counted', async (t) => {
  const all = await recordings(t)
  const snapshot = '{"type":"orderbook_snapshot","sid":1,"seq":1,"msg":{"market_ticker":"A-B"}}'
  await assert.rejects(
    all.import('kalshi', [snapshot]),
    /\/0\.ndjson: no message of the recording carries a time$/,
  )
  const good = await all.file([kalshiLine('10:00:00')])
  const bad = await all.file([snapshot])
  const segmented = await all.segment('kalshi', [bad, good], { skipBad: true })
  await segmented.publish()
  assert.equal(segmented.tally.badLines, 1)
  assert.match(segmented.badLines[0]!.first[0]!, /no message of the recording carries a time/)
  assert.equal((await segmentPaths(all.lake)).length, 1)
})

test('a bad line stops the import with its file and line, and the lake is unchanged', async (t) => {
  const all = await recordings(t)
  const good = await all.file([kalshiLine('10:00:00'), kalshiLine('11:00:00'), kalshiLine('11:00:01')])
  const cases: [string, RegExp, string?][] = [
    ['{"type":', /:3: not valid JSON: .*\n\(--skip-bad imports the lines that can be read/],
    ['{"a":1}', /:3: an object that is neither a frame/],
    [kalshiDelta('10:00:00', { side: 'both' }), /:3: side is neither yes nor no/],
    [kalshiDelta('10:00:00', { market_ticker: 'x'.repeat(300) }), /:3: not a market id/],
    [kalshiDelta('10:00:00', { market_ticker: '../x' }), /:3: not a market id/],
    // With a series of its own, any text may be an id, but it must read back.
    [kalshiDelta('10:00:00', { market_ticker: '\uFEFFX' }), /:3: not a market id: "\uFEFFX"/, 'KX'],
    [kalshiDelta('10:00:00', { market_ticker: 'X\uD800' }), /:3: not a market id: "X\\ud800"/, 'KX'],
    [
      '{"recv_ts":"1","connection":"a/1/0/0","n":0,"event":"what"}',
      /:3: no line of a segment: a line has neither/,
    ],
    ['{"recv_ts":"1","connection":"A B/1","n":0,"text":"PONG"}', /:3: not a recorder's name/],
  ]
  for (const [line, reason, series] of cases) {
    const bad = await all.file([kalshiLine('10:00:00'), '', line, kalshiLine('10:00:02')])
    await assert.rejects(all.segment('kalshi', [good, bad], { series }), reason, line)
    assert.deepEqual(await segmentPaths(all.lake), [])
  }
})

test('with --skip-bad a mark replaces each unreadable line', async (t) => {
  const all = await recordings(t)
  const lines = [
    kalshiDelta('10:00:00'),
    '{"type":',
    kalshiDelta('10:00:01'),
    'x',
    kalshiDelta('11:00:00'),
    kalshiDelta('11:00:01'),
  ]
  const segmented = await all.import('kalshi', lines, { skipBad: true })
  assert.equal(segmented.tally.badLines, 2)
  assert.deepEqual(
    segmented.badLines.map(({ count, first }) => [count, first.length]),
    [[2, 2]],
  )
  assert.match(segmented.badLines[0]!.first[1]!, /\.ndjson:4: neither JSON nor a time/)
  const skipped = '{"skipped":1}'
  const frame = (index: number): string => `{"frame":${lines[index]!}}`
  assert.deepEqual(
    (await segmentsOf(all.lake)).map(([, , written]) => written),
    [
      [frame(0), skipped, frame(2), skipped],
      // The line before the skipped one.
      [frame(2), skipped, frame(4), frame(5)],
    ],
  )
})

test('an incomplete last line and damaged compression end a recording like a bad line', async (t) => {
  const all = await recordings(t)
  const path = await all.file([kalshiLine('10:00:00'), kalshiLine('10:00:01')], 'cut.ndjson.gz')
  const bytes = await readFile(path)
  await writeFile(path, bytes.subarray(0, -4))
  await assert.rejects(
    all.segment('kalshi', [path]),
    /cut\.ndjson\.gz:3: the gzip data is damaged or ends too early/,
  )
  const segmented = await all.segment('kalshi', [path], { skipBad: true })
  await segmented.publish()
  assert.equal(segmented.tally.badLines, 1)
  assert.equal((await segmentsOf(all.lake))[0]![2].at(-1), '{"skipped":1}')
})

test('the same lines are one segment, whether in one import or in several', async (t) => {
  const all = await recordings(t)
  const lines = ['10:00:00', '10:00:01', '11:00:00', '11:00:01'].map(kalshiLine)
  const paths = [await all.file(lines), await all.file(lines, 'again.ndjson.gz')]
  const first = await all.segment('kalshi', paths)
  assert.equal(first.segments.length, 2)
  await first.publish()
  const before = await segmentPaths(all.lake)
  assert.equal(before.length, 2)
  const second = await all.segment('kalshi', paths)
  assert.deepEqual(
    second.segments.map(({ isPresent }) => isPresent),
    [true, true],
  )
  await second.publish()
  assert.deepEqual(await segmentPaths(all.lake), before)
})

test('segments that are not published leave no files', async (t) => {
  const all = await recordings(t)
  const segmented = await all.segment('kalshi', [await all.file([kalshiLine('10:00:00')])])
  await segmented.discard()
  assert.deepEqual(await segmentPaths(all.lake), [])
  const controller = new AbortController()
  const lines = Array.from({ length: 20_000 }, (_, index) =>
    kalshiLine(`10:00:${String(index % 60).padStart(2, '0')}`),
  )
  const path = await all.file(lines.toSorted())
  const progress = { onBytes: () => controller.abort(new Error('stopped')) }
  await assert.rejects(all.segment('kalshi', [path], { signal: controller.signal, progress }), /stopped/)
  assert.deepEqual(await segmentPaths(all.lake), [])
})

test('unordered lines and lines of another exchange are refused by the name of their file', async (t) => {
  const all = await recordings(t)
  const lines = Array.from({ length: 120 }, (_, index) =>
    kalshiLine(`10:${String(index % 60).padStart(2, '0')}:00`),
  )
  await assert.rejects(
    all.import('kalshi', lines.toReversed()),
    /0\.ndjson: it goes back \d+ times in 120 messages/,
  )
  await assert.rejects(
    all.import('polymarket', lines),
    /these are messages of kalshi, not of polymarket; import them with --source kalshi/,
  )
  assert.deepEqual(await segmentPaths(all.lake), [])
})

test('a full disk is reported with its message, and leaves no files', async (t) => {
  await onSmallDisk(t, 4, async (disk) => {
    const all = new Recordings(await temporaryDirectory(t))
    const path = await all.file([kalshiLine('10:00:00')])
    const lake = join(disk.path, 'lake')
    await mkdir(lake)
    await disk.fill()
    const error = await all.segment('kalshi', [path], { lake }).then(
      () => assert.fail('nothing failed'),
      (reason: unknown) => reason,
    )
    assert.match(describeLakeWriteError(error, lake) ?? '', /its disk is full/)
    assert.deepEqual(await segmentPaths(lake), [])
  })
})
