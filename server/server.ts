// Puts the serving process together, and takes it apart in the reverse order: HTTP in front, the endpoints behind it,
// the order-book threads at the back.

import type { Logger } from 'pino'
import { LOB_CANCEL_TIMEOUT_MS } from '../shared/limits.ts'
import type { ServeConfig } from './config.ts'
import { livezEndpoint } from './endpoints/livez.ts'
import { lobEndpoint } from './endpoints/lob.ts'
import { RequestLifecycle } from './http/request-lifecycle.ts'
import { startHttpServer } from './http/uws-server.ts'
import { LobPool } from './lob/lob-pool.ts'

export interface RunningServer {
  readonly host: string
  readonly port: number
  readonly lobPool: LobPool
  /**
   * Answers new requests with 503, lets running ones finish within the configured time, cuts the others, ends the
   * threads. Every call returns the same promise.
   */
  close(): Promise<void>
}

export interface ServerDependencies {
  readonly logger: Logger
  /** Another order-book worker than the real one, for tests. */
  readonly lobWorkerUrl?: URL
}

const LOB_WORKER_URL = new URL('../workers/lob/task.js', import.meta.url)

/** Resolves to whether the promise settled in time. */
async function settlesWithin(promise: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs)
  })
  try {
    return await Promise.race([promise.then(() => true), timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Starts serving and resolves when the port is bound and the threads are warm. */
export async function startServer(
  config: ServeConfig,
  { logger, lobWorkerUrl = LOB_WORKER_URL }: ServerDependencies,
): Promise<RunningServer> {
  const lobPool = new LobPool({ lake: config.lake, workerUrl: lobWorkerUrl, logger })
  const lifecycle = new RequestLifecycle([livezEndpoint, lobEndpoint(lobPool)], { logger })
  try {
    await lobPool.warm()
    const http = await startHttpServer(config, lifecycle.handle)
    const shutDown = async (): Promise<void> => {
      const drained = lifecycle.drain()
      const isClean = await settlesWithin(drained, config.shutdownTimeoutMs)
      if (!isClean)
        logger.warn({ requests: lifecycle.activeCount }, 'cutting requests that did not finish in time')
      lifecycle.cut()
      http.close()
      // Cut requests are over when their workers have obeyed or are terminated.
      await settlesWithin(drained, 2 * LOB_CANCEL_TIMEOUT_MS)
      await lobPool.close()
    }
    let closing: Promise<void> | undefined
    const close = (): Promise<void> => (closing ??= shutDown())
    return { host: config.host, port: http.port, lobPool, close }
  } catch (error) {
    await lobPool.close()
    throw error
  }
}
