// Both clients when a connection breaks off: a response with an entity tag is resumed where it ended, byte for byte. A response
// that has changed since, or that keeps breaking off, is an error.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { type ClientDriver, clientsOfThisFile } from '../support/client-drivers.ts'
import { runs } from '../support/effort.ts'
import { startSampleServer } from '../support/sample-server.ts'
import {
  type AnswerForm,
  answerForms,
  type Script,
  startRaw,
  startScripted,
} from '../support/scripted-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const CUTS = runs(25, 200)
/** In runtimes other than Node. */
const CUTS_ELSEWHERE = runs(10, 40)
const QUICK = { firstWaitMs: 1, resumes: 3 }
const LOB = { method: 'lob', parameters: { series: 'KXHIGHNY', date: '2026-07-01' } } as const
const LINES = Array.from({ length: 200 }, (_, index) => JSON.stringify({ ts: index, mid: index / 2 }))
const BODY = Buffer.from(`${LINES.join('\n')}\n`)
const ROWS = LINES.map((line): unknown => JSON.parse(line))
/** Of about 100 kB of the real server's stream, which a browser always gets compressed. */
const FIRST_BYTES = 40_000
const FIRST_CODED_BYTES = 5_000
const TAG = '"one"'

/** Sends the beginning of the body with the length of the whole body, and closes the connection. */
function breakOff(response: Parameters<Script>[1], bytes: number, headers: Record<string, string>): void {
  response.writeHead(200, { 'Content-Length': String(BODY.length), ...headers })
  response.write(BODY.subarray(0, bytes), () => setTimeout(() => response.destroy(), 20))
}

/** Browsers and Bun may drop bytes received just before the connection broke off. */
function keepsAll({ name }: ClientDriver): boolean {
  return ['TypeScript', 'TypeScript in Deno', 'Python'].includes(name)
}

function assertReached(client: ClientDriver, bytes: number | undefined, sent: number): void {
  if (keepsAll(client)) assert.equal(bytes, sent)
  else assert.ok(bytes !== undefined && bytes <= sent, String(bytes))
}

for (const client of clientsOfThisFile()) {
  test(`${client.name}: a response that is cut at any byte is resumed there, in every form`, async (t) => {
    await testCuts(t, client)
  })

  for (const compress of [false, true])
    test(`${client.name}: a ${compress ? 'compressed' : 'plain'} stream of the real server is resumed over another connection`, async (t) => {
      await testRealStream(t, client, compress)
    })

  test(`${client.name}: compressed rows of a changed response are not appended to the first part`, async (t) => {
    const placed = LINES.map((_, index) => `${JSON.stringify({ ts: index, market_id: 'M' })}\n`)
    const first = gzipSync(placed.join(''), { level: 0 })
    const coded = { ETag: TAG, 'Content-Encoding': 'gzip' }
    const server = await startScripted(t, (request, response, count) => {
      if (count === 0) {
        response.writeHead(200, { 'Content-Length': String(first.length), ...coded })
        response.write(first.subarray(0, 2000), () => setTimeout(() => response.destroy(), 20))
      } else response.writeHead(200, { ...coded, ETag: '"two"' }).end(request.method === 'HEAD' ? '' : first)
    })
    const { error } = await client.call({ url: server.url, ...LOB, options: QUICK, action: 'rows' })
    assert.equal(error?.type, 'IncompleteError')
    assert.match(error.message, /the answer is another one since/)
  })

  test(`${client.name}: a response that makes progress is resumed as often as it breaks off`, async (t) => {
    const line = `${JSON.stringify({ ts: 1, note: 'x'.repeat(1000) })}\n`
    const whole = Buffer.from(line.repeat(9_000))
    const step = 80_000
    const server = await startScripted(t, (request, response) => {
      const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? 'bytes=0-')?.[1])
      const range = `bytes ${start}-${whole.length - 1}/${whole.length}`
      response.writeHead(start === 0 ? 200 : 206, {
        ETag: TAG,
        'Accept-Ranges': 'bytes',
        'Content-Length': String(whole.length - start),
        ...(start === 0 ? {} : { 'Content-Range': range }),
      })
      const end = Math.min(whole.length, start + step)
      response.write(whole.subarray(start, end), () => {
        if (end === whole.length) response.end()
        else setTimeout(() => response.destroy(), 20)
      })
    })
    const given = await client.call({ url: server.url, ...LOB, options: QUICK, action: 'rows' })
    // Other runtimes drop bytes received just before the connection broke off.
    if (!keepsAll(client)) return
    assert.equal(given.error, undefined)
    assert.equal(given.rows?.length, 9_000)
    assert.ok(server.requests.length > 100)
  })

  test(`${client.name}: only the rest is requested from a server with ranges`, async (t) => {
    const server = await startScripted(t, (request, response, count) => {
      if (count === 0) return breakOff(response, 1000, { ETag: TAG, 'Accept-Ranges': 'bytes' })
      if (request.headers.range === undefined) return void response.writeHead(200, { ETag: TAG }).end(BODY)
      const first = Number(/^bytes=(\d+)-$/.exec(request.headers.range)?.[1])
      const rest = BODY.subarray(first)
      response.writeHead(206, {
        ETag: TAG,
        'Content-Range': `bytes ${first}-${BODY.length - 1}/${BODY.length}`,
        'Content-Length': String(rest.length),
      })
      response.end(rest)
    })
    const given = await client.call({ url: server.url, ...LOB, options: QUICK, action: 'rows' })
    assert.deepEqual(given.rows, ROWS, given.error?.message)
    const [first, second] = server.requests.map(({ headers }) => headers)
    assert.deepEqual([first?.range, first?.['if-range'], server.requests.length], [undefined, undefined, 2])
    // A client that dropped all bytes requests all of them.
    if (keepsAll(client) || second?.range !== undefined)
      assert.deepEqual([second?.range, second?.['if-range']], ['bytes=1000-', TAG])
  })

  test(`${client.name}: a range of a changed response is not appended to the first part`, async (t) => {
    for (const [what, status, headers] of [
      ['a part of another answer', 206, { ETag: '"two"', 'Content-Range': 'bytes 1000-1999/2000' }],
      ['another part', 206, { ETag: TAG, 'Content-Range': 'bytes 7-1999/2000' }],
      ['another answer', 200, { ETag: '"two"' }],
      ['an answer without a name', 200, {}],
    ] as const) {
      const server = await startScripted(t, (_, response, count) => {
        if (count === 0) breakOff(response, 1000, { ETag: TAG, 'Accept-Ranges': 'bytes' })
        else response.writeHead(status, headers).end(BODY)
      })
      const { error } = await client.call({ url: server.url, ...LOB, options: QUICK, action: 'rows' })
      assert.equal(error?.type, 'IncompleteError', what)
      assert.match(error.message, /the answer is another one since/, what)
      assertReached(client, error.bytes, 1000)
      assert.equal(server.requests.length, 2, what)
    }
  })

  test(`${client.name}: a response without a strong tag, or with resumes: 0, is requested once`, async (t) => {
    for (const [headers, resumes] of [
      [{}, 3],
      [{ ETag: 'W/"one"' }, 3],
      [{ ETag: TAG }, 0],
    ] as const) {
      const server = await startScripted(t, (_, response) => breakOff(response, 1000, headers))
      const { error } = await client.call({
        url: server.url,
        ...LOB,
        options: { ...QUICK, resumes },
        action: 'rows',
      })
      assert.equal(error?.type, 'IncompleteError')
      assertReached(client, error.bytes, 1000)
      assert.equal(server.requests.length, 1)
    }
  })

  test(`${client.name}: a response that never completes is requested up to the limit of resumes`, async (t) => {
    const server = await startScripted(t, (_, response, count) =>
      breakOff(response, 500 + 100 * count, { ETag: TAG }),
    )
    const { error } = await client.call({ url: server.url, ...LOB, options: QUICK, action: 'rows' })
    assert.equal(error?.type, 'IncompleteError')
    assertReached(client, error.bytes, 500 + 100 * QUICK.resumes)
    assert.equal(server.requests.length, 1 + QUICK.resumes)
  })
}

/** Responses of the real server, each cut at a random byte, by closing or resetting the connection. */
async function testCuts(t: TestContext, client: ClientDriver): Promise<void> {
  const { url } = await startSampleServer(t)
  const path = join(await temporaryDirectory(t), 'cut')
  // A recorded response cannot answer a request for the rows after a position; `testRealStream` tests that.
  const isRows = ({ action, answer }: AnswerForm): boolean =>
    action === 'rows' && /^content-encoding: gzip/im.test(answer.toString('latin1', 0, 1000))
  const forms = (await answerForms(url)).filter((form) => !isRows(form))
  const queue: { readonly bytes: Uint8Array; readonly isReset: boolean }[] = []
  let asked = 0
  const cutting = await startRaw(t, () => {
    asked += 1
    return queue.shift() ?? { bytes: Buffer.alloc(0), isReset: false }
  })
  const ask = async ({ format, action }: (typeof forms)[number]) => {
    const given = await client.call({
      url: cutting,
      method: 'lob',
      parameters: { series: 'KXHIGHNY-26JUL01', date: '2026-07-01', format },
      options: QUICK,
      action: action === 'file' && !client.hasFiles ? 'bytes' : action,
      path,
    })
    const content = action === 'file' && client.hasFiles ? await readFile(path).catch(() => null) : null
    return { ...given, content }
  }
  const random = new SeededRandom(14, 'cuts')
  const wholes = new Map<(typeof forms)[number], Awaited<ReturnType<typeof ask>>>()
  for (const form of forms) {
    queue.push({ bytes: form.answer, isReset: false })
    wholes.set(form, await ask(form))
  }
  const cuts = ['TypeScript', 'Python'].includes(client.name) ? CUTS : CUTS_ELSEWHERE
  for (let cut = 0; cut < cuts; cut += 1) {
    const form = forms[cut % forms.length]!
    const { answer, format } = form
    const bodyAt = answer.indexOf('\r\n\r\n') + 4
    const at = bodyAt + random.below(answer.length - bodyAt - 7)
    const again = bodyAt + random.below(answer.length - bodyAt - 7)
    const isTwice = random.unit() < 0.3
    queue.push(
      { bytes: answer.subarray(0, at), isReset: random.unit() < 0.3 },
      ...(isTwice ? [{ bytes: answer.subarray(0, again), isReset: false }] : []),
      { bytes: answer, isReset: false },
    )
    asked = 0
    const given = await ask(form)
    const what = `${format} cut at ${at}${isTwice ? ` and ${again}` : ''} of ${answer.length}`
    assert.deepEqual(given, wholes.get(form), `${what}: ${given.error?.message}`)
    assert.ok(asked >= (isTwice ? 3 : 2), `${what}: asked ${asked} times`)
    assert.equal(queue.length, 0, what)
  }
}

/** A proxy between client and server ends the first connection within the response. */
async function testRealStream(t: TestContext, client: ClientDriver, compress: boolean): Promise<void> {
  const firstBytes = compress ? FIRST_CODED_BYTES : FIRST_BYTES
  let asked = ''

  const { url } = await startSampleServer(t)
  let connections = 0
  const proxy = createServer((socket) => {
    connections += 1
    const isFirst = connections === 1
    const upstream = connect(Number(new URL(url).port), '127.0.0.1')
    let passed = 0
    for (const each of [socket, upstream]) each.on('error', () => {})
    upstream.on('data', (bytes) => {
      passed += bytes.length
      if (!isFirst || passed <= firstBytes) return
      // Received bytes are passed on first, with time to read them: a client without a row would request all of them.
      setImmediate(() => {
        upstream.unpipe(socket)
        setTimeout(() => socket.end(() => upstream.destroy()), 300)
      })
    })
    socket.on('data', (bytes) => (asked += bytes.toString('latin1')))
    socket.pipe(upstream).pipe(socket)
    socket.on('close', () => upstream.destroy())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.after(() => proxy.close())
  const parameters = { series: 'KXHIGHNY-26JUL02', date: '2026-07-02', interval: 5, levels: 50, hour: 15 }
  const whole = await client.call({ url, method: 'lob', parameters, action: 'rows' })
  const through = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const given = await client.call({
    url: through,
    method: 'lob',
    parameters,
    options: { ...QUICK, compress },
    action: 'rows',
  })
  assert.equal(given.error, undefined)
  assert.ok((given.rows?.length ?? 0) > 1000)
  assert.deepEqual(given.rows, whole.rows)
  assert.ok(connections >= 2, `${connections} connections`)
  // A client that dropped all bytes requests all of them.
  if (keepsAll(client)) assert.match(asked, compress ? /after=/ : /\r\nrange: bytes=\d+-/i)
}
