// Serves metrics on a separate port, which only monitoring can reach: without keys, limits or log lines.

import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { STALL_TIMEOUT_MS_DEFAULT } from '../../shared/limits.ts'
import { metricsEndpoint } from '../endpoints/metrics.ts'
import { RequestLifecycle } from '../http/request-lifecycle.ts'
import type { HttpServer, HttpServerOptions } from '../http/exchange.ts'
import { startHttpServer } from '../http/http-server.ts'

export function startMetricsServer(
  address: Pick<HttpServerOptions, 'host' | 'port'>,
  metrics: Registry,
  logger: Logger,
): Promise<HttpServer> {
  const quiet = logger.child({}, { level: 'warn' })
  const lifecycle = new RequestLifecycle([metricsEndpoint(metrics)], { logger: quiet })
  return startHttpServer({ ...address, stallTimeoutMs: STALL_TIMEOUT_MS_DEFAULT }, lifecycle.handle)
}
