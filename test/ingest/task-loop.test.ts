import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TaskLoop, type TaskOutcome } from '../../server/ingest/task-loop.ts'

const DONE: TaskOutcome = { rowCount: 1, errorCount: 0, failure: null }

/** A clock whose pauses the test ends, and the pauses begun so far. */
function restingClock() {
  const rests: number[] = []
  let announce: (() => void) | undefined
  return {
    rests,
    /** Resolves when the next pause begins. */
    next: () =>
      new Promise<void>((resolve) => {
        announce = resolve
      }),
    clock: {
      nowMs: () => 0,
      sleep: (ms: number, signal?: AbortSignal): Promise<void> => {
        rests.push(ms)
        announce?.()
        return new Promise((_, reject) => {
          signal?.addEventListener('abort', () => reject(new Error('rest over')), { once: true })
        })
      },
    },
  }
}

test('a loop that is woken runs at once, and so does one that is woken while it runs', async () => {
  const { rests, next, clock } = restingClock()
  const controller = new AbortController()
  let runs = 0
  const loop = new TaskLoop({
    task: 'made-up',
    intervalMs: 7_000,
    clock,
    run: async () => {
      runs += 1
      if (runs === 2) loop.wake()
      return DONE
    },
  })
  const resting = next()
  const ended = loop.run(controller.signal)
  await resting
  assert.deepEqual([runs, rests], [1, [7_000]])
  const again = next()
  loop.wake()
  await again
  // The loop was woken during the second run, so the third followed without a pause.
  assert.deepEqual([runs, rests.length], [3, 2])
  assert.deepEqual([loop.metrics.runCount, loop.metrics.rowCount, loop.metrics.nextRunAtMs], [3, 3, 7_000])
  controller.abort(new Error('enough'))
  await ended
})

test('a clock that is set back during a run does not make a pause longer than the interval', async () => {
  const { rests, next, clock } = restingClock()
  const controller = new AbortController()
  let nowMs = 7_200_000
  const loop = new TaskLoop({
    task: 'made-up',
    intervalMs: 7_000,
    clock: { ...clock, nowMs: () => nowMs },
    run: async () => {
      nowMs = 0
      return DONE
    },
  })
  const resting = next()
  const ended = loop.run(controller.signal)
  await resting
  assert.deepEqual(rests, [7_000])
  controller.abort(new Error('enough'))
  await ended
})

test('a run that a stop interrupts is neither a success nor a failure', async () => {
  const controller = new AbortController()
  const loop = new TaskLoop({
    task: 'made-up',
    intervalMs: 1,
    run: (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error))
        controller.abort(new Error('stopped'))
      }),
  })
  await loop.run(controller.signal)
  const { runCount, errorCount, failureCount, lastSuccessAtMs } = loop.metrics
  assert.deepEqual([runCount, errorCount, failureCount, lastSuccessAtMs], [1, 0, 0, null])
})
