// Prometheus metrics. On the API's port they need a key if keys are configured, because they show what clients request.

import type { Registry } from 'prom-client'
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'

export function metricsEndpoint(metrics: Pick<Registry, 'contentType' | 'metrics'>): Endpoint {
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
