import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { test, type TestContext } from 'node:test'
import type { CommandIo } from '../../server/commands/command.ts'
import { UsageError } from '../../server/options/usage-error.ts'
import { ingestCommand } from '../../server/commands/ingest.ts'
import { verifyCommand } from '../../server/commands/verify.ts'
import { tradesKey } from '../../shared/lake-layout.ts'
import { statusCommand } from '../../server/commands/status.ts'
import { send } from '../support/local-upstream.ts'
import { makeEmptyStore } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { startWorld, type UpstreamWorld } from '../support/upstream-world.ts'

interface Terminal {
  readonly io: CommandIo
  readonly out: () => string
  readonly err: () => string
  readonly stdout: PassThrough
}

/** A command's process: an empty store, the test world's addresses in the environment, streams without a terminal. */
async function terminal(
  t: TestContext,
  world: UpstreamWorld,
  signal = new AbortController().signal,
): Promise<() => Terminal> {
  const place = await makeEmptyStore()
  t.after(place.remove)
  const { config } = world
  const env = {
    BOOKCAST_KALSHI_URL: config.kalshiUrl,
    BOOKCAST_KALSHI_REQUESTS_PER_SECOND: '100',
    BOOKCAST_AVIATION_WEATHER_URL: config.aviationWeatherUrl,
    BOOKCAST_IEM_URL: config.iemUrl,
    BOOKCAST_NCEI_URL: config.nceiUrl,
    BOOKCAST_NWS_URL: config.nwsUrl,
    BOOKCAST_ACIS_URL: config.acisUrl,
    BOOKCAST_USER_AGENT: 'somebody (somebody@example.org)',
    BOOKCAST_DATA_DIR: place.dataDirectory,
    ...(place.databaseUrl === null ? {} : { DATABASE_URL: place.databaseUrl }),
  }
  return () => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const texts = { out: '', err: '' }
    stdout.on('data', (chunk) => (texts.out += String(chunk)))
    stderr.on('data', (chunk) => (texts.err += String(chunk)))
    const io = { env, stdin: process.stdin, stdout, stderr, signal }
    return { io: io as unknown as CommandIo, out: () => texts.out, err: () => texts.err, stdout }
  }
}

test('a backfill fetches the catalogue first, prints every step and is shown by status', async (t) => {
  const world = await startWorld(t)
  const open = await terminal(t, world)
  const sources = 'exchange-candles,exchange-catalogue,climate-nws'
  const range = ['--from', '2026-08-20', '--to', '2026-08-29']
  const first = open()
  assert.equal(await ingestCommand(['--source', sources, ...range], first.io), 0, first.err())
  assert.match(first.err(), /^exchange-catalogue KXHIGHNY 2026-08-20 to 2026-08-30: 4 rows$/m)
  assert.match(first.err(), /^exchange-candles KXHIGHNY .*: \d+ rows$/m)
  assert.match(first.err(), /^climate-nws: has no past to fetch$/m)
  assert.ok(world.asked.every(({ headers }) => headers['user-agent'] === 'somebody (somebody@example.org)'))
  const status = open()
  assert.equal(await statusCommand([], status.io), 0)
  assert.match(status.out(), /^source +parts +rows +last success +lag +gaps +failing$/m)
  assert.match(status.out(), /^exchange-candles +1 +\d+ +\d{4}-\S+Z +\d+ s +0 +0$/m)
  assert.match(status.out(), /^ncei +0 +0 +never +- +0 +0$/m)
})

test("a backfill in a collector's environment does not use its lake", async (t) => {
  const world = await startWorld(t)
  const { io } = (await terminal(t, world))()
  const lake = join(await temporaryDirectory(t), 'lake')
  const env = { ...io.env, BOOKCAST_KALSHI_SERIES: 'KXHIGHNY', BOOKCAST_SYNC_TO: 's3://lake/v1' }
  const range = ['--from', '2026-08-20', '--to', '2026-08-29', '--source', 'exchange-catalogue']
  assert.equal(await ingestCommand(range, { ...io, env }), 0)
  assert.equal(await ingestCommand([...range, '--lake', lake], { ...io, env }), 0)
  assert.ok(!existsSync(lake))
})

test('a backfill of trades fills the given lake, and verify reads it', async (t) => {
  const world = await startWorld(t)
  const open = await terminal(t, world)
  const lake = join(await temporaryDirectory(t), 'lake')
  const range = ['--from', '2026-08-29', '--to', '2026-08-29']
  const trade = {
    trade_id: 'a',
    ticker: 'KXHIGHNY-26AUG28-T75',
    yes_price_dollars: '0.4000',
    count_fp: '12.50',
    created_time: '2026-08-29T01:00:00.000001Z',
  }
  world.fault = ({ url }) => {
    if (url.includes('/cutoff'))
      return send(
        200,
        '{"trades_created_ts":"2026-08-01T00:00:00Z","market_settled_ts":"2026-08-01T00:00:00Z"}',
      )
    const isAsked = url.startsWith('/kalshi/markets/trades') && url.includes(trade.ticker)
    if (isAsked) return send(200, JSON.stringify({ trades: [trade], cursor: '' }))
    return /\/trades/.test(url) ? send(200, '{"trades":[],"cursor":""}') : undefined
  }
  const run = open()
  const source = ['--source', 'exchange-catalogue,exchange-candles,kalshi-trades']
  assert.equal(await ingestCommand([...source, ...range, '--lake', lake], run.io), 0, run.err())
  assert.match(run.err(), /^kalshi-trades KXHIGHNY 2026-08-29 to 2026-08-30: 1 rows?$/m)
  assert.ok(existsSync(join(lake, tradesKey('kalshi', 'KXHIGHNY', '2026-08-29'))))
  const found = open()
  const options = ['--trades', '--lake', lake, ...range]
  assert.equal(await verifyCommand(options, found.io), 1)
  assert.match(found.out(), /^KXHIGHNY-26AUG28-T75 2026-08-29 \d\d:\d\d: trades hold 0 of 12.5 contracts$/m)
  const repaired = open()
  assert.equal(await verifyCommand([...options, '--repair'], repaired.io), 1)
  assert.match(repaired.out(), / (\d+) findings, \1 windows opened: bookcast ingest /)
})

test('a single poll of a failing source exits with 1 and names the upstream', async (t) => {
  const world = await startWorld(t)
  world.fault = () => send(403, 'forbidden')
  const open = await terminal(t, world)
  const run = open()
  assert.equal(await ingestCommand(['--once', '--source', 'aviation-weather'], run.io), 1)
  assert.match(run.err(), /^aviation-weather live: awc: status 403: forbidden$/m)
  const status = open()
  await statusCommand([], status.io)
  assert.match(status.out(), /^aviation-weather: rejected: awc: status 403: forbidden$/m)
})

test('collecting continues until it is stopped and then exits cleanly', async (t) => {
  const world = await startWorld(t)
  const controller = new AbortController()
  const open = await terminal(t, world, controller.signal)
  const run = open()
  const running = ingestCommand(['--source', 'climate-nws'], run.io)
  await once(run.stdout, 'data')
  assert.match(run.out(), /^Bookcast collects from climate-nws$/m)
  controller.abort('SIGTERM')
  assert.equal(await running, 0)
})

test('wrong use is refused before anything is opened, and the error names the option', async () => {
  const io = { env: {} } as unknown as CommandIo
  for (const [args, message] of [
    [['--source', 'iem,metars'], /--source .*"metars"/],
    [['--to', '2026-01-01'], /--to needs --from/],
    [['--from', '2026-02-30'], /--from must be a date/],
    [
      ['--from', '2026-02-02', '--to', '2026-02-01'],
      /--from \(2026-02-02\) must not be after the last date \(2026-02-01\)/,
    ],
    [['--once', '--from', '2026-02-02'], /exclude one another/],
    [['--source', 'kalshi-trades', '--lake', 'x'], /--source: kalshi-trades needs --from and --lake/],
    [
      ['--source', 'iem,polymarket-trades', '--from', '2026-02-02'],
      /polymarket-trades needs --from and --lake/,
    ],
    [['--source', 'kalshi-trades', '--lake', 'x', '--once'], /kalshi-trades needs --from and --lake/],
    [['--polymarket-data-url', 'ws://example.org'], /--polymarket-data-url/],
    [['--kalshi-url', 'ftp://example.org'], /--kalshi-url/],
    [['--candles-interval-ms', '5'], /--candles-interval-ms/],
    [['--log-level', 'loud'], /--log-level must be one of silent/],
  ] as const) {
    await assert.rejects(ingestCommand(args, io), (error) => {
      assert.ok(error instanceof UsageError, String(error))
      assert.match(error.message, message)
      return true
    })
  }
  const wrongStore = { env: { DATABASE_URL: 'mysql://user:secret@host' } } as unknown as CommandIo
  await assert.rejects(
    statusCommand([], wrongStore),
    /^UsageError: DATABASE_URL must be a URL that begins with postgres:\/\/$/,
  )
})
