// Which responses the S3 store accepts as responses of object storage.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { getEventListeners, once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { S3Store } from '../../server/sync/s3-store.ts'
import { SYNC_ANSWER_MS_MAX, SYNC_HELD_BYTES_PER_MS_MIN, SYNC_STALL_MS } from '../../shared/limits.ts'
import { startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

test('a 404 of the credentials service is an error, not a missing object', async (t) => {
  const tokenPath = join(await temporaryDirectory(t), 'token')
  await writeFile(tokenPath, 'a token')
  let requests = 0
  const server = createServer((_, response) => {
    requests++
    response.writeHead(404, { 'content-type': 'text/xml' }).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  for (const name of Object.keys(process.env))
    if (/^AWS_.*(?:KEY|PROFILE|TOKEN)/.test(name)) delete process.env[name]
  Object.assign(process.env, {
    AWS_WEB_IDENTITY_TOKEN_FILE: tokenPath,
    AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/collector',
    AWS_ENDPOINT_URL_STS: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    AWS_EC2_METADATA_DISABLED: 'true',
  })
  const store = new S3Store({ bucket: 'lake', prefix: '', endpoint: 'http://127.0.0.1:9' })
  t.after(() => store.close())
  await assert.rejects(store.head('lob/a.parquet'), /HTTP 404/)
  await assert.rejects(store.get({ key: 'lob/a.parquet', sizeBytes: 1, version: '"1"' }, 0), /HTTP 404/)
  await assert.rejects(store.remove('lob/a.parquet'), /HTTP 404/)
  assert.equal(requests, 3)
})

/** A store at a server that answers as told. */
async function storeAt(t: TestContext, answer: RequestListener): Promise<{ server: Server; store: S3Store }> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.closeAllConnections())
  t.after(() => server.close())
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' })
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const store = new S3Store({ bucket: 'lake', prefix: 'a', endpoint })
  t.after(() => store.close())
  return { server, store }
}

test('the error names the destination if the connection breaks or another service answers', async (t) => {
  let answer = (response: ServerResponse): unknown => response.socket?.destroy()
  const { store } = await storeAt(t, (_, response) => answer(response))
  const isBroken = /^Error: s3:\/\/lake\/a: no answer: (socket hang up|read ECONNRESET)$/
  await assert.rejects(store.list().next(), isBroken)
  await assert.rejects(store.head('lob/a.parquet'), isBroken)
  answer = (response) => {
    response.writeHead(200, { etag: '"1"', 'content-length': 10 }).write('abc')
    setTimeout(() => response.socket?.destroy(), 50)
  }
  const body = await store.get({ key: 'lob/a.parquet', sizeBytes: 10, version: '"1"' }, 0)
  await assert.rejects(body.toArray(), /^Error: s3:\/\/lake\/a: the answer broke off: aborted$/)
  answer = (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Log in</html>')
  await assert.rejects(
    store.list().next(),
    /^Error: s3:\/\/lake\/a: the answer to a listing is not one of object storage/,
  )
})

test('a request leaves no listener in the signal of a process that makes thousands', async (t) => {
  const store = (await startS3Server(t)).store()
  t.after(() => store.close())
  const bytes = Buffer.from('abc')
  const digest = (name: string): string => createHash(name).update(bytes).digest('hex')
  const facts = { sizeBytes: bytes.length, version: '', sha256: digest('sha256'), md5: digest('md5') }
  await store.put({ key: 'lob/a.parquet', ...facts }, async () => Readable.from([bytes]), {})
  const { signal } = new AbortController()
  for await (const listed of store.list(signal)) {
    const body = await store.get(listed, 0, signal)
    assert.equal(getEventListeners(signal, 'abort').length, 1, 'an abort ends the body')
    assert.deepEqual(Buffer.concat(await body.toArray()), bytes)
    await store.head(listed.key, signal)
    await assert.rejects(store.get({ ...listed, version: '"other"' }, 0, signal))
    await store.remove(listed.key, signal)
  }
  assert.equal(getEventListeners(signal, 'abort').length, 0)
})

test('a request that its signal ends rejects with the reason of the signal', async (t) => {
  const { server, store } = await storeAt(t, () => {})
  const stop = new AbortController()
  const asked = once(server, 'request')
  const reason = new Error('s3://lake/a: not done within 15 s')
  const rejected = assert.rejects(store.list(stop.signal).next(), reason)
  await asked
  stop.abort(reason)
  await rejected
})

test(
  'an answer that comes a byte at a time is given up, and the next one is taken',
  { timeout: 30_000 },
  async (t) => {
    const page = '<ListBucketResult><Name>lake</Name><IsTruncated>false</IsTruncated></ListBucketResult>'
    let answer = (response: ServerResponse): unknown => response.writeHead(200).write(page.slice(0, 1))
    const { server, store } = await storeAt(t, (_, response) => answer(response))
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const asked = once(server, 'request')
    const rejected = assert.rejects(
      store.list().next(),
      /^Error: s3:\/\/lake\/a: no complete answer within 60 s$/,
    )
    await asked
    t.mock.timers.tick(SYNC_ANSWER_MS_MAX)
    await rejected
    answer = (response) => response.writeHead(200).end(page)
    assert.deepEqual(await store.list().next(), { done: true, value: undefined })
  },
)

test('an upload waits for the bytes that the system still holds after the last one was read', async (t) => {
  let reply = (): unknown => undefined
  const { server, store } = await storeAt(t, (request, response) => {
    reply = () => response.setHeader('etag', `"${digestOf('md5')}"`).end()
    request.resume().on('end', () => server.emit('received'))
  })
  const bytes = Buffer.alloc(2 * SYNC_HELD_BYTES_PER_MS_MIN * 1000)
  const digestOf = (algorithm: string): string => createHash(algorithm).update(bytes).digest('hex')
  const head = { key: 'lob', sizeBytes: bytes.length, sha256: digestOf('sha256'), md5: digestOf('md5') }
  const put = () => store.put({ ...head, version: '1' }, async () => Readable.from([bytes]))
  t.mock.timers.enable({ apis: ['setTimeout'] })
  for (const [waitMs, isInTime] of [
    [1999, true],
    [2000, false],
  ] as const) {
    const received = once(server, 'received')
    const written = put()
    const outcome = isInTime ? written : assert.rejects(written, /too few bytes moved in 32 s/)
    await received
    t.mock.timers.tick(SYNC_STALL_MS + waitMs)
    if (isInTime) reply()
    await outcome
  }
})
