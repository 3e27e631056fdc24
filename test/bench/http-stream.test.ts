import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import fc from 'fast-check'
import type { Address } from '../../bench/http-stream.ts'
import { ResponseParser, readStream, startStream } from '../../bench/http-stream.ts'

async function listen(t: TestContext, listener: RequestListener): Promise<Address> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return { host: '127.0.0.1', port: address.port }
}

test('finds the body in a chunked response that arrives in pieces of any size', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
      (chunks, cuts) => {
        const wire = Buffer.concat([
          Buffer.from('HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nTransfer-Encoding: chunked\r\n\r\n'),
          ...chunks.flatMap((chunk) => [
            Buffer.from(`${chunk.length.toString(16)}\r\n`),
            chunk,
            Buffer.from('\r\n'),
          ]),
          Buffer.from('0\r\n\r\n'),
        ])
        const body: Buffer[] = []
        const parser = new ResponseParser((bytes) => body.push(Buffer.from(bytes)))
        let cut = 0
        for (let offset = 0; offset < wire.length; cut += 1) {
          assert.equal(parser.isComplete, false)
          const end = offset + cuts[cut % cuts.length]!
          parser.read(wire.subarray(offset, end))
          offset = end
        }
        assert.equal(parser.isComplete, true)
        assert.equal(parser.status, 200)
        assert.deepEqual(Buffer.concat(body), Buffer.concat(chunks))
        assert.equal(parser.bodyBytes, Buffer.concat(chunks).length)
      },
    ),
  )
})

test('reads bodies of a given length, and empty ones', async (t) => {
  const address = await listen(t, (request, response) => {
    if (request.url === '/empty') response.writeHead(204).end()
    else response.end('x'.repeat(100_000))
  })
  const long = await readStream({ address, target: '/' })
  assert.deepEqual([long.status, long.bodyBytes], [200, 100_000])
  const empty = await readStream({ address, target: '/empty' })
  assert.deepEqual([empty.status, empty.bodyBytes], [204, 0])
})

test('is rejected when the transfer breaks off', async (t) => {
  const address = await listen(t, (_request, response) => {
    response.write('x'.repeat(1000), () => response.destroy())
  })
  await assert.rejects(readStream({ address, target: '/' }), /ended after \d+ body bytes|ECONNRESET/)
})

test('a stalled stream reads no further, and can be abandoned', async (t) => {
  let unsent = 0
  const address = await listen(t, (_request, response) => {
    response.write(Buffer.alloc(64 * 1024 * 1024))
    unsent = response.writableLength
  })
  const stream = startStream({ address, target: '/', stallAfterBytes: 1 })
  const rejected = assert.rejects(stream.done)
  while (stream.bodyBytes === 0) await new Promise((resolve) => setImmediate(resolve))
  const stalledAt = stream.bodyBytes
  assert.ok(stalledAt <= 256 * 1024)
  // Meanwhile another transfer completes.
  const other = startStream({ address, target: '/', stallAfterBytes: 8 * 1024 * 1024 })
  const otherRejected = assert.rejects(other.done)
  while (other.bodyBytes < 8 * 1024 * 1024) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(stream.bodyBytes, stalledAt)
  assert.ok(unsent > 0)
  stream.destroy()
  other.destroy()
  await Promise.all([rejected, otherRejected])
})
