// `bookcast status` with a running server that has the embedded store, and with a recorder.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { makeEmbeddedStore } from '../support/postgres.ts'
import { bookcast } from '../support/program.ts'
import { eventually, recordKalshi } from '../support/recorder-harness.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const MARKETS = ['KXHIGHNY-26NOV20-B45.5', 'KXHIGHNY-26NOV20-T49'] as const

test('reads the embedded store through the running server, and marks samples as such', async (t) => {
  const place = await makeEmbeddedStore('samples')
  t.after(place.remove)
  const environment = { ...process.env, DATABASE_URL: '', BOOKCAST_DATA_DIR: place.dataDirectory }
  const serve = spawn(
    process.execPath,
    [...PROGRAM_ARGUMENTS, 'serve', '--lake', SAMPLE_LAKE, '--port', '0', '--sample-records'],
    { env: environment },
  )
  t.after(() => serve.kill('SIGKILL'))
  let output = ''
  await new Promise<void>((resolve, reject) => {
    serve.once('exit', () => reject(new Error(output)))
    for (const stream of [serve.stdout, serve.stderr]) {
      stream.on('data', (text) => {
        output += String(text)
        if (output.includes('"listening"')) resolve()
      })
    }
  })
  const { stdout } = await bookcast(['status', '--lake', SAMPLE_LAKE], { env: environment })
  assert.match(stdout, /^source +parts +rows +last success/m)
  assert.match(stdout, /^station NYC +2026-07-03T23:51:00Z +\d+ d/m)
  assert.match(stdout, /^disk of lake +[\d.]+ \w+ free of [\d.]+ \w+/m)
  assert.match(stdout, /^lake +2\.\d MiB$/m)
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0] ?? ''
  const { samples } = (await (await fetch(`${url}/health`)).json()) as { samples: unknown }
  assert.deepEqual(samples, { files: 12, records: true })
  assert.match(output, /"files":12,.*the lake holds samples/)
  serve.kill('SIGTERM')
  await once(serve, 'exit')

  // Real data is not added to the sample data.
  const refused = await bookcast(['ingest', '--once', '--source', 'none'], { env: environment })
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /holds the sample records, which are invented/)
})

test('shows what the recorders of a lake do, and when they last did it', async (t) => {
  const exchange = await LocalKalshi.start(t)
  const [market, refused] = MARKETS
  exchange.setBook(market, [[0, 40, 1000]])
  exchange.unknownTickers.add(refused)
  const root = await temporaryDirectory(t)
  const { recorder, lake, workDirectory } = await recordKalshi(t, exchange, root, MARKETS)
  await eventually(() => recorder.metrics.lanes[0]?.refused === 1, 'the refusal is counted')
  await eventually(() => existsSync(lake), 'there is a lake')
  const environment = { DATABASE_URL: '', BOOKCAST_DATA_DIR: join(root, 'data') }
  const status = async (): Promise<string> => {
    const { code, stdout, stderr } = await bookcast(['status', '--lake', lake, '--work', workDirectory], {
      env: environment,
    })
    assert.equal(code, 0, stderr)
    return stdout
  }
  const pattern = new RegExp(`^kalshi +runs as process ${process.pid} on \\S+ +2 +1 +1 +0 +1 `, 'm')
  await eventually(async () => pattern.test(await status()), 'the recorder is shown')
  assert.match(await status(), /^log of kalshi +[\d.]+ \w+$/m)
  await recorder.stop()
  assert.match(await status(), /^kalshi +stopped \d{4}-/m)
})

test('a missing lake is reported before anything is opened or created', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, dataDirectory] = [join(root, 'nowhere'), join(root, 'data')]
  const file = join(root, 'file')
  await writeFile(file, 'no directory')
  for (const [args, variables, told] of [
    [['--lake', lake], {}, `bookcast status: --lake: there is no directory ${lake}\n`],
    [[], { BOOKCAST_LAKE: file }, `bookcast status: BOOKCAST_LAKE: there is no directory ${file}\n`],
  ] as const) {
    const environment = { DATABASE_URL: '', BOOKCAST_DATA_DIR: dataDirectory, ...variables }
    const status = await bookcast(['status', ...args], { env: environment })
    assert.deepEqual(status, { code: 1, stdout: '', stderr: told })
  }
  assert.deepEqual(await readdir(root), ['file'])
})

test('a missing store is reported and not created', async (t) => {
  const root = await temporaryDirectory(t)
  const dataDirectory = join(root, 'data')
  const environment = { DATABASE_URL: '', BOOKCAST_DATA_DIR: dataDirectory }
  const told = `No store found in ${dataDirectory}. Set DATABASE_URL or pass --data-dir.\n`
  for (const args of [['status'], ['verify', '--store']]) {
    const { code, stdout, stderr } = await bookcast(args, { env: environment })
    assert.deepEqual(
      { code, stdout, stderr },
      { code: 1, stdout: '', stderr: `bookcast ${args[0]}: ${told}` },
    )
  }
  // On a machine that only records, a missing store is not an error.
  const { code, stdout } = await bookcast(['status', '--lake', root], { env: environment })
  assert.equal(code, 0)
  assert.ok(stdout.startsWith(told), stdout)
  assert.match(stdout, /^disk of lake +[\d.]+ \w+ free/m)
  assert.deepEqual(await readdir(root), [])
})

test('recorders and disks are shown while the store is unavailable', async (t) => {
  const root = await temporaryDirectory(t)
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  // Nothing listens on this port any more.
  server.close()
  await once(server, 'close')
  const environment = { DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/none` }
  const { code, stdout, stderr } = await bookcast(['status', '--lake', root], { env: environment })
  assert.equal(code, 1)
  assert.match(stderr, /^bookcast status: The relational store cannot be reached/)
  assert.match(stdout, /^disk of lake +[\d.]+ \w+ free/m)
})
