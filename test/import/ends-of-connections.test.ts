// A recorder's disconnect mark may be at the head of the next file, or in a separate file: books without sequence numbers do not
// continue over it, in any order of imports.

import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LobSource } from '../../shared/lob-sources.ts'
import { IS_FULL_EFFORT } from '../support/effort.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, delta, snapshot } from '../support/kalshi-frames.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { UNKNOWN, textAt } from './pieces/book-steps.ts'
import { lakeHashes, readLake } from './pieces/lake-reader.ts'

const MARKET = `0x${'ab'.repeat(32)}`
const at = (seconds: number, frame: unknown): string =>
  `${JSON.stringify({ recv_ts: MS + seconds * 1000, msg: frame })}\n`
const tokenBook = (seconds: number): string => {
  const timestamp = String(MS + seconds * 1000)
  const levels = { bids: [{ price: '0.4', size: '9' }], asks: [] }
  return at(seconds, [{ event_type: 'book', market: MARKET, asset_id: '7', timestamp, ...levels }])
}
const tokenChange = (seconds: number, price: string): string => {
  const change = { asset_id: '7', price, size: '5', side: 'BUY' }
  const timestamp = String(MS + seconds * 1000 - 20)
  return at(seconds, { event_type: 'price_change', market: MARKET, timestamp, price_changes: [change] })
}

/** Messages of a connection before and after the disconnect `mark`, and `more` just before it. */
const POLYMARKET = {
  first: tokenBook(0) + tokenChange(50, '0.41'),
  more: tokenChange(60, '0.42'),
  mark: at(70, { event_type: 'disconnect' }),
  after: tokenChange(80, '0.43') + tokenChange(90, '0.44'),
}
const kalshiChange = (seconds: number, seq: number): string =>
  at(seconds, delta(seq, { ts_ms: MS + seconds * 1000 - 20 }))
const KALSHI = {
  first: at(0, snapshot(1, { yes: [[40, 9]] })) + kalshiChange(50, 2),
  more: kalshiChange(60, 3),
  mark: at(70, { type: 'disconnect' }),
  after: kalshiChange(80, 4) + kalshiChange(90, 5),
}

function ordersOf<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]]
  return items.flatMap((item, place) => ordersOf(items.toSpliced(place, 1)).map((rest) => [item, ...rest]))
}

/** All orders; of the 24 orders of four files the quick gear takes five, with each file first at least once. */
function ordersTried<T>(items: readonly T[]): T[][] {
  const orders = ordersOf(items)
  return IS_FULL_EFFORT || items.length < 4 ? orders : orders.filter((_, number) => number % 5 === 0)
}

/** The lake after `imports`, each of several files. */
async function lakeOf(
  directory: string,
  source: LobSource,
  imports: readonly (readonly string[])[],
): Promise<string> {
  const lake = join(directory, 'lake')
  await rm(lake, { recursive: true, force: true })
  for (const files of imports) {
    const paths = files.map((_, number) => join(directory, `${number}.ndjson`))
    for (const [number, path] of paths.entries()) await writeFile(path, files[number]!)
    await runImport(lake, source, { paths })
  }
  return lake
}

const isOver = (steps: Parameters<typeof textAt>[0], seconds: number): boolean =>
  textAt(steps, BigInt(MS + seconds * 1000) * 1_000_000n) === UNKNOWN

test('without numbers no book continues over a separate disconnect mark, in any order of imports', async (t) => {
  const directory = await temporaryDirectory(t)
  const { first, more, mark, after } = POLYMARKET
  const whole = await lakeHashes(await lakeOf(directory, 'polymarket', [[first + more + mark, after]]))
  assert.equal(whole.size, 1)
  const cuts = [
    [first, more, mark, after],
    [first + more, mark + after],
    [first, more, mark + after],
  ]
  for (const files of cuts) {
    for (const order of ordersTried(files)) {
      for (const imports of [[order], order.map((file) => [file])]) {
        const lake = await lakeOf(directory, 'polymarket', imports)
        const told = `${imports.length} imports: ${order.map((file) => files.indexOf(file)).join(' ')}`
        const [steps = []] = (await readLake(lake)).steps.values()
        assert.deepEqual(
          [59, 61, 79, 85].map((seconds) => isOver(steps, seconds)),
          [false, true, true, true],
          told,
        )
        assert.deepEqual(await lakeHashes(lake), whole, told)
      }
    }
  }
})

test('a fitting next number overrides a separate disconnect mark', async (t) => {
  const directory = await temporaryDirectory(t)
  const { first, more, mark, after } = KALSHI
  for (const [files, parts] of [
    [[first + more + mark + after], [first, more, mark, after]],
    [[first + more + mark], [first, more, mark]],
  ] as const) {
    // A mark in the file of the messages before it ends the connection; for a separate mark the next number shows the opposite.
    const isFollowed = parts.length === 4
    const whole = await lakeHashes(await lakeOf(directory, 'kalshi', isFollowed ? [parts] : [files]))
    for (const order of ordersTried(parts)) {
      const lake = await lakeOf(
        directory,
        'kalshi',
        order.map((file) => [file]),
      )
      assert.deepEqual(
        await lakeHashes(lake),
        whole,
        order.map((file) => (parts as readonly string[]).indexOf(file)).join(' '),
      )
    }
  }
})
