// nginx in front of two servers, with the text of operations/nginx.conf and their addresses.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from './server-process.ts'

const EXAMPLE = fileURLToPath(new URL('../../operations/nginx.conf', import.meta.url))
/** Undefined if nginx is not installed. */
export const NGINX = ['nginx', '/usr/sbin/nginx'].find((name) => spawnSync(name, ['-v']).error === undefined)
const START_TRIES = 200
const START_PAUSE_MS = 50

export interface NginxProxy {
  readonly port: number
  readonly url: string
  stop(): Promise<void>
}

/** Starts nginx in front of the servers at these ports; its files are in the directory. */
export async function startNginx(
  directory: string,
  [first, second]: readonly [number, number],
): Promise<NginxProxy> {
  if (NGINX === undefined) throw new Error('nginx is not installed')
  const port = await freePort()
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  )
  const swaps: readonly (readonly [string, string])[] = [
    ['serve-1:8080', `127.0.0.1:${first}`],
    ['serve-2:8080', `127.0.0.1:${second}`],
    ['listen 8080;', `listen 127.0.0.1:${port};`],
    ['/var/cache/nginx/bookcast', join(directory, 'kept')],
    ['http {', `http { access_log off; ${own.join(' ')}`],
  ]
  let text = await readFile(EXAMPLE, 'utf8')
  for (const [from, to] of swaps) {
    if (!text.includes(from)) throw new Error(`the example lacks ${from}`)
    text = text.replace(from, to)
  }
  const log = join(directory, 'error.log')
  await writeFile(
    join(directory, 'nginx.conf'),
    // As root, nginx would run its workers as another user, which may not enter the directory.
    `${process.getuid?.() === 0 ? 'user root; ' : ''}daemon off; pid ${directory}/pid; error_log ${log} warn;\n${text}`,
  )
  const child = spawn(NGINX, ['-p', directory, '-e', log, '-c', join(directory, 'nginx.conf')], {
    stdio: 'inherit',
  })
  const stop = async () => {
    child.kill('SIGTERM')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  const url = `http://127.0.0.1:${port}`
  for (let left = START_TRIES; left > 0 && child.exitCode === null; left--) {
    const isUp = await fetch(`${url}/health`).then(
      () => true,
      () => false,
    )
    if (isUp) return { port, url, stop }
    await sleep(START_PAUSE_MS)
  }
  await stop()
  throw new Error(`nginx does not answer: ${await readFile(log, 'utf8')}`)
}
