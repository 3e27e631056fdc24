// A raw folder is a recording: segments of one lake can be imported into another unchanged.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { eventText, framesText, headerText, messageText, seriesText } from '../../server/raw/segment-lines.ts'
import { readSegment } from '../../server/raw/segment-reader.ts'
import { SegmentWriter } from '../../server/raw/segment-writer.ts'
import {
  Recordings,
  at,
  kalshiDelta,
  kalshiLine,
  recordings,
  segmentPaths,
  segmentsOf,
} from '../support/segmented-recordings.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const SHAPES = ['bare', 'wrapped', 'prefixed', 'text', 'extra'] as const
type Shape = (typeof SHAPES)[number]

const SHAPED: Readonly<Record<Shape, (frame: string, recvMs: number) => string>> = {
  bare: (frame) => frame,
  wrapped: (frame, recvMs) => `{"recv_ts":${recvMs},"msg":${frame}}`,
  prefixed: (frame, recvMs) => `${recvMs}	${frame}`,
  text: (frame, recvMs) => `{"ts":"${recvMs}","raw":${JSON.stringify(frame)}}`,
  extra: (frame, recvMs) => `{"received_at":${recvMs},"host":"a","data":${frame}}`,
}

interface Step {
  readonly stepMs: number
  readonly kind: 'change' | 'book' | 'heartbeat' | 'bad' | 'private' | 'wrong time' | 'no time'
  readonly shape: Shape
}

const someSteps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    stepMs: fc.oneof({ weight: 6, arbitrary: fc.nat(20_000) }, { weight: 1, arbitrary: fc.nat(7_200_000) }),
    kind: fc.oneof(
      { weight: 6, arbitrary: fc.constant('change' as const) },
      fc.constantFrom(
        'book' as const,
        'heartbeat' as const,
        'bad' as const,
        'private' as const,
        'wrong time' as const,
        'no time' as const,
      ),
    ),
    shape: fc.constantFrom(...SHAPES),
  }),
  { minLength: 1, maxLength: 60 },
)

function kalshiRecording(steps: readonly Step[]): string[] {
  let ms = at('22:30:00')
  return steps.map(({ stepMs, kind, shape }, index) => {
    ms += stepMs
    const seq = index + 1
    const ts = kind === 'wrong time' ? ms + 40 * 86_400_000 : kind === 'no time' ? undefined : ms
    const msg = { market_ticker: 'A-B', price_dollars: '0.1', delta_fp: '1', side: 'no', ts_ms: ts }
    if (kind === 'bad') return '{"type":'
    if (kind === 'heartbeat') return `${ms} PONG`
    const frame =
      kind === 'book'
        ? { type: 'orderbook_snapshot', sid: 1, seq, msg: { market_ticker: 'A-B' } }
        : { type: kind === 'private' ? 'fill' : 'orderbook_delta', sid: 1, seq, msg }
    // The text differs from the output of JSON.stringify.
    return SHAPED[shape](JSON.stringify(frame).replace('"sid":1', '"sid" : 1.0'), ms + 40)
  })
}

test('the raw folder of one lake is imported into another as the same segments', async (t) => {
  const directory = await temporaryDirectory(t)
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(someSteps, { minLength: 1, maxLength: 3 }), async (files) => {
      const all = new Recordings(join(directory, String(run++)))
      const paths: string[] = []
      for (const steps of files)
        paths.push(await all.file([...kalshiRecording(steps), kalshiLine('22:00:00')]))
      await (await all.segment('kalshi', paths, { skipBad: true })).publish()
      const names = await namesIn(all.lake)
      const copies = { lake: join(all.directory, 'copy'), series: 'OTHER', sequence: 'ignore' as const }
      const copied = await all.segment('kalshi', await segmentPaths(all.lake), copies)
      await copied.publish()
      assert.equal(copied.tally.badLines, 0)
      assert.deepEqual(await namesIn(copies.lake), names)
      // In one stream the segments have no names that state their hour.
      const contents = (await segmentsOf(all.lake)).map(([, header, lines]) => [
        JSON.stringify(header),
        ...lines,
      ])
      const stream = Readable.from([Buffer.from(`${contents.flat().join('\n')}\n`)])
      const piped = await all.segment('kalshi', ['-'], { lake: join(all.directory, 'piped'), stdin: stream })
      await piped.publish()
      assert.deepEqual(digestsOf(await namesIn(join(all.directory, 'piped'))), digestsOf(names))
      await rm(all.directory, { recursive: true })
    }),
    { numRuns: 40 },
  )
})

async function namesIn(lake: string): Promise<string[]> {
  return (await segmentPaths(lake)).map((path) => path.slice(lake.length))
}

const digestsOf = (names: readonly string[]): string[] =>
  names.map((name) => name.slice(-'0123456789abcdef0123456789abcdef.ndjson.gz'.length)).toSorted()

test('segments of a recorder keep connections, numbers and events', async (t) => {
  const all = await recordings(t)
  const source = 'kalshi' as const
  const recvTs = (index: number): bigint => BigInt(at('10:00:00')) * 1_000_000n + BigInt(index)
  const connections = ['host1/1783015200000/0/1', 'host1/1783015200000/1/1']
  const writer = await SegmentWriter.open(all.lake, { source, recorder: 'host1' })
  const lines = [
    seriesText(recvTs(0), new Map([['A-B', 'A']])),
    ...connections.map((connection) => eventText(recvTs(1), 'open', { connection, n: 0 })),
    // Both have a subscription 1 whose numbers begin at 1.
    ...Array.from({ length: 400 }, (_, index) =>
      framesText(recvTs(2 + index), `{"type":"trade","sid":1,"seq":${(index >> 1) + 1},"msg":{}}`, false, {
        connection: connections[index % 2]!,
        n: (index >> 1) + 1,
      }),
    ),
    messageText(recvTs(500), 'PONG', { connection: connections[0]!, n: 201 }),
    eventText(recvTs(501), 'close', { connection: connections[0]!, n: 202 }),
  ]
  for (const line of lines) writer.add(line, recvTs(0))
  await writer.finish({ date: '2026-07-01', hour: 10, recorder: 'host1' })
  const names = await namesIn(all.lake)
  const lake = join(all.directory, 'copy')
  await (await all.segment(source, await segmentPaths(all.lake), { lake })).publish()
  assert.deepEqual(await namesIn(lake), names)
  // Without the header the lines still state their recorder.
  const bare = join(all.directory, 'bare')
  await (await all.segment(source, [await all.file(lines.slice(1))], { lake: bare })).publish()
  const [path = ''] = await segmentPaths(bare)
  const read = []
  for await (const batch of readSegment(path)) read.push(...batch)
  assert.ok(read[0]?.kind === 'header')
  assert.deepEqual(read[0].header, { source, recorder: 'host1' })
  assert.equal(read.length, lines.length)
  assert.deepEqual([read[1]?.kind, read[1]?.connection, read[1]?.n], ['event', connections[0], 0])
})

test('a segment and a recording in one file stay apart', async (t) => {
  const all = await recordings(t)
  const reading = { series: 'X', sequence: 'ignore' as const, useYesPrice: true }
  const header = headerText({ source: 'kalshi', reading })
  const owned = framesText(1n, kalshiDelta('10:00:01'), false, { connection: 'host1/1/0/0', n: 0 })
  await all.import('kalshi', [
    kalshiLine('10:00:00'),
    owned,
    kalshiLine('10:00:02'),
    header,
    kalshiLine('10:00:03'),
  ])
  const found = (await segmentsOf(all.lake)).map(([, { reading: read, recorder }, lines]) => [
    read,
    recorder,
    lines.length,
  ])
  const own = { sequence: 'strict', use_yes_price: false }
  const others = { series: 'X', sequence: 'ignore', use_yes_price: true }
  assert.deepEqual(
    new Set(found.map((one) => JSON.stringify(one))),
    new Set(
      [
        [own, null, 1],
        [null, 'host1', 1],
        [own, null, 1],
        [others, null, 1],
      ].map((one) => JSON.stringify(one)),
    ),
  )
  assert.equal(found.length, 4)
})

test('a segment of another exchange is refused by name', async (t) => {
  const all = await recordings(t)
  await assert.rejects(
    all.import('kalshi', ['{"segment":1,"source":"polymarket","recorder":"a"}']),
    /0\.ndjson: it is a segment of polymarket, not of kalshi; import it with --source polymarket/,
  )
})
