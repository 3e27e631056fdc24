// Counts every finished request in plain numbers, because this runs for each request. The client library's metrics are made
// from the numbers when they are requested.

import type { Metric } from 'prom-client'
import type { Ending, RequestRecord } from '../http/access-log.ts'
import { metricOf, metricsBy, type Values } from './read-metrics.ts'
import { type Tally, TallyHistogram } from './tally-histogram.ts'

// From an answer out of memory (0.1 ms) to an order-book stream of minutes.
const DURATION_BOUNDS_S = [
  0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 300,
]
const COUNTED_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/** The numbers of one route. */
interface RouteFigures {
  readonly duration: Tally
  readonly firstByte: Tally
  readonly endings: Map<Ending, number>
  /** By method, then status. */
  readonly requests: Map<string, Map<number, number>>
  rows: number
  bytes: number
  pinned: number
  resumed: number
}

export class RequestMetrics {
  readonly #routes = new Map<string, RouteFigures>()
  readonly #duration = new TallyHistogram(
    'bookcast_http_request_duration_seconds',
    'Time from the request to the end of its answer.',
    'path',
    DURATION_BOUNDS_S,
  )
  readonly #firstByte = new TallyHistogram(
    'bookcast_http_first_byte_seconds',
    'Time from the request to its status line.',
    'path',
    DURATION_BOUNDS_S,
  )

  /** Counts a finished request. */
  readonly observe = (record: RequestRecord): void => {
    // Unknown paths share one name: clients must not be able to create label values.
    const route = this.#routes.get(record.route ?? 'unknown') ?? this.#addRoute(record.route ?? 'unknown')
    route.duration.add(record.totalMs / 1000)
    if (record.firstByteMs !== null) route.firstByte.add(record.firstByteMs / 1000)
    route.bytes += record.bytes
    route.rows += record.rows ?? 0
    if (record.isPinned) route.pinned += 1
    if (record.isResumed) route.resumed += 1
    route.endings.set(record.ending, (route.endings.get(record.ending) ?? 0) + 1)
    const method = COUNTED_METHODS.has(record.method) ? record.method : 'other'
    let statuses = route.requests.get(method)
    if (statuses === undefined) route.requests.set(method, (statuses = new Map<number, number>()))
    const status = record.status ?? 0
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }

  #addRoute(path: string): RouteFigures {
    const route: RouteFigures = {
      duration: this.#duration.tallyOf(path),
      firstByte: this.#firstByte.tallyOf(path),
      endings: new Map(),
      requests: new Map(),
      rows: 0,
      bytes: 0,
      pinned: 0,
      resumed: 0,
    }
    this.#routes.set(path, route)
    return route
  }

  metrics(): Metric[] {
    const byPath = metricsBy('path', () => this.#routes)
    return [
      this.#duration.metric,
      this.#firstByte.metric,
      metricOf(
        'bookcast_http_requests_total',
        'Requests that are over, by declared path, method and status; status 0: the client left before one.',
        () => this.#requests(),
      ),
      metricOf(
        'bookcast_http_endings_total',
        'How requests ended: complete, refused, failed, client_gone, stalled or displaced.',
        () => this.#endings(),
      ),
      byPath('bookcast_http_rows_total', 'Records in complete answers.', ({ rows }) => rows),
      byPath('bookcast_http_body_bytes_total', 'Body bytes sent, after compression.', ({ bytes }) => bytes),
      byPath(
        'bookcast_http_pinned_total',
        'Answers from the files of a version of the lake.',
        ({ pinned }) => pinned,
      ),
      byPath(
        'bookcast_http_resumed_total',
        'Answers to a Range or to after: what comes behind bytes or rows that the client has.',
        ({ resumed }) => resumed,
      ),
    ]
  }

  *#requests(): Exclude<Values, number> {
    for (const [path, { requests }] of this.#routes)
      for (const [method, statuses] of requests)
        for (const [status, count] of statuses) yield [{ path, method, status: String(status) }, count]
  }

  *#endings(): Exclude<Values, number> {
    for (const [path, { endings }] of this.#routes)
      for (const [ending, count] of endings) yield [{ path, ending }, count]
  }
}
