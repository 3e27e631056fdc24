// The HTTP server behind the interface of exchange.ts: uWebSockets.js, or node:http where that has no binary (other
// processors, other C libraries, newer versions of Node). Both keep the same rules; node:http is slower.

import type { ExchangeHandler, HttpServer, HttpServerOptions } from './exchange.ts'
import { messageOf } from '../../shared/error-message.ts'

/** `node` selects node:http; otherwise uWebSockets.js is used if it can be loaded. */
const WANTED_VARIABLE = 'BOOKCAST_HTTP'

async function loadAdapter() {
  /** Why uWebSockets.js is not used; undefined when it is. */
  const reason = process.env[WANTED_VARIABLE] === 'node' ? `${WANTED_VARIABLE} says so` : await uwsFault()
  if (reason === undefined) {
    const { startUwsServer } = await import('./uws-server.ts')
    return { library: 'uWebSockets.js', reason, start: startUwsServer }
  }
  const { startNodeServer } = await import('./node-server.ts')
  return { library: 'node:http', reason, start: startNodeServer }
}

/** Why uWebSockets.js cannot be loaded here. */
async function uwsFault(): Promise<string | undefined> {
  try {
    await import('./uws-library.ts')
    return undefined
  } catch (error) {
    const text = messageOf(error)
    return `uWebSockets.js has no binary for Node ${process.versions.node} on ${process.platform} ${process.arch} (${text.split('\n', 1)[0]})`
  }
}

let loaded: ReturnType<typeof loadAdapter> | undefined

/** The adapter of this process. */
export function httpAdapter() {
  return (loaded ??= loadAdapter())
}

/** Starts listening; every request goes to `handler`, which must not throw. Rejects when the address cannot be bound. */
export async function startHttpServer(
  options: HttpServerOptions,
  handler: ExchangeHandler,
): Promise<HttpServer> {
  return (await httpAdapter()).start(options, handler)
}
