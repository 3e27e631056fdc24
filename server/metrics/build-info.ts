// Which program runs, as a metric whose labels say it: queries join it to others to see what changed with a version.

import { Gauge } from 'prom-client'
import { readVersion } from '../http/version.ts'

export function buildInfo(): Gauge {
  const gauge = new Gauge({
    name: 'bookcast_build_info',
    help: 'The versions of Bookcast and of Node that run; always 1.',
    labelNames: ['version', 'node'],
    registers: [],
  })
  gauge.set({ version: readVersion(), node: process.versions.node }, 1)
  return gauge
}
