// A recorder with a clock in whole seconds, or that reads several messages at once, may start a new file between messages with
// the same receive time.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runImport } from '../support/import-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { textAt, UNKNOWN } from './pieces/book-steps.ts'
import { lakeHashes, readLake } from './pieces/lake-reader.ts'

const MS = 1_782_316_140_000
const MARKET = `0x${'ab'.repeat(32)}`

/** A book of the token that changed this long after the start, received in the second of its change. */
function bookLine(afterMs: number, prices: readonly string[]): string {
  const bids = prices.map((price) => ({ price, size: '7' }))
  const timestamp = String(MS + afterMs)
  const frame = { event_type: 'book', market: MARKET, asset_id: '7', timestamp, bids, asks: [] }
  const received = MS + Math.floor(afterMs / 1000) * 1000
  return `${JSON.stringify({ recv_ts: received, msg: afterMs === 0 ? [frame] : frame })}\n`
}

/** Writes each text to a file of its own, and returns their paths. */
function written(directory: string, texts: readonly string[]): string[] {
  return texts.map((text, number) => {
    const path = join(directory, `${number}.ndjson`)
    writeFileSync(path, text)
    return path
  })
}

test('two books of a token with the same receive time are never merged into one', async (t) => {
  const directory = await temporaryDirectory(t)
  const files = [
    bookLine(0, ['0.4', '0.3']) + bookLine(5_540, ['0.4', '0.35']),
    bookLine(5_568, ['0.4', '0.31']) + bookLine(9_000, ['0.4']),
  ]
  const paths = written(directory, files)
  const [first, second] = paths as [string, string]
  for (const imports of [[[first, second]], [[second, first]], [[first], [second]], [[second], [first]]]) {
    const lake = join(
      directory,
      imports
        .flat()
        .map((path) => paths.indexOf(path))
        .join('') + imports.length,
    )
    for (const given of imports) await runImport(lake, 'polymarket', { paths: given })
    const [steps = []] = (await readLake(lake)).steps.values()
    const texts = [5_000, 5_567, 5_568, 8_000].map((after) =>
      textAt(steps, BigInt(MS + after) * 1_000_000n).replaceAll('=7000000', ''),
    )
    assert.deepEqual(
      texts,
      ['0:3000 0:4000', '0:3500 0:4000', '0:3100 0:4000', '0:3100 0:4000'],
      imports.join(' | '),
    )
  }
})

test('files with heartbeats without a time give the same books as one file', async (t) => {
  const directory = await temporaryDirectory(t)
  const lines = Array.from({ length: 40 }, (_, index) => bookLine(20_000 * index, ['0.6', `0.${10 + index}`]))
  const heard = (from: number, to: number): string[] =>
    lines.slice(from, to).flatMap((line, index) => (index % 7 === 3 ? [line, 'PONG\n'] : [line]))
  const [whole, cut] = [join(directory, 'whole'), join(directory, 'cut')]
  await runImport(whole, 'polymarket', { lines: lines.map((line) => line.trimEnd()) })
  const paths = written(
    directory,
    [heard(0, 15), heard(15, 30), heard(30, 40)].map((texts) => texts.join('')),
  )
  await runImport(cut, 'polymarket', { paths })
  assert.deepEqual(await lakeHashes(cut), await lakeHashes(whole))
})

function lineOf(recvMs: number, msg: unknown): string {
  return JSON.stringify({ recv_ts: recvMs, msg })
}

function firstBook(time: number): readonly object[] {
  return [{ event_type: 'book', market: MARKET, asset_id: '7', timestamp: String(time), bids: [], asks: [] }]
}

/** Each index has its price. */
function changeFrame(time: number, index: number): object {
  const change = { asset_id: '7', price: `0.${10 + index}`, size: '5', side: 'BUY' }
  return { event_type: 'price_change', market: MARKET, timestamp: String(time), price_changes: [change] }
}

test('files are joined at heartbeats that were received after the next message was sent', async (t) => {
  const directory = await temporaryDirectory(t)
  const midnight = Date.parse('2026-06-25T00:00:00Z')
  const clocks = { right: 150, ahead: 1_800, behind: -1_500 }
  for (const [clock, delay] of Object.entries(clocks)) {
    for (const [step, start] of [
      [10_000, midnight - 29_950],
      [500, midnight - 600_000],
    ] as const) {
      // Each change is received 50 ms after a heartbeat.
      const lines = [lineOf(start - step + delay, firstBook(start - step))]
      for (let index = 0; index < 8; index++) {
        const time = start + step * index
        lines.push(lineOf(time - 50 + delay, 'PONG'), lineOf(time + delay, changeFrame(time, index)))
      }
      const name = `${clock}-${step}`
      const [whole, cut] = [join(directory, `${name}-whole`), join(directory, `${name}-cut`)]
      await runImport(whole, 'polymarket', { lines })
      for (const size of [3, 4]) {
        const paths = Array.from({ length: Math.ceil(lines.length / size) }, (_, number) => {
          const path = join(directory, `${name}-${size}-${number}.ndjson`)
          writeFileSync(path, `${lines.slice(size * number, size * (number + 1)).join('\n')}\n`)
          return path
        })
        await runImport(`${cut}-${size}`, 'polymarket', { paths })
        assert.deepEqual(
          await lakeHashes(`${cut}-${size}`),
          await lakeHashes(whole),
          `${name}, ${size} lines`,
        )
      }
    }
  }
})

test('a file that begins with a heartbeat continues a connection if another one received the next message earlier', async (t) => {
  const directory = await temporaryDirectory(t)
  const files = [
    [lineOf(MS + 100, firstBook(MS)), lineOf(MS + 10_100, changeFrame(MS + 10_000, 0))],
    [
      lineOf(MS + 20_100, 'PONG'),
      lineOf(MS + 20_200, changeFrame(MS + 20_050, 1)),
      lineOf(MS + 30_100, changeFrame(MS + 30_000, 2)),
      lineOf(MS + 60_100, changeFrame(MS + 60_000, 3)),
    ],
    [
      lineOf(MS + 1_000, firstBook(MS)),
      lineOf(MS + 10_050, changeFrame(MS + 10_000, 0)),
      lineOf(MS + 20_080, changeFrame(MS + 20_050, 1)),
      lineOf(MS + 30_050, changeFrame(MS + 30_000, 2)),
    ],
  ]
  const paths = written(
    directory,
    files.map((lines) => `${lines.join('\n')}\n`),
  )
  const lake = join(directory, 'lake')
  await runImport(lake, 'polymarket', { paths })
  const [steps = []] = (await readLake(lake)).steps.values()
  assert.equal(
    textAt(steps, BigInt(MS + 40_000) * 1_000_000n),
    '0:1000=5000000 0:1100=5000000 0:1200=5000000',
  )
})

test('a connection over midnight is not joined to another that begins just after it', async (t) => {
  const directory = await temporaryDirectory(t)
  const midnight = Date.parse('2026-06-25T00:00:00Z')
  const recording = (token: string, timesS: readonly number[]): string => {
    const market = `0x${token.repeat(64)}`
    const lines = timesS.map((second, index) => {
      const time = midnight + second * 1000
      const change = { asset_id: token, price: `0.${10 + index}`, size: '5', side: 'BUY' }
      const frame =
        index === 0
          ? [{ event_type: 'book', market, asset_id: token, timestamp: String(time), bids: [], asks: [] }]
          : { event_type: 'price_change', market, timestamp: String(time), price_changes: [change] }
      return `${JSON.stringify({ recv_ts: time, msg: frame })}\n`
    })
    return lines.join('')
  }
  const paths = written(directory, [recording('1', [-90, -30, 20, 40]), recording('2', [5, 10, 15])])
  const lake = join(directory, 'lake')
  await runImport(lake, 'polymarket', { paths })
  const { steps } = await readLake(lake)
  const bookAt = (token: string, second: number): string =>
    textAt(steps.get(`0x${token.repeat(64)}:${token}`) ?? [], BigInt(midnight + second * 1000) * 1_000_000n)
  assert.equal(bookAt('1', 10), '0:1100=5000000')
  assert.equal(bookAt('1', 40), '0:1100=5000000 0:1200=5000000 0:1300=5000000')
  assert.equal(bookAt('2', 15), '0:1100=5000000 0:1200=5000000')
})

test('a file does not continue a connection that lacks a change which another recorder received in between', async (t) => {
  const directory = await temporaryDirectory(t)
  const changed = (recorder: number, index: number): string =>
    lineOf(MS + 10_000 * index + 100 + recorder, changeFrame(MS + 10_000 * index, index))
  const files = [
    [lineOf(MS + 100, firstBook(MS)), changed(0, 1)],
    // The file with the second change is lost.
    [changed(0, 3), changed(0, 4)],
    [lineOf(MS + 1_000, firstBook(MS)), ...[1, 2, 3].map((index) => changed(1, index))],
  ]
  const paths = written(
    directory,
    files.map((lines) => `${lines.join('\n')}\n`),
  )
  const lake = join(directory, 'lake')
  await runImport(lake, 'polymarket', { paths })
  const [steps = []] = (await readLake(lake)).steps.values()
  const textOf = (afterMs: number): string => textAt(steps, BigInt(MS + afterMs) * 1_000_000n)
  assert.equal(textOf(30_000), '0:1100=5000000 0:1200=5000000 0:1300=5000000')
  assert.equal(textOf(40_000), UNKNOWN)
})
