// Slots by lane: `lob` counts order-book requests, `records` and `bulk_records` count requested rows, `record_turns` counts
// small requests before their first chunk.

import type { Metric } from 'prom-client'
import type { Slots } from '../workers/slots.ts'
import { metricOf, metricsBy, type Values } from './read-metrics.ts'
import { TallyHistogram } from './tally-histogram.ts'

/** Seconds: a turn takes milliseconds; a request may wait up to a minute for a slot. */
const QUEUE_BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

type Lanes = () => Readonly<Record<string, Slots>>

/** The lanes exist when the metrics are created, and do not change. */
function queueTimes(lanes: Lanes): Metric {
  const histogram = new TallyHistogram(
    'bookcast_lane_queue_time_seconds',
    'How long each request that a lane has taken waited for it.',
    'lane',
    QUEUE_BOUNDS_S,
  )
  for (const [lane, slots] of Object.entries(lanes())) {
    const tally = histogram.tallyOf(lane)
    slots.onGranted = (waitedS) => tally.add(waitedS)
  }
  return histogram.metric
}

export function laneMetrics(lanes: Lanes): Metric[] {
  const byLane = metricsBy('lane', () => Object.entries(lanes()))
  const refused = (): Values =>
    Object.entries(lanes()).flatMap(([lane, { figures }]) => [
      [{ lane, reason: 'busy' }, figures.refusedBusy],
      [{ lane, reason: 'client' }, figures.refusedClient],
    ])
  return [
    queueTimes(lanes),
    byLane('bookcast_lane_running', 'What requests under way hold of a lane.', (lane) => lane.takenCount),
    byLane('bookcast_lane_waiting', 'Requests that wait for a lane.', (lane) => lane.waitingCount),
    byLane(
      'bookcast_lane_granted_total',
      'Requests that a lane has taken.',
      ({ figures }) => figures.granted,
    ),
    metricOf(
      'bookcast_lane_refused_total',
      'Requests answered 429: busy, everything was taken; client, the client had its share.',
      refused,
    ),
    byLane(
      'bookcast_lane_displaced_total',
      'Streams cut off because their clients were slow while others waited.',
      ({ figures }) => figures.displaced,
    ),
    byLane(
      'bookcast_lane_queue_seconds_total',
      'Time that the requests which a lane has taken waited for it.',
      ({ figures }) => figures.waitedMs / 1000,
    ),
  ]
}
