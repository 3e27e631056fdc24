// One machine that collects and serves (`bookcast serve --collect`): how soon an upstream event is in a response. The bounds
// are timeouts of the waits, which end as soon as the response has the event.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, ApiError, Bookcast } from '../../clients/typescript/bookcast.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { startCollectingWorld } from '../support/collecting-world.ts'
import { makeEmptyStore } from '../support/postgres.ts'
import { eventually } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { metarEntry } from '../support/upstream-world.ts'

const MARKET = 'KXHIGHNY-26NOV20-B45.5'
const REPORT_MS = 6_000
const DELTA_MS = 10_000
const LOOK_MS = 200

/** Waits until the response is as wanted, at most this long, and returns the duration. */
async function fresh(isThere: () => Promise<boolean>, boundMs: number, what: () => string): Promise<number> {
  const startMs = performance.now()
  while (!(await isThere())) {
    assert.ok(performance.now() - startMs < boundMs, `${what()} is not there after ${boundMs} ms`)
    await delay(LOOK_MS)
  }
  return performance.now() - startMs
}

test('a report is in /observations within six seconds and a delta in /lob within ten', async (t) => {
  const place = await makeEmptyStore()
  t.after(place.remove)
  const root = await temporaryDirectory(t)
  const lake = join(root, 'lake')
  await mkdir(lake)
  const world = await startCollectingWorld(t)
  const { rest, feed } = world
  feed.markets.set(MARKET, 'active')
  feed.setBook(MARKET, [
    [0, 40, 1000],
    [1, 90, 1000],
  ])
  const serving = spawn(
    process.execPath,
    [...PROGRAM_ARGUMENTS, 'serve', '--lake', lake, '--port', '0', '--collect'],
    {
      env: {
        ...process.env,
        ...(await world.environment(root)),
        BOOKCAST_KALSHI_SERIES: 'KXHIGHNY',
        BOOKCAST_DATA_DIR: place.dataDirectory,
        BOOKCAST_LOG_LEVEL: 'warn',
        DATABASE_URL: place.databaseUrl ?? '',
      },
    },
  )
  t.after(() => serving.kill('SIGKILL'))
  let output = ''
  for (const stream of [serving.stdout, serving.stderr]) stream.on('data', (data) => (output += String(data)))
  await eventually(() => /at http:\/\/\S+\n/.test(output), 'the server listens')
  const url = / at (http:\/\/\S+)\n/.exec(output)?.[1] ?? ''
  const bookcast = new Bookcast(url, { retry: { attempts: 1 } })
  /** Empty while the server has no data yet. */
  const rowsOf = async <Row>(answer: Answer<Row>): Promise<Row[]> => {
    try {
      return await answer.toArray()
    } catch (error) {
      if (error instanceof ApiError) return []
      throw error
    }
  }
  const metrics = (): Promise<string> => bookcast.metrics()
  const hasReport = async (text: unknown): Promise<boolean> => {
    const rows = await rowsOf(bookcast.observations({ station: 'NYC', columns: ['raw_metar'] }))
    return rows.some((row) => row.raw_metar === text)
  }
  const bestBid = async (): Promise<number | undefined> => {
    const now = new Date()
    const [date, hour] = [now.toISOString().slice(0, 10), now.getUTCHours()]
    const columns = ['ts', 'best_bid'] as const
    return (await rowsOf(bookcast.lob({ market: MARKET, date, hour, interval: 1, columns }))).at(-1)?.best_bid
  }
  // The first poll fetches the reports missed before the start, station by station.
  await eventually(
    async () =>
      /^bookcast_collect_last_success_timestamp_seconds\{task="aviation-weather"\}/m.test(await metrics()),
    'the first poll is over',
  )
  await eventually(() => feed.isFollowed(MARKET), 'the market is followed')

  // The second report is published right after a poll, which is the longest wait.
  const minute = Math.floor(Date.now() / 60_000) * 60_000
  const reports = async (): Promise<void> => {
    for (const age of [0, 1]) {
      const report = metarEntry('KNYC', new Date(minute - age * 60_000).toISOString())
      rest.entries = [...rest.entries, report]
      const ms = await fresh(
        () => hasReport(report['rawOb']),
        REPORT_MS,
        () => `the report (${output})`,
      )
      t.diagnostic(`a report after ${Math.round(ms)} ms`)
    }
  }
  const deltas = async (): Promise<void> => {
    for (const cents of [55, 56]) {
      feed.change(MARKET, 0, cents, 700)
      const ms = await fresh(
        async () => (await bestBid()) === cents,
        DELTA_MS,
        () => `the delta (${output})`,
      )
      t.diagnostic(`a delta after ${Math.round(ms)} ms`)
    }
  }
  await Promise.all([reports(), deltas()])

  const text = await metrics()
  assert.match(text, /^bookcast_collect_rows_total\{task="aviation-weather"\} [1-9]/m)
  assert.match(text, /^bookcast_recorder_messages_total\{exchange="kalshi"\} [1-9]/m)
  assert.match(text, /^bookcast_collect_runs_total\{task="compaction"\} [1-9]/m)
  const exited = once(serving, 'exit')
  serving.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null], output)
})
