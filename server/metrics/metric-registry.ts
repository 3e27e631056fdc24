// The metrics of a process in one registry, with those of Node (memory, garbage collection, event-loop delay), of
// its log, and `bookcast_build_info`, which queries join to others to see what changed with a version.

import { collectDefaultMetrics, type Metric, Registry } from 'prom-client'
import { readVersion } from '../http/version.ts'
import { logLosses } from './log-losses.ts'
import { metricOf } from './read-metrics.ts'

export function registryOf(metrics: Iterable<Metric>): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const metric of [buildInfo(), droppedLog(), ...metrics]) registry.registerMetric(metric)
  return registry
}

function droppedLog(): Metric {
  return metricOf(
    'bookcast_log_dropped_bytes_total',
    'Bytes of the log that were dropped, because it could not be written.',
    () => logLosses.droppedBytes,
  )
}

function buildInfo(): Metric {
  const labels = { version: readVersion(), node: process.versions.node }
  return metricOf('bookcast_build_info', 'The versions of Bookcast and of Node that run; always 1.', () => [
    [labels, 1],
  ])
}
