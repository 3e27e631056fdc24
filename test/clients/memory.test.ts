// Both clients, each in its own process, read a stream of half a million rows in bounded memory.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { ClientReading } from '../../bench/client-child.ts'
import { PYTHON, PYTHON_ENVIRONMENT, withoutPython } from '../support/client-drivers.ts'
import { startScripted } from '../support/scripted-server.ts'

const ROWS = 500_000
const BLOCK_ROWS = 1000
/**
 * All rows would take several times this. The bound allows for late garbage collection on busy machines, and for the young
 * generation of Node 24, which may take 130 MB more than that of Node 20.
 */
const GROWN_MB_MAX = 250
/** A process that kept the rows would run out of memory. */
const HEAP_OPTIONS = ['--max-old-space-size=64']
const TYPESCRIPT_CHILD = fileURLToPath(new URL('../../bench/client-child.js', import.meta.url))
const PYTHON_CHILD = fileURLToPath(new URL('../../../bench/client-child.py', import.meta.url))
const withoutStatus: false | string = process.platform === 'linux' ? false : 'memory is read from /proc'

const ROW = {
  ts: 1_782_928_800_000_000_000,
  market_id: 'KXHIGHNY-26JUL01-B81.5',
  best_bid: 40,
  best_ask: 44,
  spread: 4,
  mid: 42,
  bids: [{ price: 40, qty: 1000 }],
  asks: [{ price: 44, qty: 2000 }],
}

for (const [name, program, child, skip] of [
  ['TypeScript', process.execPath, [...HEAP_OPTIONS, TYPESCRIPT_CHILD], withoutStatus],
  ['Python', PYTHON ?? '', [PYTHON_CHILD], withoutStatus || withoutPython],
] as const) {
  test(`${name}: half a million rows`, { skip }, async (t) => {
    const block = `${JSON.stringify(ROW)}\n`.repeat(BLOCK_ROWS)
    const server = await startScripted(t, (request, response) => {
      let left = request.url?.includes('interval=3600') === true ? 1 : ROWS / BLOCK_ROWS
      const write = (): void => {
        while (left > 0) {
          left -= 1
          if (!response.write(block)) return void response.once('drain', write)
        }
        response.end()
      }
      write()
    })
    const request = { series: 'KXHIGHNY', date: '2026-07-01', levels: 1 }
    const argument = {
      way: 'client',
      url: server.url,
      parameters: { ...request, interval: 1 },
      warmUp: { ...request, interval: 3600 },
    }
    const env = PYTHON_ENVIRONMENT
    const { stdout } = await promisify(execFile)(program, [...child, JSON.stringify(argument)], { env })
    const { rows, grownMb }: ClientReading = JSON.parse(stdout)
    assert.equal(rows, ROWS)
    assert.ok(grownMb !== null && grownMb <= GROWN_MB_MAX, `${grownMb} MB more than before`)
    t.diagnostic(`${grownMb.toFixed(1)} MB more than before`)
  })
}
