// The real server in its own process, as a user starts it: `bookcast serve` on a free port. Its log is discarded.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Address } from './http-stream.ts'

const MAIN = fileURLToPath(new URL('../server/main.js', import.meta.url))
const LOOPBACK_SOURCE = fileURLToPath(new URL('loopback-source.js', import.meta.url))
const CATALOGUE_SERVER = fileURLToPath(new URL('catalogue-server.js', import.meta.url))
const START_TIMEOUT_MS = 60_000
/** Characters of standard output that are searched for the address. */
const PRINTED_TEXT_MAX = 4096

export interface ChildServer {
  readonly address: Address
  readonly pid: number
  /** Kills the process at once. */
  stop(): Promise<void>
  /** Ends it gracefully, as an operator does. */
  end(): Promise<void>
}

function serveArguments(lake: string, port = '0'): string[] {
  // Options for Node itself, such as --cpu-prof, to analyse a measurement.
  const nodeOptions = process.env['BENCH_SERVER_NODE_OPTIONS']?.split(' ') ?? []
  return [...nodeOptions, MAIN, 'serve', '--lake', lake, '--port', port, '--host', '127.0.0.1']
}

/** A free port of the loopback interface. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Starts `bookcast serve` over the lake, order books only, and resolves when it listens. */
export async function startBookcast(
  lake: string,
  options: readonly string[] = [],
  port?: string,
): Promise<ChildServer> {
  return await startChild([...serveArguments(lake, port), '--store', 'off', ...options])
}

/** Starts `bookcast serve` with an embedded store, which it fills with the sample records unless it has them. */
export async function startBookcastWithStore(
  lake: string,
  dataDirectory: string,
  databaseUrl = '',
): Promise<ChildServer> {
  const store = ['--sample-records', '--data-dir', dataDirectory]
  return await startChild([...serveArguments(lake), ...store], { DATABASE_URL: databaseUrl })
}

/** Starts a process that sends `sizeBytes` of plain TCP to each client. */
export async function startLoopbackSource(sizeBytes: number): Promise<ChildServer> {
  return await startChild([LOOPBACK_SOURCE, String(sizeBytes)])
}

/** Starts one of the servers that the catalogue benchmark compares. */
export async function startCatalogueServer(
  kind: 'bare' | 'bookcast' | 'fastify',
  argument: string,
): Promise<ChildServer> {
  return await startChild([CATALOGUE_SERVER, kind, argument])
}

/** Starts a Node program that prints `http://host:port` or `tcp://host:port` once it listens. */
async function startChild(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<ChildServer> {
  const env = { ...process.env, ...environment }
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'], env })
  const endBy = async (signal: 'SIGKILL' | 'SIGTERM') => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'close')
    child.kill(signal)
    await closed
  }
  const stop = async () => await endBy('SIGKILL')
  try {
    return {
      address: await printedAddress(child),
      pid: child.pid ?? 0,
      stop,
      end: async () => await endBy('SIGTERM'),
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function printedAddress(child: ChildProcess): Promise<Address> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`no address printed: ${child.spawnargs.join(' ')}`)),
      START_TIMEOUT_MS,
    )
    let text = ''
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`exit ${code}: ${child.spawnargs.join(' ')}`)))
    // Keep reading, so that later output cannot fill the pipe.
    child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
      text = (text + piece).slice(-PRINTED_TEXT_MAX)
      const address = /\b(?:http|tcp):\/\/([\d.]+):(\d+)\b/.exec(text)
      if (address === null) return
      clearTimeout(timer)
      resolve({ host: address[1]!, port: Number(address[2]) })
    })
  })
}
