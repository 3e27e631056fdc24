import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { collectorSchedule } from '../../server/ingest/collector.ts'
import { ingestSchedule } from '../../server/ingest/schedule.ts'
import type { FetchedRows, IngestSource, SourceName } from '../../server/ingest/source.ts'
import { StoreError } from '../../shared/store-error.ts'
import { UpstreamError } from '../../server/upstream/upstream-error.ts'
import { send, stall } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { metarEntry, startWorld, WORLD_STATIONS } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const PAUSE_MS_FIRST = 5_000
const PAUSE_MS_MAX = 300_000
const EMPTY: FetchedRows = { write: async () => 0, problems: [] }

/** A source that the test controls; `closed` resolves when the schedule has closed it. */
function madeUp(
  name: SourceName,
  fetch: (signal: AbortSignal) => Promise<FetchedRows>,
  intervalMs = 1_000,
): { readonly source: IngestSource; readonly wasClosed: () => boolean } {
  let isClosed = false
  const source: IngestSource = {
    name,
    intervalMs,
    history: null,
    async *poll({ signal }) {
      yield { scope: 'all', title: name, fetch: () => fetch(signal) }
    },
    close: async () => {
      isClosed = true
    },
  }
  return { source, wasClosed: () => isClosed }
}

/** Records the sleeps; the last of them aborts the run. */
function recordingClock(
  sleepsMax: number,
  controller: AbortController,
): {
  readonly slept: number[]
  readonly clock: { nowMs: () => number; sleep: (ms: number) => Promise<void> }
} {
  const slept: number[] = []
  let nowMs = Date.parse('2026-08-30T12:00:00Z')
  return {
    slept,
    clock: {
      nowMs: () => nowMs,
      async sleep(ms) {
        slept.push(ms)
        nowMs += ms
        if (slept.length >= sleepsMax) controller.abort(new Error('enough'))
      },
    },
  }
}

test('the pause after failures grows to its bound, and a success ends it', async () => {
  const controller = new AbortController()
  const { slept, clock } = recordingClock(11, controller)
  let runs = 0
  const { source, wasClosed } = madeUp(
    'iem',
    async () => {
      runs += 1
      if (runs < 10) throw new UpstreamError('iem', 'server_error', 'status 500')
      return EMPTY
    },
    3_600_000,
  )
  const schedule = ingestSchedule({
    sources: [source],
    postgres: file.store.postgres,
    clock,
    random: () => 1,
  })
  await schedule.run(controller.signal)
  const growing = [0, 1, 2, 3, 4, 5].map((power) => PAUSE_MS_FIRST * 2 ** power)
  assert.deepEqual(slept.slice(0, 6), growing)
  assert.deepEqual(slept.slice(6, 9), [PAUSE_MS_MAX, PAUSE_MS_MAX, PAUSE_MS_MAX])
  assert.deepEqual(slept.slice(9), [3_600_000, 3_600_000])
  const [metrics] = schedule.metrics()
  assert.deepEqual(
    [metrics?.runCount, metrics?.errorCount, metrics?.failureCount, metrics?.lastFailure],
    [11, 9, 0, 'iem: status 500'],
  )
  assert.ok(wasClosed())
})

test('a failing store is retried within seconds, also for a source that is polled once an hour', async () => {
  const controller = new AbortController()
  const { slept, clock } = recordingClock(8, controller)
  const full: FetchedRows = {
    write: async () => {
      throw new StoreError('store_unavailable', 'no space left on device')
    },
    problems: [],
  }
  const { source } = madeUp('ncei', async () => full, 3_600_000)
  const { postgres } = file.store
  await ingestSchedule({ sources: [source], postgres, clock, random: () => 1 }).run(controller.signal)
  assert.equal(Math.max(...slept), 20_000)
})

test('a source that is polled every few seconds never pauses for minutes', async () => {
  const controller = new AbortController()
  const { slept, clock } = recordingClock(12, controller)
  const { source } = madeUp(
    'aviation-weather',
    async () => {
      throw new UpstreamError('awc', 'unreachable', 'connect ECONNREFUSED')
    },
    5_000,
  )
  const { postgres } = file.store
  await ingestSchedule({ sources: [source], postgres, clock, random: () => 1 }).run(controller.signal)
  assert.deepEqual(slept.slice(0, 3), [5_000, 10_000, 15_000])
  assert.equal(Math.max(...slept), 15_000)
})

test('a longer pause that the upstream requests is respected', async () => {
  const controller = new AbortController()
  const { slept, clock } = recordingClock(1, controller)
  const { source } = madeUp('ncei', async () => {
    throw new UpstreamError('ncei', 'rate_limited', 'status 429', { retryAfterMs: 3_000_000 })
  })
  const { postgres } = file.store
  await ingestSchedule({ sources: [source], postgres, clock }).run(controller.signal)
  assert.deepEqual(slept, [3_000_000])
})

test('a source that throws or never answers does not stop other sources', async () => {
  const controller = new AbortController()
  const errors: SourceName[] = []
  const broken = madeUp('iem', async () => {
    throw new TypeError('a fault of ours')
  })
  const silent = madeUp(
    'ncei',
    (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      }),
  )
  let goodRuns = 0
  const good = madeUp('climate-nws', async () => {
    goodRuns += 1
    if (goodRuns === 3) controller.abort(new Error('enough'))
    return EMPTY
  })
  const schedule = ingestSchedule({
    sources: [broken.source, silent.source, good.source],
    postgres: file.store.postgres,
    clock: { nowMs: () => Date.now(), sleep: async () => {} },
    onError: (source) => errors.push(source),
  })
  await schedule.run(controller.signal)
  assert.equal(goodRuns, 3)
  assert.ok(errors.length > 0 && errors.every((source) => source === 'iem'))
  assert.ok([broken, silent, good].every(({ wasClosed }) => wasClosed()))
})

/** Resolves when the collector reports rows of the live weather. */
function rowsWritten(log: EventTarget): Promise<unknown> {
  return new Promise((resolve) => {
    log.addEventListener('aviation-weather', resolve, { once: true })
  })
}

test(
  'a report that is published upstream is in the store within six seconds',
  { timeout: 30_000 },
  async (t) => {
    const world = await startWorld(t)
    const now = new Date(Math.floor(Date.now() / 60_000) * 60_000)
    world.entries = [metarEntry('KMIA', new Date(now.getTime() - 600_000).toISOString())]
    world.fault = ({ url }) => {
      // A busy exchange and an archive that never answers run at the same time.
      if (url.startsWith('/kalshi')) return send(429)
      if (url.startsWith('/iem')) return stall()
      return undefined
    }
    const log = new EventTarget()
    const destination = {
      write(line: string): void {
        const { source, rows } = JSON.parse(line) as { source: string; rows?: number }
        if ((rows ?? 0) > 0) log.dispatchEvent(new Event(source))
      },
    }
    const firstRows = rowsWritten(log)
    const stopping = new AbortController()
    const schedule = collectorSchedule({
      config: world.config,
      postgres: file.store.postgres,
      logger: pino({ level: 'debug' }, destination),
      stations: WORLD_STATIONS,
    })
    const running = schedule.run(stopping.signal)
    try {
      await firstRows
      const entry = metarEntry('KNYC', now.toISOString())
      const stored = rowsWritten(log)
      const publishedMs = performance.now()
      world.entries = [...world.entries, entry]
      await stored
      const waitedMs = performance.now() - publishedMs
      t.diagnostic(`stored ${Math.round(waitedMs)} ms after it was published`)
      const found = await file.store.postgres.run({
        text: 'SELECT station_code, raw_metar FROM observations WHERE raw_metar = $1::text',
        parameters: [String(entry['rawOb'])],
      })
      assert.deepEqual([...found], [{ station_code: 'NYC', raw_metar: entry['rawOb'] }])
      assert.ok(waitedMs < 6_000, `${waitedMs} ms`)
    } finally {
      stopping.abort(new Error('stopped'))
      await running
    }
    const askedAfterStop = world.asked.length
    const metrics = schedule.metrics().find(({ task }) => task === 'aviation-weather')
    assert.ok((metrics?.rowCount ?? 0) >= 2 && metrics?.lastSuccessAtMs !== null)
    assert.equal(world.asked.length, askedAfterStop)
  },
)
