// Which library serves; without uWebSockets.js, node:http does, and no setting is needed.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

const SERVER = new URL('../../server/http/http-server.js', import.meta.url)

/** Starts a server in its own process, which sends itself one request and prints the result. */
async function serveInProcess(prelude: string, variable?: string) {
  const script = `
    ${prelude}
    const { httpAdapter, startHttpServer } = await import('${SERVER.href}')
    const { library, reason } = await httpAdapter()
    const head = { status: 200, headers: {} }
    const options = { host: '127.0.0.1', port: 0, stallTimeoutMs: 1000 }
    const body = new TextEncoder().encode('served')
    const server = await startHttpServer(options, (exchange) => exchange.sendWhole(head, body))
    const text = await (await fetch('http://127.0.0.1:' + server.port)).text()
    process.stdout.write(JSON.stringify({ library, reason, text }), () => process.exit())`
  const env = { ...process.env, BOOKCAST_HTTP: variable ?? '' }
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env,
  })
  return JSON.parse(stdout) as { library: string; reason?: string; text: string }
}

/** Makes the import of uWebSockets.js fail as it does where it has no binary. */
const WITHOUT_BINARY = `
  import { register } from 'node:module'
  register('data:text/javascript,' + encodeURIComponent(\`
    export async function resolve(name, context, next) {
      if (name === 'uWebSockets.js') throw new Error('This version supports only other systems')
      return next(name, context)
    }\`))`

test('node:http serves if uWebSockets.js has no binary, and the reason is reported', async () => {
  const { library, reason, text } = await serveInProcess(WITHOUT_BINARY)
  assert.equal(library, 'node:http')
  assert.match(
    reason ?? '',
    /^uWebSockets\.js has no binary for Node \d+\.\S+ on \w+ \w+ \(This version supports/,
  )
  assert.equal(text, 'served')
})

test('node:http serves if BOOKCAST_HTTP requests it', async () => {
  const { library, reason, text } = await serveInProcess('', 'node')
  assert.deepEqual([library, reason, text], ['node:http', 'BOOKCAST_HTTP says so', 'served'])
})
