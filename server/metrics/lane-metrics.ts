// What clients wait for, by lane: `lob` counts order-book requests, `records` and `bulk_records` rows asked for,
// `record_turns` small requests that are being made up to their first chunk.

import { Counter, Gauge, type Metric, type Registry } from 'prom-client'
import type { SlotFigures, Slots } from '../workers/slots.ts'
import { TallyHistogram } from './tally-histogram.ts'

/** Seconds: a turn is a matter of milliseconds, a slot may be waited for up to a minute. */
const QUEUE_BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

type Lanes = () => Readonly<Record<string, Slots>>

// Without the list a metric would join the library's global registry.
const registers: Registry[] = []

function gaugeOf(lanes: Lanes, name: string, help: string, read: (lane: Slots) => number): Gauge {
  return new Gauge({
    name,
    help,
    labelNames: ['lane'],
    registers,
    collect() {
      for (const [lane, slots] of Object.entries(lanes())) this.set({ lane }, read(slots))
    },
  })
}

type Values = readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[]

function counterOf(
  lanes: Lanes,
  name: string,
  help: string,
  read: (figures: SlotFigures) => Values,
  labelNames: readonly string[] = [],
): Counter {
  return new Counter({
    name,
    help,
    labelNames: ['lane', ...labelNames],
    registers,
    collect() {
      this.reset()
      for (const [lane, { figures }] of Object.entries(lanes()))
        for (const [labels, value] of read(figures)) this.inc({ lane, ...labels }, value)
    },
  })
}

/** The lanes are there when the metrics are made, and stay. */
function queueTimes(lanes: Lanes): Metric {
  const histogram = new TallyHistogram({
    name: 'bookcast_lane_queue_time_seconds',
    help: 'How long each request that a lane has taken waited for it.',
    label: 'lane',
    bounds: QUEUE_BOUNDS_S,
  })
  for (const [lane, slots] of Object.entries(lanes())) {
    const tally = histogram.tallyOf(lane)
    slots.onGranted = (waitedS) => tally.add(waitedS)
  }
  return histogram.asMetric()
}

export function laneMetrics(lanes: Lanes): Metric[] {
  return [
    queueTimes(lanes),
    gaugeOf(
      lanes,
      'bookcast_lane_running',
      'What requests under way hold of a lane.',
      (lane) => lane.takenCount,
    ),
    gaugeOf(lanes, 'bookcast_lane_waiting', 'Requests that wait for a lane.', (lane) => lane.waitingCount),
    counterOf(lanes, 'bookcast_lane_granted_total', 'Requests that a lane has taken.', ({ granted }) => [
      [{}, granted],
    ]),
    counterOf(
      lanes,
      'bookcast_lane_refused_total',
      'Requests answered 429: busy, everything was taken; client, the client had its share.',
      ({ refusedBusy, refusedClient }) => [
        [{ reason: 'busy' }, refusedBusy],
        [{ reason: 'client' }, refusedClient],
      ],
      ['reason'],
    ),
    counterOf(
      lanes,
      'bookcast_lane_displaced_total',
      'Streams cut off because their clients were slow while others waited.',
      ({ displaced }) => [[{}, displaced]],
    ),
    counterOf(
      lanes,
      'bookcast_lane_queue_seconds_total',
      'Time that the requests which a lane has taken waited for it.',
      ({ waitedMs }) => [[{}, waitedMs / 1000]],
    ),
  ]
}
