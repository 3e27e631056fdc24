import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { type CommandIo } from '../../server/commands/command.ts'
import { UsageError } from '../../server/options/usage-error.ts'
import { verifyCommand } from '../../server/commands/verify.ts'
import { STATIONS } from '../../shared/stations.ts'
import { makeEmptyStore } from '../support/postgres.ts'

test('lists every station and day of a store without observations, and reopens them on request', async (t) => {
  const place = await makeEmptyStore()
  t.after(place.remove)
  const env = {
    BOOKCAST_DATA_DIR: place.dataDirectory,
    ...(place.databaseUrl === null ? {} : { DATABASE_URL: place.databaseUrl }),
  }
  const run = async (args: readonly string[]): Promise<{ readonly code: number; readonly out: string }> => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    let out = ''
    stdout.on('data', (chunk) => (out += String(chunk)))
    const { signal } = new AbortController()
    const io = { env, stdin: process.stdin, stdout, stderr, signal } as unknown as CommandIo
    return { code: await verifyCommand(args, io), out }
  }
  const dates = ['--from', '2026-03-01', '--to', '2026-03-02']
  const found = await run(['--store', ...dates])
  assert.equal(found.code, 1)
  assert.match(found.out, /^NYC 2026-03-02: 0 of 24 hourly reports$/m)
  const days = 2 * STATIONS.length
  assert.match(
    found.out,
    new RegExp(
      `^2026-03-01 to 2026-03-02: 0 market-days, ${days} station-days, ${days} climate dates counted, ${2 * days} findings;`,
      'm',
    ),
  )
  assert.match(found.out, /^NYC 2026-03-02: the final climate report is overdue, stored: nothing$/m)
  const climate = await run(['--store', '--only', 'climate', ...dates])
  assert.match(climate.out, new RegExp(`: ${days} climate dates counted, ${days} findings;`))
  assert.doesNotMatch(climate.out, /hourly reports/)
  const candles = await run(['--store', '--only', 'candles', ...dates])
  assert.deepEqual(candles, {
    code: 0,
    out: '2026-03-01 to 2026-03-02: 0 market-days counted, nothing is missing\n',
  })
  const repaired = await run(['--store', '--repair', ...dates])
  assert.match(repaired.out, /bookcast ingest --from 2026-03-01 --to 2026-03-02 fetches them$/m)
})

test('wrong use is refused before anything is opened, and the error names the option', async () => {
  const io = { env: {} } as unknown as CommandIo
  for (const [args, message] of [
    [[], /--store or --trades must be given/],
    [['--store', '--from', '2026-02-30'], /--from must be a date/],
    [
      ['--store', '--from', '2026-02-02', '--to', '2026-02-01'],
      /--from \(2026-02-02\) must not be after the last date \(2026-02-01\)/,
    ],
    [['--store', '--fix'], /--fix/],
    [['--trades'], /--trades needs --lake/],
    [['--trades', '--lake', 'x', '--only', 'candles'], /--only needs --store/],
    [['--lake', 'x'], /--store or --trades must be given/],
    [['--store', '--only', 'trades'], /--only must be one of candles, observations, climate, not "trades"/],
  ] as const) {
    await assert.rejects(verifyCommand(args, io), (error) => {
      assert.ok(error instanceof UsageError, String(error))
      assert.match(error.message, message)
      return true
    })
  }
})
