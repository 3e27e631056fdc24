// The whole command with a local exchange and a real server: how soon a change is in a response.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { PROGRAM_ARGUMENTS, startColdServer } from '../support/cold-workers.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { TEST_KEY_ID, TEST_PRIVATE_KEY, checkAgainst, readSeries } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'

const A = 'KXHIGHNY-26NOV20-B45.5'
const FRESH_MS = 10_000

interface Row {
  readonly ts: number
  readonly best_bid: number
}

test('a change is in the response of /lob within ten seconds, and the command exits cleanly', async (t) => {
  const root = await temporaryDirectory(t)
  const lake = join(root, 'lake')
  await mkdir(lake)
  const keyFile = join(root, 'key.pem')
  await writeFile(keyFile, TEST_PRIVATE_KEY)
  const exchange = await LocalKalshi.start(t)
  exchange.markets.set(A, 'active')
  exchange.markets.set('KXHIGHNY-26NOV19-B45.5', 'finalized')
  exchange.setBook(A, [
    [0, 40, 1000],
    [1, 90, 1000],
  ])
  const args = ['record', '--lake', lake, '--kalshi-series', 'KXHIGHNY']
  const urls = ['--kalshi-ws-url', exchange.socketUrl, '--kalshi-url', exchange.restUrl]
  const recorder = spawn(process.execPath, [...PROGRAM_ARGUMENTS, ...args, ...urls], {
    env: { ...process.env, BOOKCAST_KALSHI_KEY_ID: TEST_KEY_ID, BOOKCAST_KALSHI_PRIVATE_KEY_FILE: keyFile },
  })
  t.after(() => recorder.kill('SIGKILL'))
  let output = ''
  for (const stream of [recorder.stdout, recorder.stderr]) {
    stream.on('data', (data: Buffer) => {
      output += data.toString()
    })
  }
  await exchange.until(() => exchange.isFollowed(A))
  assert.equal(exchange.isFollowed('KXHIGHNY-26NOV19-B45.5'), false)
  const server = await startColdServer({ ...TEST_CONFIG, lake }, { logger: pino({ level: 'silent' }) })
  t.after(() => server.close())
  const lastBid = async (): Promise<number | undefined> => {
    const date = new Date().toISOString().slice(0, 10)
    const query = `series=KXHIGHNY&date=${date}&hour=${new Date().getUTCHours()}&interval=1&columns=ts,best_bid`
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/lob?${query}`)
    if (response.status !== 200) return undefined
    const rows = (await response.json()) as Row[]
    return rows.at(-1)?.best_bid
  }
  const ages: number[] = []
  for (const cents of [50, 51]) {
    exchange.change(A, 0, cents, 700)
    const sentMs = performance.now()
    while ((await lastBid()) !== cents) {
      assert.ok(
        performance.now() - sentMs < FRESH_MS,
        `${cents} is not there after ${FRESH_MS} ms:\n${output}`,
      )
      await new Promise((resolve) => {
        setTimeout(resolve, 200)
      })
    }
    ages.push(performance.now() - sentMs)
  }
  t.diagnostic(`visible after ${ages.map((ms) => `${(ms / 1000).toFixed(1)} s`).join(' and ')}`)
  const exited = once(recorder, 'exit')
  recorder.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null])
  const { known, unknown, gaps } = checkAgainst(exchange, await readSeries(lake, 'kalshi', 'KXHIGHNY'))
  assert.deepEqual([known, unknown, gaps], [2, 0, 0])
  assert.match(output, /Bookcast records KXHIGHNY/)
  assert.ok(!output.includes(TEST_KEY_ID) && !output.includes(TEST_PRIVATE_KEY.slice(40, 80)))
})
