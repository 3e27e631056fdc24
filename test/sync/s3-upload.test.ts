// Uploads that end early: only the upload fails.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { OpenBytes } from '../../server/sync/object-store.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const BYTES = Buffer.alloc(3_000_000, 7)
const KEY = 'climate/day.parquet'

/** An upload of `BYTES` that the server delays before it reads the body. */
async function startUpload(t: TestContext, open: OpenBytes) {
  const server = await startS3Server(t)
  const store = server.store()
  t.after(() => store.close())
  const arrived = new EventTarget()
  let letGo = (): void => {}
  const gate = new Promise<void>((resolve) => (letGo = resolve))
  t.after(() => letGo())
  server.gate = async () => {
    arrived.dispatchEvent(new Event('request'))
    await gate
  }
  const stopping = new AbortController()
  const digest = (name: string): string => createHash(name).update(BYTES).digest('hex')
  const head = {
    key: KEY,
    sizeBytes: BYTES.length,
    version: '',
    sha256: digest('sha256'),
    md5: digest('md5'),
  }
  const requested = once(arrived, 'request')
  const written = store.put(head, open, { signal: stopping.signal })
  return { written, stopping, requested }
}

async function fileOf(t: TestContext): Promise<string> {
  const path = join(await temporaryDirectory(t), 'day.parquet')
  await writeFile(path, BYTES)
  return path
}

for (const moment of ['before its request is sent', 'while the service waits'] as const) {
  test(`an upload that is stopped ${moment} fails with the reason, and nothing else fails`, async (t) => {
    const path = await fileOf(t)
    const opening = new EventTarget()
    const opened = once(opening, 'open')
    const { written, stopping, requested } = await startUpload(t, async () => {
      opening.dispatchEvent(new Event('open'))
      return createReadStream(path)
    })
    const reason = new Error('stopped')
    const rejected = assert.rejects(written, reason)
    await (moment === 'while the service waits' ? requested : opened)
    stopping.abort(reason)
    await rejected
  })
}

test('an upload whose file becomes unreadable fails with the error of the file', async (t) => {
  const source = new Readable({ read() {} })
  const { written, requested } = await startUpload(t, async () => source)
  const rejected = assert.rejects(written, /EIO/)
  source.push(BYTES.subarray(0, 1000))
  await requested
  source.destroy(new Error('EIO: i/o error, read'))
  await rejected
})

test('the test service keeps no partial object of a killed client', async (t) => {
  const server = await startS3Server(t)
  const [store, url] = [server.store(), `${server.endpoint}/${BUCKET}/${KEY}`]
  const headers = { 'content-length': BYTES.length }
  const upload = request(url, { method: 'PUT', headers })
  upload.on('error', () => {})
  upload.write(BYTES.subarray(0, 1_000_000))
  await delay(200)
  upload.destroy()
  await delay(200)
  assert.equal(await store.head(KEY), undefined)
  await once(request(url, { method: 'PUT', headers }).end(BYTES), 'response')
  assert.equal((await store.head(KEY))?.sizeBytes, BYTES.length)
})
