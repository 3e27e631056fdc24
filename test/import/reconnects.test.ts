// Connections that begin anew without the recorder's word: that shows in what the exchange sends first.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LobSource } from '../../shared/lob-sources.ts'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { runImport } from '../support/import-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { UNKNOWN, textAt } from './pieces/book-steps.ts'
import { readLake } from './pieces/lake-reader.ts'

const MINUTE = 60_000
const at = (minutes: number): bigint => BigInt(MS + minutes * MINUTE) * 1_000_000n

const line = (minutes: number, frame: unknown): string =>
  `${JSON.stringify({ recv_ts: MS + minutes * MINUTE, msg: frame })}\n`

/** The books of a recording in files. */
async function booksOf(
  directory: string,
  source: LobSource,
  files: readonly string[],
): Promise<(id: string, minutes: number) => string> {
  const paths = files.map((_, number) => join(directory, `${number}.ndjson`))
  for (const [number, path] of paths.entries()) await writeFile(path, files[number]!)
  const lake = join(directory, 'lake')
  await runImport(lake, source, { paths })
  const { steps } = await readLake(lake)
  return (id, minutes) => textAt(steps.get(id) ?? [], at(minutes))
}

const subscribed = (minutes: number, sid: number): string =>
  line(minutes, { id: 1, type: 'subscribed', msg: { channel: 'orderbook_delta', sid } })

const kalshiBook = (sid: number, seq: number, minutes: number, price: number, ticker = T): string =>
  line(minutes, snapshot(seq, { market_ticker: ticker, yes: [[price, 9]] }, sid))

const change = (sid: number, seq: number, minutes: number, ticker = T): string =>
  line(minutes, delta(seq, { market_ticker: ticker, ts_ms: MS + minutes * MINUTE }, sid))

for (const isAnnounced of [true, false]) {
  test(`a market under another subscription ${isAnnounced ? 'that is announced ' : ''}is another connection’s`, async (t) => {
    const first = kalshiBook(1, 1, 0, 40) + change(1, 2, 10)
    const second = (isAnnounced ? subscribed(19, 2) : '') + kalshiBook(2, 1, 20, 30) + change(2, 2, 30)
    const bookAt = await booksOf(await temporaryDirectory(t), 'kalshi', [first + second])
    assert.equal(bookAt(T, 10), '0:4000=9000000 0:4500=5000000')
    // Nothing was heard from 10 to 19, and then of another connection.
    assert.equal(bookAt(T, 11), UNKNOWN)
    assert.equal(bookAt(T, 19.5), UNKNOWN)
    assert.equal(bookAt(T, 20), '0:3000=9000000')
    assert.equal(bookAt(T, 30), '0:3000=9000000 0:4500=5000000')
  })
}

test('a market of its own under another subscription is the same connection’s', async (t) => {
  const lines = [
    kalshiBook(1, 1, 0, 40) + change(1, 2, 10),
    subscribed(19, 2) + kalshiBook(2, 1, 20, 30, B) + change(2, 2, 30, B) + change(1, 3, 40),
  ]
  const bookAt = await booksOf(await temporaryDirectory(t), 'kalshi', [lines.join('')])
  assert.equal(bookAt(T, 30), '0:4000=9000000 0:4500=5000000')
  assert.equal(bookAt(T, 40), '0:4000=9000000 0:4500=10000000')
  assert.equal(bookAt(B, 40), '0:3000=9000000 0:4500=5000000')
})
