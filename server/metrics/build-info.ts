// Which program runs, as a metric whose labels say it: queries join it to others to see what changed with a version.

import type { Gauge } from 'prom-client'
import { readVersion } from '../http/version.ts'
import { gaugeOf } from './read-metrics.ts'

export function buildInfo(): Gauge {
  const labels = { version: readVersion(), node: process.versions.node }
  return gaugeOf(
    'bookcast_build_info',
    'The versions of Bookcast and of Node that run; always 1.',
    () => [[labels, 1]],
    ['version', 'node'],
  )
}
