// Recordings of some of a connection's markets (`--sequence per-market`): missing numbers belong to other markets, so a next
// number in another file usually belongs to another market, too, and proves nothing.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { runImport } from '../support/import-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { UNKNOWN, textAt } from './pieces/book-steps.ts'
import { readLake } from './pieces/lake-reader.ts'

const MINUTE = 60_000
const at = (minutes: number): bigint => BigInt(MS + minutes * MINUTE) * 1_000_000n

function line(minutes: number, frame: object): string {
  return `${JSON.stringify({ recv_ts: MS + minutes * MINUTE, msg: frame })}\n`
}

function change(seq: number, minutes: number, market: string): string {
  return line(minutes, delta(seq, { market_ticker: market, ts_ms: MS + minutes * MINUTE }))
}

async function booksOf(
  directory: string,
  files: readonly string[],
  imports: readonly (readonly number[])[],
): Promise<ReadonlyMap<string, readonly { ts: bigint; text: string }[]>> {
  const lake = join(directory, `lake-${imports.length}`)
  for (const numbers of imports) {
    const paths = numbers.map((number) => join(directory, `${number}.ndjson`))
    for (const [index, path] of paths.entries()) await writeFile(path, files[numbers[index]!]!)
    await runImport(lake, 'kalshi', { paths }, { sequence: 'per-market' })
  }
  return (await readLake(lake)).steps
}

test('the next number in another market’s file does not extend a book over an unrecorded time', async (t) => {
  const directory = await temporaryDirectory(t)
  const files = [
    line(0, snapshot(1, { market_ticker: T, yes: [[40, 9]] })) + change(3, 10, T),
    // The file of the connection's other market begins with the next number; T is no longer recorded.
    change(4, 11, B) + line(12, snapshot(5, { market_ticker: B, yes: [[40, 9]] })) + change(9, 50, B),
  ]
  for (const imports of [[[0, 1]], [[0], [1]]]) {
    const steps = await booksOf(directory, files, imports)
    assert.notEqual(textAt(steps.get(T)!, at(10)), UNKNOWN)
    assert.equal(textAt(steps.get(T)!, at(11)), UNKNOWN)
    assert.notEqual(textAt(steps.get(B)!, at(49)), UNKNOWN)
  }
})

test('trades with separate numbers beside a market’s book do not start another connection', async (t) => {
  const directory = await temporaryDirectory(t)
  const trade = { type: 'trade', sid: 9, seq: 1, msg: { market_ticker: T, ts_ms: MS + 5 * MINUTE } }
  const files = [
    line(0, snapshot(3, { market_ticker: T, yes: [[40, 9]] })) + line(5, trade) + change(8, 10, T),
  ]
  const steps = await booksOf(directory, files, [[0]])
  assert.equal(textAt(steps.get(T)!, at(9)), '0:4000=9000000')
  assert.equal(textAt(steps.get(T)!, at(10)), '0:4000=9000000 0:4500=5000000')
})

test('after a skipped line all books are unknown until their next snapshot, because it may be of any market', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'recording.ndjson')
  const lines = [
    line(0, snapshot(1, { market_ticker: T, yes: [[40, 9]] })),
    line(1, snapshot(2, { market_ticker: B, yes: [[40, 9]] })),
    change(5, 10, T),
    change(7, 12, B).slice(0, 40) + '\n',
    change(9, 20, T),
    line(30, snapshot(12, { market_ticker: B, yes: [[40, 9]] })),
    change(15, 40, T),
  ]
  await writeFile(path, lines.join(''))
  for (const sequence of ['per-market', 'ignore'] as const) {
    const lake = join(directory, sequence)
    await runImport(lake, 'kalshi', { paths: [path] }, { sequence, skipBad: true })
    const { steps } = await readLake(lake)
    const isKnown = (market: string): boolean[] =>
      [9, 11, 29, 31].map((minutes) => textAt(steps.get(market)!, at(minutes)) !== UNKNOWN)
    assert.deepEqual(isKnown(T), [true, false, false, false], sequence)
    assert.deepEqual(isKnown(B), [true, false, false, true], sequence)
  }
})

test('a long file with unordered lines is refused by its name', async (t) => {
  const directory = await temporaryDirectory(t)
  const numbers = Array.from({ length: 20_100 }, (_, index) => index + 1)
  const fileOf = async (name: string, seqs: readonly number[]): Promise<string> => {
    const path = join(directory, name)
    await writeFile(path, seqs.map((seq) => change(seq, seq / 1000, T)).join(''))
    return path
  }
  const reversed = await fileOf('reversed.ndjson', numbers.toReversed())
  await assert.rejects(runImport(join(directory, 'lake'), 'kalshi', { paths: [reversed] }), (error) => {
    assert.ok(error instanceof Error)
    assert.match(
      error.message,
      /reversed\.ndjson: it goes back \d+ times in \d+ messages: .* sort them by receive time/,
    )
    return true
  })
})

test('without numbers, a repeated subscription message starts another connection', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'recording.ndjson')
  const announced = { id: 1, type: 'subscribed', msg: { channel: 'orderbook_delta', sid: 1 } }
  const trades = { id: 2, type: 'subscribed', msg: { channel: 'trade', sid: 2 } }
  await writeFile(
    path,
    line(0, announced) +
      line(0, snapshot(1, { market_ticker: T, yes: [[40, 9]] })) +
      line(1, trades) +
      change(2, 10, T) +
      line(30, announced) +
      line(40, snapshot(1, { market_ticker: T, yes: [[40, 9]] })),
  )
  const lake = join(directory, 'lake')
  await runImport(lake, 'kalshi', { paths: [path] }, { sequence: 'ignore' })
  const steps = (await readLake(lake)).steps.get(T)!
  assert.notEqual(textAt(steps, at(9)), UNKNOWN)
  assert.notEqual(textAt(steps, at(10)), UNKNOWN)
  for (const minutes of [11, 29, 39]) assert.equal(textAt(steps, at(minutes)), UNKNOWN, `${minutes}`)
  assert.notEqual(textAt(steps, at(40)), UNKNOWN)
})
