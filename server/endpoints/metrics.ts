// Prometheus metrics. On the API's own port they need a key where keys are configured: they tell who asks for what.

import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'
import type { MetricsText } from '../http/metrics-text.ts'

export function metricsEndpoint(metrics: MetricsText): Endpoint {
  return defineEndpoint({
    path: '/metrics',
    summary: 'Metrics of this process in the Prometheus text format.',
    parameters: [],
    async handle() {
      const body = new TextEncoder().encode(await metrics.metrics())
      return {
        status: 200,
        headers: { 'Content-Type': metrics.contentType, 'Cache-Control': 'no-store' },
        body,
      }
    },
  })
}
