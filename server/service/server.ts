// Starts the parts of the serving process: the threads, the endpoints, then HTTP; and stops them in the reverse order.

import { WORKER_CANCEL_TIMEOUT_MS } from '../../shared/limits.ts'
import type { ServeConfig } from './config.ts'
import { withinTime } from '../../shared/within-time.ts'
import { admission } from '../http/admission.ts'
import { corsPolicy } from '../http/cors.ts'
import { RequestLifecycle } from '../http/request-lifecycle.ts'
import type { HttpServer } from '../http/exchange.ts'
import { startHttpServer } from '../http/http-server.ts'
import type { LobPool } from '../lob/lob-pool.ts'
import { startMetricsServer } from '../metrics/metrics-server.ts'
import { DEFAULT_SHARES } from '../workers/client-shares.ts'
import { createBackground, endBackground, type ServerDependencies } from './background.ts'
import { createEndpoints } from './endpoint-list.ts'

export interface RunningServer {
  readonly host: string
  readonly port: number
  /** Set if metrics have a port of their own. */
  readonly metricsPort: number | null
  readonly lobPool: LobPool
  /**
   * Answers new requests with 503, lets running ones finish within the configured time, cuts the others, and ends the
   * threads. Every call returns the same promise.
   */
  close(): Promise<void>
  /** After `close`: whether a thread could not be ended because a file does not respond. */
  readonly hasStuckThreads: () => boolean
}

/** Resolves to whether the promise settled in time. */
async function settlesWithin(promise: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const settled = promise.then(() => true)
  return (await withinTime(settled, timeoutMs)) ?? false
}

/** Starts serving. Resolves when the port is bound, the threads are warm and the catalogue has been requested. */
export async function startServer(
  config: ServeConfig,
  dependencies: ServerDependencies,
): Promise<RunningServer> {
  const { logger } = dependencies
  const background = await createBackground(config, dependencies)
  const { lobPool, recordPool, lakeWatch, lakeBooks, lakeVersions, metrics } = background
  const isRestricted = config.apiKeys.length > 0 || config.rateLimit !== null
  const lifecycle = new RequestLifecycle(createEndpoints(config, dependencies, background), {
    logger,
    trustedProxies: config.trustedProxies,
    admission: isRestricted ? admission(config) : undefined,
    cors: config.corsOrigins.length > 0 ? corsPolicy(config.corsOrigins) : undefined,
    observe: config.metrics === 'off' ? undefined : metrics.requests.observe,
  })
  let metricsServer: HttpServer | undefined
  try {
    lakeWatch.start()
    void lakeBooks.start()
    await Promise.all([lobPool.warm(), recordPool.warm(), background.feed?.start()])
    await lakeVersions.start()
    if (typeof config.metrics !== 'string')
      metricsServer = await startMetricsServer(config.metrics, metrics.registry, logger)
    const { fairBytesPerS } = config.shares ?? DEFAULT_SHARES
    // Behind a proxy all connections have its address.
    const clientConnectionsMax = config.trustedProxies > 0 ? Infinity : config.clientConnectionsMax
    const http = await startHttpServer({ ...config, fairBytesPerS, clientConnectionsMax }, lifecycle.handle)
    let areThreadsEnded = true
    const shutDown = async (): Promise<void> => {
      const drained = lifecycle.drain()
      const isClean = await settlesWithin(drained, config.shutdownTimeoutMs)
      if (!isClean)
        logger.warn({ requests: lifecycle.activeCount }, 'cutting requests that did not finish in time')
      lifecycle.cut()
      http.close()
      // A cut request is over when its worker has obeyed the cancel or is terminated.
      await settlesWithin(drained, 2 * WORKER_CANCEL_TIMEOUT_MS)
      metricsServer?.close()
      areThreadsEnded = await endBackground(background)
    }
    let closing: Promise<void> | undefined
    const close = (): Promise<void> => (closing ??= shutDown())
    return {
      host: config.host,
      port: http.port,
      metricsPort: metricsServer?.port ?? null,
      lobPool,
      close,
      hasStuckThreads: () => !areThreadsEnded,
    }
  } catch (error) {
    metricsServer?.close()
    await endBackground(background)
    throw error
  }
}
