// Puts the serving process together, and takes it apart in the reverse order: HTTP in front, the endpoints behind it,
// the order-book threads at the back.

import type { Logger } from 'pino'
import { LOB_CANCEL_TIMEOUT_MS } from '../shared/limits.ts'
import type { ServeConfig } from './config.ts'
import { documentationEndpoints } from './endpoints/documentation.ts'
import { livezEndpoint } from './endpoints/livez.ts'
import { lobEndpoint } from './endpoints/lob.ts'
import { metricsEndpoint } from './endpoints/metrics.ts'
import { Admission } from './http/admission.ts'
import { CorsPolicy } from './http/cors.ts'
import { type LifecycleOptions, RequestLifecycle } from './http/request-lifecycle.ts'
import { type HttpServer, startHttpServer } from './http/uws-server.ts'
import { LobPool } from './lob/lob-pool.ts'
import { ServiceMetrics } from './metrics/service-metrics.ts'

export interface RunningServer {
  readonly host: string
  readonly port: number
  /** Where metrics have a port of their own. */
  readonly metricsPort: number | null
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

/** The endpoints' common gate and what counts them. */
function lifecycleOptions(config: ServeConfig, logger: Logger, metrics: ServiceMetrics): LifecycleOptions {
  const needsAdmission = config.apiKeys.length > 0 || config.rateLimit !== null
  return {
    logger,
    admission: needsAdmission ? new Admission(config) : undefined,
    cors: config.corsOrigins.length > 0 ? new CorsPolicy(config.corsOrigins) : undefined,
    observe: config.metrics === 'off' ? undefined : metrics.requests.observe,
  }
}

/** Metrics on a port of their own, where only monitoring reaches them: without keys, limits or log lines. */
async function startMetricsServer(
  config: ServeConfig,
  logger: Logger,
  metrics: ServiceMetrics,
): Promise<HttpServer | undefined> {
  if (typeof config.metrics === 'string') return undefined
  const quiet = logger.child({}, { level: 'warn' })
  const lifecycle = new RequestLifecycle([metricsEndpoint(metrics)], { logger: quiet })
  return startHttpServer({ ...config.metrics, stallTimeoutMs: config.stallTimeoutMs }, lifecycle.handle)
}

/** Starts serving and resolves when the port is bound and the threads are warm. */
export async function startServer(
  config: ServeConfig,
  { logger, lobWorkerUrl = LOB_WORKER_URL }: ServerDependencies,
): Promise<RunningServer> {
  const lobPool = new LobPool({ lake: config.lake, workerUrl: lobWorkerUrl, logger })
  const metrics = new ServiceMetrics({
    takenSlots: () => lobPool.takenSlots,
    queuedTasks: () => ({ lob: lobPool.queuedTasks }),
    ingestAges: async () => [],
  })
  const endpoints = [livezEndpoint, lobEndpoint(lobPool)]
  if (config.metrics === 'on') endpoints.push(metricsEndpoint(metrics))
  const lifecycle = new RequestLifecycle(
    [...endpoints, ...documentationEndpoints(endpoints)],
    lifecycleOptions(config, logger, metrics),
  )
  let metricsServer: HttpServer | undefined
  try {
    await lobPool.warm()
    metricsServer = await startMetricsServer(config, logger, metrics)
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
      metricsServer?.close()
      metrics.close()
      await lobPool.close()
    }
    let closing: Promise<void> | undefined
    const close = (): Promise<void> => (closing ??= shutDown())
    return { host: config.host, port: http.port, metricsPort: metricsServer?.port ?? null, lobPool, close }
  } catch (error) {
    metricsServer?.close()
    metrics.close()
    await lobPool.close()
    throw error
  }
}
