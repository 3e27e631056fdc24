// The times of snapshots. They have only the recorder's time, whose clock may be off; the other messages of the connection show
// by how much.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { foldHarness, runImport } from '../support/import-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { UNKNOWN, textAt } from './pieces/book-steps.ts'
import { lakeHashes, readLake } from './pieces/lake-reader.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
/** The next full hour and the next midnight, ms after `MS`. */
const FULL_HOUR = HOUR - (MS % HOUR)
const MIDNIGHT = 24 * HOUR - (MS % (24 * HOUR))

/** A line about what happened at `ms` after `MS`, received 20 ms later by a clock that is ahead by `aheadMs`. */
function line(ms: number, aheadMs: number, frame: unknown): string {
  return `${JSON.stringify({ recv_ts: MS + ms + 20 + aheadMs, msg: frame })}\n`
}

const book = (seq: number, ms: number, aheadMs: number, ticker = T): string =>
  line(ms, aheadMs, snapshot(seq, { market_ticker: ticker, yes: [[40, 9]] }))

const change = (seq: number, ms: number, aheadMs: number, ticker = T): string =>
  line(ms, aheadMs, delta(seq, { market_ticker: ticker, ts_ms: MS + ms }))

const FIRST = '0:4000=9000000'
const SECOND_BOOK = '0:4000=9000000 0:4500=5000000'

/** Imports the files of each import in turn, and returns a market's book at given times, ms after `MS`. */
async function lakeOf(
  directory: string,
  name: string,
  imports: readonly (readonly string[])[],
): Promise<{ readonly lake: string; readonly bookAt: (id: string, ms: number) => string }> {
  const lake = join(directory, name)
  for (const [number, files] of imports.entries()) {
    const paths = files.map((_, index) => join(directory, `${name}-${number}-${index}.ndjson`))
    for (const [index, path] of paths.entries()) await writeFile(path, files[index]!)
    await runImport(lake, 'kalshi', { paths })
  }
  const { steps } = await readLake(lake)
  return { lake, bookAt: (id, ms) => textAt(steps.get(id) ?? [], BigInt(MS + ms) * 1_000_000n) }
}

/** All ways to import three files one after the other, and at once. */
function waysOf([a, b, c]: readonly [string, string, string]): string[][][] {
  return [
    [[a + b + c]],
    [[c, a, b]],
    [[a], [b], [c]],
    [[c], [b], [a]],
    [[b], [a, c]],
    [[a, c], [b]],
    [[b], [c], [a]],
  ]
}

for (const behindMs of [3 * SECOND, 60 * SECOND, 115 * SECOND]) {
  for (const [place, startMs] of [
    ['in an hour', 0],
    ['beside an hour’s end', FULL_HOUR - 2 * SECOND],
    ['beside a date’s end', MIDNIGHT - 300 * SECOND],
  ] as const) {
    test(`a clock that is behind by ${behindMs} ms shows no first book too early, ${place}, however it is cut`, async (t) => {
      const directory = await temporaryDirectory(t)
      const files = [
        book(1, startMs, -behindMs) + book(2, startMs + 1, -behindMs, B),
        change(3, startMs + 5 * SECOND, -behindMs) + book(4, startMs + 6 * SECOND, -behindMs),
        change(5, startMs + 150 * SECOND, -behindMs, B) + change(6, startMs + 151 * SECOND, -behindMs),
      ] as const
      const hashes: unknown[] = []
      for (const [way, imports] of waysOf(files).entries()) {
        const { lake, bookAt } = await lakeOf(directory, `lake-${way}`, imports)
        hashes.push(await lakeHashes(lake))
        const shown = (id: string, ms: number): string => bookAt(id, startMs + ms)
        for (const id of [T, B]) {
          assert.equal(shown(id, -behindMs + 100), UNKNOWN, `way ${way}`)
          assert.equal(shown(id, -1), UNKNOWN, `way ${way}`)
          assert.equal(shown(id, 100), FIRST, `way ${way}`)
        }
        assert.equal(shown(T, 5 * SECOND - 1), FIRST)
        assert.equal(shown(T, 5 * SECOND), SECOND_BOOK)
        assert.equal(shown(B, 149 * SECOND), FIRST)
        assert.equal(shown(B, 150 * SECOND), SECOND_BOOK)
      }
      for (const other of hashes) assert.deepEqual(other, hashes[0])
    })
  }
}

for (const aheadMs of [10 * SECOND, 60 * SECOND, 115 * SECOND]) {
  test(`a clock that is ahead by ${aheadMs} ms holds no change back behind a snapshot, however it is cut`, async (t) => {
    const directory = await temporaryDirectory(t)
    const again = snapshot(4, {
      yes: [
        [40, 9],
        [45, 5],
      ],
    })
    const files = [
      book(1, 0, aheadMs) + book(2, 1, aheadMs, B),
      change(3, 2 * SECOND, aheadMs) + line(3 * SECOND, aheadMs, again),
      change(5, 4 * SECOND, aheadMs, B) + change(6, 5 * SECOND, aheadMs),
    ] as const
    const hashes: unknown[] = []
    for (const [way, imports] of waysOf(files).entries()) {
      const { lake, bookAt } = await lakeOf(directory, `lake-${way}`, imports)
      hashes.push(await lakeHashes(lake))
      // The changes show by how much the clock is ahead, so the first book gets its correct time.
      assert.equal(bookAt(T, -100), UNKNOWN, `way ${way}`)
      assert.equal(bookAt(T, 100), FIRST, `way ${way}`)
      assert.equal(bookAt(T, 2 * SECOND - 1), FIRST, `way ${way}`)
      assert.equal(bookAt(T, 2 * SECOND), SECOND_BOOK, `way ${way}`)
      assert.equal(bookAt(T, 5 * SECOND - 1), SECOND_BOOK, `way ${way}`)
      assert.equal(bookAt(T, 5 * SECOND), '0:4000=9000000 0:4500=10000000', `way ${way}`)
      assert.equal(bookAt(B, 4 * SECOND), SECOND_BOOK, `way ${way}`)
    }
    for (const other of hashes) assert.deepEqual(other, hashes[0])
  })
}

test('without receive times, no row has one before its event time, even if the message has no time of its own', async () => {
  const fold = foldHarness('kalshi')
  const times = [0, 40, 22, 60].map((ms) => MS + ms)
  fold.feed(snapshot(1, { yes: [[40, 9]], ts_ms: times[0] }))
  for (const [index, ts_ms] of times.slice(1).entries()) fold.feed(delta(index + 2, { ts_ms }))
  await fold.done()
  assert.deepEqual(
    fold.rows.filter(({ event }) => event === 2).map(({ ts, recv_ts }) => [ts, recv_ts]),
    [40, 40, 60].map((ms) => [BigInt(MS + ms) * 1_000_000n, BigInt(MS + ms) * 1_000_000n]),
  )
})
