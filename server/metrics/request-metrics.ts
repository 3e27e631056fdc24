// Counts every request when it is over. The label sets are resolved once per path and outcome, not once per request,
// because this runs for each of them.

import { Counter, Histogram, type Registry } from 'prom-client'
import type { Ending, RequestRecord } from '../http/access-log.ts'

// From an answer out of memory (a tenth of a millisecond) to an order-book stream of minutes.
const DURATION_BUCKETS_S = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 300,
]

/** The metrics of one route. */
interface RouteMetrics {
  readonly duration: { observe(seconds: number): void }
  readonly firstByte: { observe(seconds: number): void }
  readonly rows: { inc(count: number): void }
  readonly bytes: { inc(count: number): void }
  readonly endings: Map<Ending, { inc(): void }>
  readonly statuses: Map<string, { inc(): void }>
}

export class RequestMetrics {
  readonly #requests: Counter<'path' | 'method' | 'status'>
  readonly #endings: Counter<'path' | 'ending'>
  readonly #duration: Histogram<'path'>
  readonly #firstByte: Histogram<'path'>
  readonly #rows: Counter<'path'>
  readonly #bytes: Counter<'path'>
  readonly #routes = new Map<string, RouteMetrics>()

  constructor(registry: Registry) {
    const registers = [registry]
    this.#requests = new Counter({
      name: 'bookcast_http_requests_total',
      help: 'Requests that are over, by declared path, method and status; status 0: the client left before one.',
      labelNames: ['path', 'method', 'status'],
      registers,
    })
    this.#endings = new Counter({
      name: 'bookcast_http_endings_total',
      help: 'How requests ended: complete, refused, failed, client_gone or stalled.',
      labelNames: ['path', 'ending'],
      registers,
    })
    this.#duration = new Histogram({
      name: 'bookcast_http_request_duration_seconds',
      help: 'Time from the request to the end of its answer.',
      labelNames: ['path'],
      buckets: DURATION_BUCKETS_S,
      registers,
    })
    this.#firstByte = new Histogram({
      name: 'bookcast_http_first_byte_seconds',
      help: 'Time from the request to its status line.',
      labelNames: ['path'],
      buckets: DURATION_BUCKETS_S,
      registers,
    })
    this.#rows = new Counter({
      name: 'bookcast_http_rows_total',
      help: 'Records in complete answers.',
      labelNames: ['path'],
      registers,
    })
    this.#bytes = new Counter({
      name: 'bookcast_http_body_bytes_total',
      help: 'Body bytes sent, after compression.',
      labelNames: ['path'],
      registers,
    })
  }

  /** The request is over. */
  readonly observe = (record: RequestRecord): void => {
    // Unknown paths share one name: clients must not be able to make names up.
    const path = record.route ?? 'unknown'
    const route = this.#routes.get(path) ?? this.#addRoute(path)
    route.duration.observe(record.totalMs / 1000)
    if (record.firstByteMs !== null) route.firstByte.observe(record.firstByteMs / 1000)
    if (record.bytes > 0) route.bytes.inc(record.bytes)
    if (record.rows !== null && record.rows > 0) route.rows.inc(record.rows)
    this.#endingOf(route, path, record.ending).inc()
    this.#statusOf(route, path, record).inc()
  }

  #addRoute(path: string): RouteMetrics {
    const route: RouteMetrics = {
      duration: this.#duration.labels(path),
      firstByte: this.#firstByte.labels(path),
      rows: this.#rows.labels(path),
      bytes: this.#bytes.labels(path),
      endings: new Map(),
      statuses: new Map(),
    }
    this.#routes.set(path, route)
    return route
  }

  #endingOf(route: RouteMetrics, path: string, ending: Ending): { inc(): void } {
    const known = route.endings.get(ending)
    if (known !== undefined) return known
    const counter = this.#endings.labels(path, ending)
    route.endings.set(ending, counter)
    return counter
  }

  #statusOf(route: RouteMetrics, path: string, { method, status }: RequestRecord): { inc(): void } {
    const knownMethod = COUNTED_METHODS.has(method) ? method : 'other'
    const key = `${knownMethod} ${status ?? 0}`
    const known = route.statuses.get(key)
    if (known !== undefined) return known
    const counter = this.#requests.labels(path, knownMethod, String(status ?? 0))
    route.statuses.set(key, counter)
    return counter
  }
}

const COUNTED_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])
