// An exchange added with a folder (test/support/lunex) and two lines (register.ts), as docs/extending.md says: the program
// itself records it from a socket, imports it, rebuilds its books and serves them.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { LocalLunex } from '../support/lunex/local-lunex.ts'
import { eventually } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const REGISTER = new URL('../support/lunex/register.js', import.meta.url).href
const MARKETS = ['nyc~2026-07-01~80', 'nyc~2026-07-01~85'] as const
const CHANGES = 60
const PAUSE_MS = 50

interface Level {
  readonly price: number
  readonly qty: number
}

interface Snapshot {
  readonly ts: number
  readonly market_id: string
  readonly bids: readonly Level[]
  readonly asks: readonly Level[]
}

interface Running {
  readonly child: ChildProcess
  output(): string
  exit(): Promise<number | null>
}

/** The program, with the made-up exchange registered in its processes and all their threads. */
function bookcast(t: TestContext, args: readonly string[]): Running {
  const child = spawn(process.execPath, [...PROGRAM_ARGUMENTS, ...args], {
    env: { ...process.env, NODE_OPTIONS: `--import=${REGISTER}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  const exited = once(child, 'close')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += String(data)))
  const exit = async (): Promise<number | null> => {
    await exited
    return child.exitCode
  }
  return { child, output: () => output, exit }
}

/** Records the exchange into the lake while its books change. */
async function record(t: TestContext, exchange: LocalLunex, lake: string): Promise<void> {
  const { socketUrl, restUrl } = await exchange.start(t)
  const args = ['--lunex-series', 'nyc', '--lunex-ws-url', socketUrl, '--lunex-url', restUrl]
  const recorder = bookcast(t, ['record', '--lake', lake, ...args])
  await eventually(() => {
    assert.equal(recorder.child.exitCode, null, recorder.output())
    return exchange.isFollowed
  }, 'the markets are followed')
  for (let index = 0; index < CHANGES; index++) {
    await delay(PAUSE_MS)
    const id = MARKETS[index % MARKETS.length]!
    if (index % 3 === 0) exchange.change(id, 'ask', 45 + (index % 7), index % 5)
    else exchange.change(id, 'bid', 40 - (index % 7), index % 5)
  }
  await exchange.flush()
  recorder.child.kill('SIGTERM')
  assert.equal(await recorder.exit(), 0, recorder.output())
}

async function serve(t: TestContext, lake: string): Promise<string> {
  const server = bookcast(t, ['serve', '--lake', lake, '--store', 'off', '--port', '0'])
  const url = (): string | undefined => / at (http:\/\/\S+)\n/.exec(server.output())?.[1]
  await eventually(() => {
    assert.equal(server.child.exitCode, null, server.output())
    return url() !== undefined
  }, 'the server listens')
  return url()!
}

function levelsOf(levels: readonly (readonly [number, number])[]): Level[] {
  return levels.map(([price, qty]) => ({ price, qty }))
}

/** Compares every served snapshot up to the last message with the exchange's own books. */
async function checkServed(url: string, exchange: LocalLunex, dates: string): Promise<void> {
  for (const id of MARKETS) {
    const query = `source=lunex&market=${encodeURIComponent(id)}&${dates}&interval=1&levels=20&format=ndjson`
    const response = await fetch(`${url}/api/v1/lob?${query}`)
    const text = await response.text()
    assert.equal(response.status, 200, text)
    const rows = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Snapshot)
    let compared = 0
    for (const { ts, market_id: market, bids, asks } of rows) {
      assert.equal(market, id)
      // Ticks are whole seconds, so the double is precise enough to identify the tick.
      const tick = BigInt(Math.round(ts / 1e9)) * 1_000_000_000n
      const truth = exchange.bookAt(id, tick)
      if (truth === undefined || tick > exchange.lastTs) continue
      assert.deepEqual({ bids, asks }, { bids: levelsOf(truth.bids), asks: levelsOf(truth.asks) }, `${tick}`)
      compared++
    }
    assert.ok(compared >= 2, `${compared} snapshots compared`)
  }
}

test('a made-up exchange is recorded, imported, rebuilt and served', async (t) => {
  const root = await temporaryDirectory(t)
  const [recorded, imported] = [join(root, 'recorded'), join(root, 'imported')]
  const exchange = new LocalLunex(MARKETS)
  const firstDate = new Date().toISOString().slice(0, 10)
  await record(t, exchange, recorded)
  const lastDate = new Date().toISOString().slice(0, 10)
  const dates = `from=${firstDate}&to=${lastDate}`
  const url = await serve(t, recorded)
  await checkServed(url, exchange, dates)

  const file = join(root, 'messages.ndjson')
  await writeFile(file, `${exchange.sent.join('\n')}\n`)
  const wrong = bookcast(t, ['import', '--source', 'kalshi', '--lake', imported, file])
  assert.equal(await wrong.exit(), 1)
  assert.match(wrong.output(), /these are messages of lunex, not of kalshi; import them with --source lunex/)
  const right = bookcast(t, ['import', '--source', 'lunex', '--lake', imported, file])
  assert.equal(await right.exit(), 0, right.output())
  assert.match(right.output(), new RegExp(`${CHANGES + MARKETS.length} messages, `))
  await checkServed(await serve(t, imported), exchange, dates)

  await t.test('errors and documents know the name of the exchange', async () => {
    const refusals = [
      ['source=lunex&market=NYC', /market must be <place>~<date>~<degrees> for source=lunex, not/],
      [`source=polymarket&market=${MARKETS[0]}`, /As an id of lunex it needs source=lunex/],
      ['source=kalshi&series=nyc', /It is known to lunex: set source=lunex/],
      ['source=moon&series=nyc', /kalshi, polymarket, lunex/],
    ] as const
    for (const [query, message] of refusals)
      assert.match(await (await fetch(`${url}/api/v1/lob?${query}&date=${firstDate}`)).text(), message)
    const openapi = await (await fetch(`${url}/openapi.json`)).text()
    assert.ok(openapi.includes('; for lunex <place>~<date>~<degrees>. Give exactly one of market and series'))
    const importHelp = bookcast(t, ['import', '--help'])
    await importHelp.exit()
    assert.match(importHelp.output(), /--source kalshi\|polymarket\|lunex[^]*Lunex's\s+the\s+place/)
    const recordHelp = bookcast(t, ['record', '--help'])
    await recordHelp.exit()
    assert.match(recordHelp.output(), /--lunex-series <list>[^]*--lunex-ws-url <url>/)
  })
})
