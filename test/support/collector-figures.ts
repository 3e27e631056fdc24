// The figures of a healthy collector, for tests of code that uses them.

import type { LaneFigures } from '../../server/feed/feed-lane.ts'
import type { TaskMetrics } from '../../server/ingest/task-loop.ts'
import type { RecorderMetrics } from '../../server/recorder/recorder-metrics.ts'

/** Of the aviation weather, after a run that returned rows. */
export function goodTask(nowMs: number): TaskMetrics {
  return {
    task: 'aviation-weather',
    runCount: 10,
    rowCount: 100,
    errorCount: 0,
    emptyRunCount: 3,
    lastRowsAtMs: nowMs,
    lastSuccessAtMs: nowMs,
    lastFailureAtMs: null,
    lastFailure: null,
    failureCount: 0,
    nextRunAtMs: null,
  }
}

/** A connection with six markets. */
export function goodLane(nowMs: number): LaneFigures {
  return { isConnected: true, connections: 1, subscribed: 6, refused: 0, repairs: 0, lastHeardMs: nowMs }
}

/** For six markets, before anything is folded. */
export function goodRecorder(nowMs: number): Omit<RecorderMetrics, 'lanes'> {
  return {
    source: 'kalshi',
    isRunning: true,
    startedAtMs: nowMs,
    frames: 1000,
    bytes: 100_000,
    framesPerSecond: 10,
    lastFrameMs: nowMs,
    lagMs: 5,
    markets: 6,
    unplacedMarkets: 0,
    syncedRecords: 1000,
    syncDelayMs: 1,
    queuedBytes: 0,
    isCongested: false,
    congestions: 0,
    discoveredAtMs: nowMs,
    discoveryFailures: 0,
    foldFailures: 0,
    logPosition: { segment: 1, offset: 8 },
    fold: undefined,
  }
}
