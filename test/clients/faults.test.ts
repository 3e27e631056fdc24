// Both clients against servers that are busy, slow, broken or gone: a truncated result never looks complete.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createConnection, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { sha256Hex } from '../../server/http/api-keys.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { type ClientCall, type ClientDriver, clientsOfThisFile } from '../support/client-drivers.ts'
import { runs } from '../support/effort.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { answerForms, refuse, startRaw, startScripted } from '../support/scripted-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const CUTS = runs(10, 200)
/** In runtimes other than Node. */
const CUTS_ELSEWHERE = runs(5, 40)
const LINES = Array.from({ length: 200 }, (_, index) =>
  JSON.stringify({ ts: index, text: 'ü'.repeat(index % 7) }),
)
const NDJSON = `${LINES.join('\n')}\n`
const LOB = { method: 'lob', parameters: { series: 'KXHIGHNY', date: '2026-07-01' } } as const
const QUICK = { firstWaitMs: 1, attempts: 6 }

for (const client of clientsOfThisFile()) {
  test(`${client.name}: a request to a busy server is retried until it is free, up to the limit of attempts`, async (t) => {
    const server = await startScripted(t, (_, response, count) => {
      if (count < 4) refuse(response, 429, 'too_many_requests', { 'Retry-After': '0' })
      else response.writeHead(200, { 'Content-Type': 'application/x-ndjson' }).end(NDJSON)
    })
    const call: ClientCall = { url: server.url, ...LOB, options: QUICK, action: 'rows' }
    assert.equal((await client.call(call)).rows?.length, 200)
    assert.equal(server.requests.length, 5)
    const impatient = await startScripted(t, (_, response) => refuse(response, 429, 'too_many_requests'))
    const { error } = await client.call({ ...call, url: impatient.url })
    assert.deepEqual([error?.type, error?.status, error?.code], ['ApiError', 429, 'too_many_requests'])
    assert.equal(impatient.requests.length, QUICK.attempts)
  })

  test(`${client.name}: 503 is retried, but not for a damaged file or a long Retry-After`, async (t) => {
    const starting = await startScripted(t, (_, response, count) => {
      if (count < 2) refuse(response, 503, 'not_ready')
      else response.writeHead(200).end(NDJSON)
    })
    const call: ClientCall = { url: starting.url, ...LOB, options: QUICK, action: 'rows' }
    assert.equal((await client.call(call)).rows?.length, 200)
    for (const [status, code, headers] of [
      [503, 'lake_file_invalid', {}],
      [503, 'store_timeout', { 'Retry-After': '3600' }],
      [500, 'internal_error', {}],
      [404, 'unknown_market', {}],
    ] as const) {
      const server = await startScripted(t, (_, response) => refuse(response, status, code, headers))
      const { error } = await client.call({ ...call, url: server.url })
      assert.deepEqual([error?.status, error?.code, error?.message], [status, code, `It is ${code}.`])
      assert.equal(server.requests.length, 1, code)
    }
  })

  test(`${client.name}: a connection that ends before its response is retried, up to the limit of attempts`, async (t) => {
    const call: ClientCall = { url: '', ...LOB, options: QUICK, action: 'rows' }
    const dropping = await startScripted(t, ({ socket }, response, count) => {
      if (count === 0) socket.resetAndDestroy()
      else if (count === 1) socket.destroy()
      else response.writeHead(200).end(NDJSON)
    })
    assert.equal((await client.call({ ...call, url: dropping.url })).rows?.length, 200)
    // Browsers retry by themselves.
    const isExact = ['TypeScript', 'Python'].includes(client.name)
    if (isExact) assert.equal(dropping.requests.length, 3)
    const never = await startScripted(t, ({ socket }) => void socket.destroy())
    const { error } = await client.call({ ...call, url: never.url })
    assert.equal(error?.type, 'ConnectionError')
    if (isExact) assert.equal(never.requests.length, QUICK.attempts)
    const proxy = await FaultProxy.tcp('127.0.0.1', Number(new URL(dropping.url).port))
    t.after(() => proxy.refuse())
    await proxy.refuse()
    setTimeout(() => void proxy.accept(), 100)
    const url = `http://127.0.0.1:${proxy.port}`
    const later = await client.call({ ...call, url, options: { firstWaitMs: 50 } })
    assert.equal(later.rows?.length, 200, later.error?.message)
  })

  test(`${client.name}: an error response of another server has its status`, async (t) => {
    const server = await startScripted(t, (_, response) =>
      response.writeHead(502, { 'Content-Type': 'text/html' }).end('<h1>Bad gateway</h1>'),
    )
    const { error } = await client.call({ url: server.url, ...LOB, action: 'rows' })
    assert.deepEqual([error?.type, error?.status, error?.code], ['ApiError', 502, 'http_502'])
  })

  test(`${client.name}: a response that is cut at any byte is an error, in every form`, async (t) => {
    await testCuts(t, client)
  })

  test(`${client.name}: a body that ends in the wrong place is an error, even if its transfer completes`, async (t) => {
    const gzip = gzipSync(NDJSON)
    for (const [what, body, headers] of [
      ['within a row', NDJSON.slice(0, 1001), {}],
      ['before a line feed', NDJSON.slice(0, -1), {}],
      ['no row', 'no row\n', {}],
      ['within a gzip', gzip.subarray(0, 500), { 'Content-Encoding': 'gzip' }],
    ] as const) {
      const server = await startScripted(t, (_, response) => response.writeHead(200, headers).end(body))
      const { error } = await client.call({ url: server.url, ...LOB, action: 'rows' })
      assert.equal(error?.type, 'IncompleteError', what)
    }
    const json = await startScripted(t, (_, response) => response.end('[{"ticker":"A"}'))
    const { error } = await client.call({ url: json.url, method: 'series', action: 'rows' })
    assert.equal(error?.type, 'IncompleteError')
  })

  test(`${client.name}: a server that is killed during a stream is an error`, async (t) => {
    await testKill(t, client)
  })

  test(`${client.name}: a silent server causes a timeout, before and during the response`, async (t) => {
    const call = { ...LOB, options: { timeoutMs: 150 }, action: 'rows' } as const
    const silent = await startScripted(t, () => {})
    const before = await client.call({ ...call, url: silent.url })
    assert.deepEqual([before.error?.type, before.error?.rows], ['TimeoutError', 0])
    const stalled = await startScripted(t, (_, response) => void response.write(`${LINES[0]}\n${LINES[1]}\n`))
    // The first bytes arrive within two seconds, even on a busy machine.
    const { error } = await client.call({ ...call, url: stalled.url, options: { timeoutMs: 2_000 } })
    assert.deepEqual([error?.type, error?.rows], ['TimeoutError', 2])
  })

  test(`${client.name}: cancelling or leaving a read closes the connection`, async (t) => {
    for (const action of ['cancel', 'leave'] as const) {
      let closed: Promise<unknown> | undefined
      const server = await startScripted(t, (request, response) => {
        closed = new Promise((resolve) => request.socket.once('close', resolve))
        response.write(NDJSON)
      })
      const given = await client.call({ url: server.url, ...LOB, action })
      if (action === 'cancel') assert.equal(given.error?.type, 'CancelledError', given.error?.message)
      else assert.equal(given.rows?.length, 10)
      await closed
    }
  })

  test(`${client.name}: every request has the API key`, async (t) => {
    const keys = { apiKeys: [{ name: 'charts', sha256: sha256Hex('a-key') }] }
    const { url } = await startSampleServer(t, keys)
    const call: ClientCall = { url, ...LOB, action: 'rows' }
    assert.equal((await client.call(call)).error?.code, 'unauthorized')
    assert.equal((await client.call({ ...call, options: { apiKey: 'wrong' } })).error?.code, 'unauthorized')
    const { rows, error } = await client.call({ ...call, options: { apiKey: 'a-key' } })
    assert.ok((rows?.length ?? 0) > 0, error?.message)
    // A key that no header can hold is refused before anything is sent, and the error does not show it.
    for (const apiKey of ['ключ', 'a-key\n', 'a-key\r\nX-Other: 1']) {
      const refused = (await client.call({ ...call, options: { apiKey } })).error
      assert.deepEqual(
        [refused?.type, refused?.message],
        ['BookcastError', 'An API key has only characters of ASCII, and no line break.'],
      )
    }
  })

  test(`${client.name}: responses are compressed, and progress counts the decompressed bytes`, async (t) => {
    const server = await startScripted(t, (request, response) => {
      assert.match(String(request.headers['accept-encoding']), /gzip/)
      response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(NDJSON))
    })
    const given = await client.call({ url: server.url, ...LOB, action: 'rows', progress: true })
    assert.deepEqual(
      given.rows,
      LINES.map((line) => JSON.parse(line) as object),
    )
    assert.deepEqual(given.progress?.at(-1), [200, Buffer.byteLength(NDJSON)])
  })

  test(`${client.name}: the next page uses only the query of the link`, async (t) => {
    const server = await startScripted(t, (request, response) => {
      const { searchParams } = new URL(request.url ?? '', 'http://host')
      const offset = Number(searchParams.get('offset') ?? 0)
      const limit = Number(searchParams.get('limit'))
      const end = Math.min(offset + Math.min(limit, 80), 200)
      const link = `<http://elsewhere.invalid/api/v1/observations?limit=${limit}&offset=${end}>; rel="next"`
      response.writeHead(200, end < 200 ? { Link: link } : {})
      response.end(
        LINES.slice(offset, end)
          .map((line) => `${line}\n`)
          .join(''),
      )
    })
    const url = `${server.url}/behind/a/prefix/`
    const all = await client.call({ url, method: 'observations', action: 'rows' })
    assert.deepEqual(
      all.rows,
      LINES.map((line) => JSON.parse(line) as object),
      all.error?.message,
    )
    assert.equal(server.requests.length, 3)
    assert.ok(
      server.requests.every((request) => request.url?.startsWith('/behind/a/prefix/api/v1/observations?')),
    )
    const some = await client.call({
      url,
      method: 'observations',
      parameters: { limit: 100 },
      action: 'rows',
    })
    assert.equal(some.rows?.length, 100)
    assert.match(server.requests.at(-1)?.url ?? '', /\blimit=20\b/)
  })

  test(`${client.name}: pages are joined to one file, except in parquet, where more pages are an error`, async (t) => {
    if (!client.hasFiles) {
      t.skip('it writes no files')
      return
    }
    const directory = await temporaryDirectory(t)
    const endless = await startScripted(t, (request, response, count) => {
      const next = count === 2 ? {} : { Link: `<${request.url}&offset=${count + 1}>; rel="next"` }
      const isCsv = request.url?.includes('format=csv') === true
      response.writeHead(200, next).end(isCsv ? `a,b\n${count},"x\ny"\n` : 'PAR1PAR1')
    })
    const path = join(directory, 'all.csv')
    const csv = await client.call({ url: endless.url, method: 'observations', action: 'file', path })
    assert.equal(csv.bytes, Buffer.byteLength('a,b\n0,"x\ny"\n1,"x\ny"\n2,"x\ny"\n'), csv.error?.message)
    const parquet = join(directory, 'all.parquet')
    const { error } = await client.call({
      url: endless.url,
      method: 'observations',
      action: 'file',
      path: parquet,
    })
    assert.equal(error?.type, 'MoreRowsError')
    assert.deepEqual(await readdir(directory), ['all.csv'])
  })

  test(`${client.name}: an unreachable server and a page that links to itself are errors`, async (t) => {
    const { error } = await client.call({
      url: 'http://127.0.0.1:9',
      ...LOB,
      options: QUICK,
      action: 'rows',
    })
    assert.equal(error?.type, 'ConnectionError')
    assert.match(error.message, /^http:\/\/127\.0\.0\.1:9 cannot be reached: /)
    const circle = await startScripted(t, (request, response) => {
      response.writeHead(200, { Link: `<${request.url}>; rel="next"` }).end(NDJSON)
    })
    const circling = await client.call({ url: circle.url, method: 'observations', action: 'rows' })
    assert.equal(circling.error?.type, 'BookcastError')
    for (const url of ['ftp://host', 'http://host:80800', 'http://[::1', 'localhost:8080', '']) {
      const wrong = await client.call({ url, ...LOB, action: 'rows' })
      assert.equal(wrong.error?.type, 'BookcastError', url)
      assert.equal(wrong.error.message, `The server's address must be one of http or https, not ${url}.`)
    }
  })
}

/** Responses of the real server, cut at random bytes, by closing or resetting the connection. */
async function testCuts(t: TestContext, client: ClientDriver): Promise<void> {
  const { url } = await startSampleServer(t)
  const directory = await temporaryDirectory(t)
  const forms = await answerForms(url)
  let sent: { readonly bytes: Uint8Array; readonly isReset: boolean } = {
    bytes: Buffer.alloc(0),
    isReset: false,
  }
  const cutting = await startRaw(t, () => sent)
  const ask = (format: string, action: 'rows' | 'file') =>
    client.call({
      url: cutting,
      method: 'lob',
      parameters: { series: 'KXHIGHNY-26JUL01', date: '2026-07-01', format },
      options: QUICK,
      action: action === 'file' && !client.hasFiles ? 'bytes' : action,
      path: join(directory, 'cut'),
    })
  for (const { format, action, answer } of forms) {
    sent = { bytes: answer, isReset: false }
    const whole = await ask(format, action)
    assert.ok((whole.rows?.length ?? whole.bytes ?? 0) > 100, `${format}: ${whole.error?.message}`)
  }
  const random = new SeededRandom(13, 'cuts')
  const cuts = ['TypeScript', 'Python'].includes(client.name) ? CUTS : CUTS_ELSEWHERE
  for (let cut = 0; cut < cuts; cut += 1) {
    const { format, action, answer } = forms[cut % forms.length]!
    const at = random.below(answer.length - 7)
    sent = { bytes: answer.subarray(0, at), isReset: random.unit() < 0.3 }
    const given = await ask(format, action)
    const { error } = given
    const what = `${format} cut at ${at} of ${answer.length}, reset ${sent.isReset}`
    assert.ok(error !== undefined, `${what}: ${JSON.stringify(given).slice(0, 200)}`)
    assert.ok(
      ['IncompleteError', 'ConnectionError'].includes(error.type),
      `${what}: ${error.type} ${error.message}`,
    )
    if (error.type === 'IncompleteError') assert.ok((error.bytes ?? -1) >= 0 && (error.rows ?? -1) >= 0)
  }
  assert.deepEqual(await readdir(directory), client.hasFiles ? ['cut'] : [])
}

/** The real server in its own process, which is killed after a megabyte of its response. */
async function testKill(t: TestContext, client: ClientDriver): Promise<void> {
  const child = spawn(
    process.execPath,
    [...PROGRAM_ARGUMENTS, 'serve', '--lake', SAMPLE_LAKE, '--port', '0'],
    {
      env: { ...process.env, BOOKCAST_STORE: 'off' },
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  )
  t.after(() => child.kill('SIGKILL'))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  while (!/:\d+\n/.test(text)) await once(child.stdout, 'data')
  const port = Number(/:(\d+)\n/.exec(text)?.[1])
  let passed = 0
  const proxy = createServer((socket) => {
    const upstream = createConnection(port, '127.0.0.1')
    for (const each of [socket, upstream]) each.on('error', () => {})
    upstream.on('close', () => socket.destroy())
    upstream.on('data', (bytes) => {
      passed += bytes.length
      if (passed > 1_000_000) child.kill('SIGKILL')
    })
    socket.pipe(upstream).pipe(socket)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.after(() => proxy.close())
  const { error } = await client.call({
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    method: 'lob',
    options: QUICK,
    // Six markets with a row every two seconds of a day: more than the buffers of both connections hold.
    parameters: { series: 'KXHIGHNY-26JUL02', date: '2026-07-02', interval: 2, levels: 50 },
    action: 'rows',
  })
  assert.equal(error?.type, 'IncompleteError', error?.message)
  assert.ok((error.rows ?? 0) > 0 && (error.bytes ?? 0) > 0)
}
