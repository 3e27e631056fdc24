// The pieces that a fold reads from segments.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RawPieces } from '../../server/fold/raw-pieces.ts'
import { messageText } from '../../server/raw/segment-lines.ts'
import { SegmentWriter } from '../../server/raw/segment-writer.ts'
import { SeededRandom } from '../import/pieces/seeded-random.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const LINES = 4_000
const DATE = '2026-07-01'
const START = BigInt(Date.parse(`${DATE}T10:00:00Z`)) * 1_000_000n
const CONNECTION = 'host1/1782900000000/0/1'

async function writeSegment(lake: string, numbers: readonly number[]): Promise<string> {
  const writer = await SegmentWriter.open(lake, { source: 'kalshi', recorder: 'host1' })
  for (const n of numbers) {
    const recvTs = START + BigInt(n)
    writer.add(messageText(recvTs, `PONG ${n}`, { connection: CONNECTION, n }), recvTs)
  }
  const { name } = await writer.finish({ date: DATE, hour: 10, recorder: 'host1' })
  return name
}

async function readNumbers(lake: string, names: readonly string[]): Promise<(number | undefined)[]> {
  const signal = new AbortController().signal
  const raw = new RawPieces({ lake, source: 'kalshi', segmentsOf: () => names, signal })
  const numbers: (number | undefined)[] = []
  for await (const pieces of raw.hoursOf(DATE))
    for (const { lines } of pieces) for (const { n } of lines) numbers.push(n)
  return numbers
}

test('each line of a connection is read once and in order, however its segments overlap or are interleaved', async (t) => {
  const lake = await temporaryDirectory(t)
  const random = new SeededRandom(1)
  const all = Array.from({ length: LINES }, (_, n) => n)
  const names = [
    await writeSegment(lake, all.slice(0, 1_000)),
    await writeSegment(lake, all.slice(700, 3_000)),
    await writeSegment(lake, random.shuffled(all.slice(2_500))),
  ]
  assert.deepEqual(await readNumbers(lake, names), all)
  assert.deepEqual(await readNumbers(lake, names.slice(0, 2)), all.slice(0, 3_000))
})
