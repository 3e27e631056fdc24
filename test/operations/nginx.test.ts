// The example operations/nginx.conf, with addresses filled in, in front of two servers: nginx retries failed requests on the other
// server, clients detect streams that break off, and complete responses are cached. Skipped without nginx; verified with 1.22.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { NGINX, startNginx } from '../../bench/nginx-proxy.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const SAMPLE_LAKE = fileURLToPath(new URL('../../../data-samples/lake', import.meta.url))
const SHORT = '/api/v1/lob?series=KXHIGHCHI&date=2026-07-03&hour=18&interval=300&levels=3'
// More than the socket buffers of all ends hold.
const LONG = '/api/v1/lob?series=KXHIGHNY-26JUL02&date=2026-07-02&interval=2&format=csv'
/** Enough requests that each of two servers is tried first for some. */
const REQUESTS = 8
/** The idle timeout of both server libraries. */
const SERVER_IDLE_MS = 10_000

interface Replica {
  readonly child: ChildProcess
  readonly port: number
  readonly url: string
}

const children: ChildProcess[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
})

async function startReplica(lake: string, args: readonly string[] = []): Promise<Replica> {
  const fixed = ['--lake', lake, '--port', '0', '--trusted-proxies', '1', '--log-level', 'silent']
  const child = spawn(process.execPath, [...PROGRAM_ARGUMENTS, 'serve', ...fixed, ...args], {
    env: { ...process.env, BOOKCAST_STORE: 'off' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  let text = ''
  for await (const piece of child.stdout.setEncoding('utf8')) {
    text += String(piece)
    const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(text)?.[1]
    if (port !== undefined) return { child, port: Number(port), url: `http://127.0.0.1:${port}` }
  }
  throw new Error(`serve ended: ${text}`)
}

async function kill({ child }: Replica): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** Starts nginx in front of the two servers, and returns its address. */
async function startProxy(t: TestContext, replicas: readonly [Replica, Replica]): Promise<string> {
  const proxy = await startNginx(await temporaryDirectory(t), [replicas[0].port, replicas[1].port])
  t.after(() => proxy.stop())
  return proxy.url
}

async function textOf(url: string): Promise<string> {
  const response = await fetch(url)
  const text = await response.text()
  assert.equal(response.status, 200, text.slice(0, 300))
  return text
}

async function sampleCopy(directory: string): Promise<string> {
  const lake = join(directory, 'lake')
  await mkdir(lake)
  await cp(SAMPLE_LAKE, lake, { recursive: true })
  return lake
}

/** Replaces the file that LONG reads by another file of the sample lake, as every writer of a lake does. */
async function putFile(lake: string, date: string): Promise<void> {
  const place = lobFilePath(lake, 'kalshi', 'KXHIGHNY', '2026-07-02')
  await cp(lobFilePath(SAMPLE_LAKE, 'kalshi', 'KXHIGHNY', date), `${place}.draft`)
  await rename(`${place}.draft`, place)
}

const options = { skip: NGINX === undefined ? 'nginx is not installed' : false }

/** Two servers over one lake, shared by most tests; the last test kills them. */
let replicas: readonly [Replica, Replica]
let lake: string
let directory: string | undefined
before(async () => {
  if (NGINX === undefined) return
  directory = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
  lake = await sampleCopy(directory)
  replicas = [await startReplica(lake), await startReplica(lake)]
})
after(async () => {
  if (directory !== undefined) await rm(directory, { recursive: true, force: true })
})

test('requests and streams pass through unchanged', options, async (t) => {
  const proxy = await startProxy(t, replicas)
  assert.equal(await textOf(proxy + SHORT), await textOf(replicas[0].url + SHORT))
  assert.equal(await textOf(proxy + LONG), await textOf(replicas[1].url + LONG))
  assert.equal((await fetch(`${proxy}/metrics`)).status, 404)
  const wrong = await fetch(`${proxy}/api/v1/lob?series=KXHIGHCHI&date=no`)
  assert.equal(wrong.status, 400)
})

test(
  'nginx closes an idle connection before a server does, because a request could race with the close',
  options,
  async (t) => {
    const server = createServer({ keepAliveTimeout: SERVER_IDLE_MS }, (_, response) => response.end('there'))
    const closing = new Promise<string>((resolve) => {
      server.on('connection', (socket) => {
        socket.on('end', () => resolve('nginx')).on('close', () => resolve('the server'))
      })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo
    const proxy = await startNginx(await temporaryDirectory(t), [port, port])
    t.after(() => proxy.stop())
    assert.equal(await textOf(`${proxy.url}/health`), 'there')
    assert.equal(await closing, 'nginx')
  },
)

test('the other server answers a request that one refuses with 429 or 503', options, async (t) => {
  const damaged = await sampleCopy(await temporaryDirectory(t))
  await writeFile(lobFilePath(damaged, 'kalshi', 'KXHIGHCHI', '2026-07-03'), 'no parquet file')
  const cases = [
    { status: 429, replica: await startReplica(SAMPLE_LAKE, ['--rate-limit', '1', '--rate-burst', '1']) },
    { status: 503, replica: await startReplica(damaged) },
  ]
  const [good] = replicas
  const expected = await textOf(good.url + SHORT)
  for (const { status, replica } of cases) {
    const proxy = await startProxy(t, [replica, good])
    for (let left = REQUESTS; left > 0; left--) assert.equal(await textOf(proxy + SHORT), expected)
    const alone = await Promise.all(
      Array.from({ length: 3 }, async () => (await fetch(replica.url + SHORT)).status),
    )
    assert.ok(alone.includes(status), `alone it answers ${alone.join(' ')}, not ${status}`)
  }
})

test('the other server answers a request for data that one does not hold', options, async (t) => {
  const partial: Replica[] = []
  for (const series of ['KXHIGHNY', 'KXHIGHCHI']) {
    const copy = join(await temporaryDirectory(t), 'lake')
    const pull = ['--sync-from', SAMPLE_LAKE, '--sync-series', series]
    const replica = await startReplica(copy, pull)
    const own = `${replica.url}/api/v1/files?dataset=lob&series=${series}`
    while (((await (await fetch(own)).json()) as unknown[]).length < 3) await sleep(50)
    partial.push(replica)
  }
  const proxy = await startProxy(t, partial as [Replica, Replica])
  for (const series of ['KXHIGHNY', 'KXHIGHCHI']) {
    const target = `/api/v1/lob?series=${series}&date=2026-07-03&hour=18&interval=300&levels=3`
    const alone = await Promise.all(partial.map(async ({ url }) => (await fetch(url + target)).status))
    assert.deepEqual(
      alone.toSorted((a, b) => a - b),
      [200, 503],
    )
    for (let left = REQUESTS; left > 0; left--) assert.ok((await textOf(proxy + target)).length > 2)
  }
})

test(
  'a complete response is cached, revalidated by its ETag, and never older than the lake',
  options,
  async (t) => {
    const [first] = replicas
    const proxy = await startProxy(t, replicas)
    const ask = async (headers: Record<string, string> = {}, method = 'GET') => {
      const response = await fetch(proxy + LONG, { method, headers })
      return { cache: response.headers.get('x-cache'), status: response.status, text: await response.text() }
    }
    const expected = await textOf(first.url + LONG)
    const answers = await Promise.all(Array.from({ length: 4 }, () => ask()))
    assert.ok(answers.every(({ text }) => text === expected))
    // A response that took more than a second to arrive is revalidated once more.
    const caches = answers.map(({ cache }) => cache)
    assert.equal(caches.filter((cache) => cache === 'MISS').length, 1, caches.join(' '))
    assert.ok(caches.every((cache) => cache === 'MISS' || cache === 'HIT' || cache === 'REVALIDATED'))
    await sleep(1_100)
    assert.deepEqual(await ask(), { cache: 'REVALIDATED', status: 200, text: expected })
    assert.equal((await ask({ 'X-API-Key': 'k' })).cache, 'BYPASS')
    assert.equal((await ask({ Authorization: 'Bearer k' })).cache, 'BYPASS')
    assert.equal((await ask({ Range: 'bytes=0-9' })).cache, 'BYPASS')
    const head = await ask({}, 'HEAD')
    assert.deepEqual([head.status, head.text], [200, ''])

    // After the file is replaced the response is another one.
    await putFile(lake, '2026-07-03')
    await sleep(1_100)
    assert.notEqual((await ask()).text, expected)
    await putFile(lake, '2026-07-02')
  },
)

test(
  'a killed server breaks off only its running responses, and these are not cached',
  options,
  async (t) => {
    const [first, second] = replicas
    const proxy = await startProxy(t, [first, second])
    const expected = await textOf(proxy + SHORT)
    await kill(first)
    for (let left = REQUESTS; left > 0; left--) assert.equal(await textOf(proxy + SHORT), expected)
    const whole = (await textOf(second.url + LONG)).length
    const response = await fetch(proxy + LONG)
    assert.equal(response.status, 200)
    let received = 0
    await assert.rejects(async () => {
      for await (const piece of response.body!) {
        if (received === 0) await kill(second)
        received += (piece as Uint8Array).length
      }
    }, 'a broken stream ends like a whole one')
    assert.ok(received > 0 && received < whole, `${received} of ${whole} bytes`)
    assert.equal((await fetch(proxy + LONG)).status, 502)
  },
)
