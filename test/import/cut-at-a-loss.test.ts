// Messages are missing where a recording was cut: the other messages of the connection before the cut prove no more than they
// do within one file.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { runImport } from '../support/import-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { UNKNOWN, textAt } from './pieces/book-steps.ts'
import { lakeHashes, readLake } from './pieces/lake-reader.ts'

const MINUTE = 60_000
const at = (minutes: number): bigint => BigInt(MS + minutes * MINUTE) * 1_000_000n

const line = (minutes: number, frame: object): string =>
  `${JSON.stringify({ recv_ts: MS + minutes * MINUTE, msg: frame })}\n`

const change = (seq: number, minutes: number, market = T): string =>
  line(minutes, delta(seq, { market_ticker: market, ts_ms: MS + minutes * MINUTE }))

/** A message without a sequence number. */
const ticker = (minutes: number): string =>
  line(minutes, { type: 'ticker', sid: 2, msg: { market_ticker: T, ts_ms: MS + minutes * MINUTE } })

const book = (seq: number, minutes: number, market = T): string =>
  line(minutes, snapshot(seq, { market_ticker: market, yes: [[40, 9]] }))

/** A lake of files `0`, `1` …, each list of numbers in a separate import. */
async function lakeOf(
  directory: string,
  files: readonly string[],
  imports: readonly (readonly number[])[],
): Promise<string> {
  const lake = join(directory, `lake-${JSON.stringify(imports)}`)
  for (const numbers of imports) {
    const paths = numbers.map((number) => join(directory, `${files.length}-${number}.ndjson`))
    for (const [index, path] of paths.entries()) await writeFile(path, files[numbers[index]!]!)
    await runImport(lake, 'kalshi', { paths })
  }
  return lake
}

test('numbers missing at a cut make books unknown after the last number before it', async (t) => {
  const directory = await temporaryDirectory(t)
  // Numbers 3 and 4 may have been sent at any time after 2; the tickers do not show when.
  const before = book(1, 0) + change(2, 10) + ticker(20) + ticker(29)
  const after = ticker(31) + change(5, 40) + book(6, 50) + change(7, 55)
  const whole = await lakeOf(directory, [before + after], [[0]])
  const wholeBooks = await readLake(whole)
  assert.notEqual(textAt(wholeBooks.steps.get(T)!, at(10)), UNKNOWN)
  assert.equal(textAt(wholeBooks.steps.get(T)!, at(11)), UNKNOWN)
  for (const imports of [[[0, 1]], [[1, 0]], [[0], [1]], [[1], [0]]]) {
    const lake = await lakeOf(directory, [before, after], imports)
    assert.deepEqual(await lakeHashes(lake), await lakeHashes(whole), JSON.stringify(imports))
  }
})

test('a subscription that restarts after a cut does not shorten the known time before it', async (t) => {
  const directory = await temporaryDirectory(t)
  const before = book(1, 0) + change(2, 10) + ticker(29)
  const next = book(1, 30) + change(2, 35) + ticker(38)
  const later = change(5, 40) + book(6, 50)
  for (const imports of [[[0, 1, 2]], [[2], [1], [0]]]) {
    const { steps } = await readLake(await lakeOf(directory, [before, next, later], imports))
    assert.notEqual(textAt(steps.get(T)!, at(28)), UNKNOWN)
    assert.notEqual(textAt(steps.get(T)!, at(35)), UNKNOWN)
    assert.equal(textAt(steps.get(T)!, at(36)), UNKNOWN)
  }
})

test('messages that another recorder missed at its cut do not affect this recorder', async (t) => {
  const directory = await temporaryDirectory(t)
  const own = book(1, 0) + change(2, 10) + ticker(29)
  const other = change(5, 40, B) + book(6, 50, B)
  const { steps } = await readLake(await lakeOf(directory, [own, other], [[0, 1]]))
  assert.notEqual(textAt(steps.get(T)!, at(28)), UNKNOWN)
})

/** A change of T under subscription 1, or of B under subscription 3. */
const own = (seq: number, minutes: number): string => change(seq, minutes)
const other = (seq: number, minutes: number): string =>
  line(minutes, delta(seq, { market_ticker: B, ts_ms: MS + minutes * MINUTE }, 3))
const otherBook = (minutes: number): string =>
  line(minutes, { ...snapshot(1, { market_ticker: B, yes: [[40, 9]] }), sid: 3 })

const MIDNIGHT = (Date.UTC(2026, 5, 25) - MS) / MINUTE

test('numbers missing over midnight make books unknown after the last number before it', async (t) => {
  // The connection continues with another subscription.
  const recording =
    book(1, MIDNIGHT - 50) +
    otherBook(MIDNIGHT - 50) +
    own(2, MIDNIGHT - 30) +
    other(2, MIDNIGHT - 10) +
    own(4, MIDNIGHT + 7) +
    other(3, MIDNIGHT + 10)
  const { steps } = await readLake(await lakeOf(await temporaryDirectory(t), [recording], [[0]]))
  assert.notEqual(textAt(steps.get(T)!, at(MIDNIGHT - 30)), UNKNOWN)
  for (const minutes of [MIDNIGHT - 29, MIDNIGHT - 10, MIDNIGHT, MIDNIGHT + 8])
    assert.equal(textAt(steps.get(T)!, at(minutes)), UNKNOWN)
  assert.notEqual(textAt(steps.get(B)!, at(MIDNIGHT + 10)), UNKNOWN)
})

test('a subscription with a loss does not continue over midnight even if another one of its connection does', async (t) => {
  const recording =
    book(1, MIDNIGHT - 400) +
    // Beside an older subscription, number 1 counts as another connection until the numbers show that it is not.
    otherBook(MIDNIGHT - 310) +
    own(2, MIDNIGHT - 309) +
    own(4, MIDNIGHT - 130) +
    other(2, MIDNIGHT + 10) +
    own(5, MIDNIGHT + 20)
  const { steps } = await readLake(await lakeOf(await temporaryDirectory(t), [recording], [[0]]))
  assert.notEqual(textAt(steps.get(T)!, at(MIDNIGHT - 309)), UNKNOWN)
  for (const minutes of [MIDNIGHT - 300, MIDNIGHT - 120, MIDNIGHT - 1])
    assert.equal(textAt(steps.get(T)!, at(minutes)), UNKNOWN)
})

test('messages after a loss are not joined to the previous connection, even if its numbers fit', async (t) => {
  const first = book(1, 0) + own(2, 10) + own(3, 20)
  const second = book(1, 100) + own(2, 110) + own(4, 180) + own(5, 190)
  const lake = await lakeOf(await temporaryDirectory(t), [first + second], [[0]])
  const { steps } = await readLake(lake)
  for (const minutes of [20, 110]) assert.notEqual(textAt(steps.get(T)!, at(minutes)), UNKNOWN)
  for (const minutes of [50, 120, 185]) assert.equal(textAt(steps.get(T)!, at(minutes)), UNKNOWN)
})

test('a subscription without messages after midnight continues with its connection, in any order of its files', async (t) => {
  const directory = await temporaryDirectory(t)
  const first = book(1, MIDNIGHT - 120) + otherBook(MIDNIGHT - 120) + own(2, MIDNIGHT - 70)
  const second = own(2, MIDNIGHT - 70) + own(3, MIDNIGHT - 10)
  const third = own(3, MIDNIGHT - 10) + own(4, MIDNIGHT + 10)
  const whole = await lakeOf(directory, [first, second, third], [[0, 1, 2]])
  assert.notEqual(textAt((await readLake(whole)).steps.get(B)!, at(MIDNIGHT + 5)), UNKNOWN)
  // The last import folds the first date with the state of the second that an earlier import left.
  for (const order of [
    [0, 1, 2, 1],
    [0, 1, 2, 0],
    [2, 0, 1, 0],
  ]) {
    const imports = order.map((number) => [number])
    const lake = await lakeOf(directory, [first, second, third], imports)
    assert.deepEqual(await lakeHashes(lake), await lakeHashes(whole), JSON.stringify(imports))
  }
})

test('of two connections with fitting numbers, a file is joined to the one that has all its markets', async (t) => {
  const directory = await temporaryDirectory(t)
  const both = book(1, 0) + book(2, 0, B) + change(3, 2)
  const one = book(1, 5) + change(2, 6) + change(3, 8)
  const { steps } = await readLake(
    await lakeOf(directory, [both, one, change(4, 9, B) + change(5, 9)], [[0, 1, 2]]),
  )
  const levels = (minutes: number) => textAt(steps.get(B)!, at(minutes))
  assert.notEqual(levels(8), levels(9))
  assert.notEqual(levels(9), UNKNOWN)
})
