// Behaviour of the uWebSockets.js adapter alone; what both adapters share is tested in the other files.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { connect } from 'node:net'
import { test } from 'node:test'
import { promisify } from 'node:util'
import type { BodySink } from '../../server/http/exchange.ts'
import { CHUNK_BYTES } from '../../shared/limits.ts'
import { patternBytes } from '../support/byte-pattern.ts'
import { decodeChunked, readToEnd } from '../support/test-server.ts'
import { uwsOrSkip } from '../support/uws-binary.ts'

for (const isHeld of [true, false]) {
  const size = isHeld
    ? 'more than the cork buffer of the library holds'
    : 'no more than the cork buffer of the library holds'
  test(`writes ${size} at once when the foreign cork is ${isHeld ? 'held' : 'lost'}`, async (t) => {
    if ((await uwsOrSkip(t)) === undefined) return
    const { openForeignCork } = await import('../../server/http/foreign-cork.ts')
    const { startUwsServer } = await import('../../server/http/uws-server.ts')
    // Each write becomes one chunk on the wire.
    const foreignCork = await openForeignCork()
    if (!isHeld) foreignCork.close()
    const body = patternBytes(3_000_000)
    const options = { host: '127.0.0.1', port: 0, stallTimeoutMs: 60_000 }
    const head = { status: 200, headers: {} }
    const write = async (sink: BodySink): Promise<void> => {
      for (let start = 0; start < body.length; start += CHUNK_BYTES) {
        await sink.write(body.subarray(start, start + CHUNK_BYTES))
      }
      await sink.end()
    }
    const server = await startUwsServer(
      options,
      (exchange) => void write(exchange.startBody(head, undefined)),
      foreignCork,
    )
    t.after(() => server.close())
    const socket = connect(server.port, '127.0.0.1')
    t.after(() => socket.destroy())
    socket.write('GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n')
    const raw = await readToEnd(socket)
    const sizes = [...raw.toString('latin1').matchAll(/\r\n([0-9a-f]{1,6})\r\n/g)].map(([, hex]) =>
      Number.parseInt(hex ?? '', 16),
    )
    assert.deepEqual(new Uint8Array(decodeChunked(raw).body), body)
    if (isHeld) assert.ok(sizes.filter((bytes) => bytes > 32 * 1024).length > 10)
    else for (const bytes of sizes) assert.ok(bytes <= 16 * 1024 - 8, `a chunk of ${bytes} bytes`)
  })
}

test('starts or reports why not, however few file descriptors are left', async (t) => {
  if ((await uwsOrSkip(t)) === undefined) return
  const server = new URL('../../server/http/uws-server.js', import.meta.url)
  const script = `
    import { closeSync, openSync } from 'node:fs'
    import { startUwsServer } from '${server.href}'
    const taken = []
    try { for (;;) taken.push(openSync('/dev/null')) } catch {}
    for (let count = 0; count < Number(process.argv[1]); count++) closeSync(taken.pop())
    const starting = startUwsServer({ host: '127.0.0.1', port: 0, stallTimeoutMs: 1000 }, () => {})
    const end = await starting.then((running) => (running.close(), 'started'), (error) => error.message)
    for (const descriptor of taken) closeSync(descriptor)
    process.stdout.write(end)`
  const ends: string[] = []
  for (let free = 0; ends.at(-1) !== 'started'; free++) {
    const command = 'ulimit -n 64; exec "$0" --input-type=module -e "$1" "$2"'
    const args = ['-c', command, process.execPath, script, String(free)]
    const { stdout, stderr } = await promisify(execFile)('sh', args, { timeout: 30_000 })
    assert.match(stdout, /^started$|^cannot listen|EMFILE|file descriptors/)
    assert.equal(stderr, '')
    ends.push(stdout)
  }
  assert.equal(ends[0], 'cannot listen on 127.0.0.1')
  assert.ok(ends.some((end) => end.endsWith('are there file descriptors left?')))
})
