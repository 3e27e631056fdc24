// What collecting does, as Prometheus metrics: for each task (a source, a recorder, the compaction, a synchronization)
// its runs, rows, errors, last success and lag, and for each recorder the state of its feed. The tasks count for
// themselves; here their figures are only shown, when somebody asks.

import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { CollectionMetrics } from '../collect/collection.ts'
import type { RecorderMetrics } from '../ingest/recorder/recorder-metrics.ts'
import type { TaskMetrics } from '../ingest/task-loop.ts'
import type { MetricsText } from './metrics-text.ts'

const MS_PER_S = 1000

/** The metrics, not registered anywhere yet. */
export function collectionMetrics(read: () => CollectionMetrics): (Counter | Gauge)[] {
  const tasks = () => read().tasks.map((task) => ({ name: task.task, subject: task }))
  const recorders = () => read().recorders.map((recorder) => ({ name: recorder.source, subject: recorder }))
  return [
    ...TASK_METRICS.map((metric) => show(metric, 'task', tasks)),
    ...RECORDER_METRICS.map((metric) => show(metric, 'exchange', recorders)),
  ]
}

/** The metrics of a process that only collects. */
export class CollectorMetrics implements MetricsText {
  readonly #registry = new Registry()

  constructor(read: () => CollectionMetrics) {
    collectDefaultMetrics({ register: this.#registry })
    for (const metric of collectionMetrics(read)) this.#registry.registerMetric(metric)
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  async text(): Promise<string> {
    return this.#registry.metrics()
  }
}

/** A metric with one value for each task, or for each recorder. */
interface Shown<Subject> {
  readonly kind: 'counter' | 'gauge'
  readonly name: string
  readonly help: string
  /** Null is left out. */
  readonly valueOf: (subject: Subject) => number | null
}

// oxfmt-ignore
const TASK_METRICS: readonly Shown<TaskMetrics>[] = [
  { kind: 'counter', name: 'bookcast_collect_runs_total', help: 'Runs of a task of collecting.', valueOf: (task) => task.runCount },
  { kind: 'counter', name: 'bookcast_collect_rows_total', help: 'Rows (messages, files) that a task brought.', valueOf: (task) => task.rowCount },
  { kind: 'counter', name: 'bookcast_collect_errors_total', help: 'What failed in a task.', valueOf: (task) => task.errorCount },
  { kind: 'gauge', name: 'bookcast_collect_failures_in_row', help: 'Runs of a task that failed since it last succeeded.', valueOf: (task) => task.failureCount },
  { kind: 'gauge', name: 'bookcast_collect_last_success_timestamp_seconds', help: 'When a task last succeeded.', valueOf: (task) => seconds(task.lastSuccessAtMs) },
  { kind: 'gauge', name: 'bookcast_collect_lag_seconds', help: 'Time since a task last succeeded.', valueOf: (task) => ageS(task.lastSuccessAtMs) },
]

// oxfmt-ignore
const RECORDER_METRICS: readonly Shown<RecorderMetrics>[] = [
  { kind: 'counter', name: 'bookcast_recorder_messages_total', help: 'Messages received from an exchange.', valueOf: ({ frames }) => frames },
  { kind: 'counter', name: 'bookcast_recorder_received_bytes_total', help: 'Bytes received from an exchange.', valueOf: ({ bytes }) => bytes },
  { kind: 'counter', name: 'bookcast_recorder_gaps_total', help: 'Interruptions written into the books.', valueOf: gapCount },
  { kind: 'counter', name: 'bookcast_recorder_congestions_total', help: 'Times that the disk was slower than the feed.', valueOf: ({ congestions }) => congestions },
  { kind: 'gauge', name: 'bookcast_recorder_markets', help: 'Markets that are followed.', valueOf: ({ markets }) => markets },
  { kind: 'gauge', name: 'bookcast_recorder_connections', help: 'Connections to an exchange.', valueOf: ({ lanes }) => lanes.filter(({ isConnected }) => isConnected).length },
  { kind: 'gauge', name: 'bookcast_recorder_feed_delay_seconds', help: "A message's receive time less its exchange time.", valueOf: ({ lagMs }) => seconds(lagMs) },
  { kind: 'gauge', name: 'bookcast_recorder_queued_bytes', help: 'Bytes that wait for the disk.', valueOf: ({ queuedBytes }) => queuedBytes },
  { kind: 'gauge', name: 'bookcast_recorder_published_timestamp_seconds', help: 'When the open date was last brought into the lake.', valueOf: ({ consolidation }) => seconds(consolidation?.publishedAtMs || null) },
]

function gapCount({ consolidation }: RecorderMetrics): number {
  return Object.values(consolidation?.gaps ?? {}).reduce((sum, count) => sum + count, 0)
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / MS_PER_S
}

function ageS(instantMs: number | null): number | null {
  return instantMs === null ? null : (Date.now() - instantMs) / MS_PER_S
}

/** A metric that takes its values when it is asked for. */
function show<Subject>(
  { kind, name, help, valueOf }: Shown<Subject>,
  label: string,
  subjects: () => readonly { readonly name: string; readonly subject: Subject }[],
): Counter | Gauge {
  const configuration = {
    name,
    help,
    labelNames: [label],
    // Without the list it would join the library's global registry.
    registers: [],
    collect(this: Counter | Gauge): void {
      this.reset()
      for (const { name: value, subject } of subjects()) {
        const amount = valueOf(subject)
        if (amount !== null) this.inc({ [label]: value }, amount)
      }
    },
  }
  return kind === 'counter' ? new Counter(configuration) : new Gauge(configuration)
}
