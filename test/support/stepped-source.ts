// A source of the local upstreams in its own schedule, which runs once whenever the test asks.

import type { TestContext } from 'node:test'
import { createSources } from '../../server/ingest/registry.ts'
import { ingestSchedule } from '../../server/ingest/schedule.ts'
import type { SourceName } from '../../server/ingest/source.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { type UpstreamWorld, WORLD_NOW_MS, WORLD_STATIONS } from './upstream-world.ts'

export function steppedSource(t: TestContext, world: UpstreamWorld, postgres: Postgres, name: SourceName) {
  let begin: (() => void) | undefined
  let rest: () => void = () => {}
  let nowMs = WORLD_NOW_MS
  const clock = {
    nowMs: () => nowMs,
    sleep: (_ms: number, signal?: AbortSignal): Promise<void> =>
      new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('stopped')))
        begin = resolve
        rest()
      }),
  }
  // Waits between requests return at once.
  const waiting = {
    nowMs: () => nowMs,
    sleep: async (ms: number): Promise<void> => {
      nowMs += ms
    },
  }
  const [source] = createSources(world.config, {
    names: [name],
    stations: WORLD_STATIONS,
    http: { clock: waiting, random: () => 0.5, timeoutMs: 1_500 },
  })
  const schedule = ingestSchedule({ sources: [source!], postgres, clock })
  const stopping = new AbortController()
  let running: Promise<void> | undefined
  t.after(async () => {
    stopping.abort(new Error('stopped'))
    await running
  })
  return {
    schedule,
    /** One run; resolves to the time of its end. Advances the clock by a minute. */
    async run(): Promise<number> {
      const resting = new Promise<void>((resolve) => (rest = resolve))
      if (running === undefined) running = schedule.run(stopping.signal)
      else begin?.()
      await resting
      nowMs += 60_000
      return nowMs - 60_000
    },
    get nowMs() {
      return nowMs
    },
  }
}
