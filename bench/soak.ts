// The real recorder process for an hour around midnight, killed repeatedly, against an exchange that stores its true changes.
// Afterwards the lake is compared with these row by row; memory, descriptors and log are sampled and reported. Midnight comes by a
// clock that is ahead of the machine's, or behind.

import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SeededRandom } from '../server/sample-data/seeded-random.ts'
import { MS_PER_DAY, MS_PER_HOUR } from '../shared/utc-date.ts'
import { benchClock } from './bench-clock.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { compareLake, type SoakComparison } from './soak-compare.ts'
import { SoakExchange } from './soak-exchange.ts'
import { SoakProcess, type SoakSample } from './soak-process.ts'

export interface SoakLength {
  /** Changes of the exchange. */
  readonly perSecond: number
  readonly durationMs: number
}

interface Plan extends SoakLength {
  readonly sampleMs: number
  /** When it is killed, as shares of the duration; midnight is at one half. */
  readonly kills: readonly number[]
  /** When the exchange terminates the connection. */
  readonly drops: readonly number[]
  /** When it is suspended, for stallMs. */
  readonly stalls: readonly number[]
  readonly stallMs: number
  /** The longest time until the restart. */
  readonly deadMsMax: number
  /** After midnight, the log of the previous date must be removed within this time. */
  readonly logMsMax: number
}

const PLANS: Readonly<Record<BenchSize, Plan>> = {
  smoke: {
    perSecond: 500,
    durationMs: 24_000,
    sampleMs: 500,
    kills: [0.2, 0.45, 0.6],
    drops: [0.7],
    stalls: [0.8],
    stallMs: 3_000,
    deadMsMax: 100,
    logMsMax: 2 * 60_000,
  },
  full: {
    perSecond: 5_000,
    durationMs: MS_PER_HOUR,
    sampleMs: 5_000,
    kills: [0.03, 0.08, 0.15, 0.22, 0.3, 0.38, 0.45, 0.495, 0.5005, 0.51, 0.57],
    drops: [0.62, 0.7],
    stalls: [0.05, 0.65, 0.8],
    stallMs: 10_000,
    deadMsMax: 5_000,
    logMsMax: 15 * 60_000,
  },
}
const SERIES = ['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHMIA', 'KXHIGHAUS']
const MARKETS_PER_SERIES = 6
const CATCH_UP_MS_MAX = 10 * 60_000
/** A process that has just started grows, while threads start and buffers reach their sizes. */
const WARM_SHARE = 0.25
const TOLD_SAMPLES = 13

/** @param changed overrides rate or duration of the plan, for a slow machine or a shorter run */
export async function runSoak(size: BenchSize, changed: Partial<SoakLength> = {}): Promise<BenchReport> {
  const plan = { ...PLANS[size], ...changed }
  const root = await mkdtemp(join(tmpdir(), 'bookcast-soak-'))
  const clock = { shiftMs: shiftToMidnight(plan.durationMs / 2), speed: 1, fromMs: 0 }
  const markets = SERIES.flatMap((series) =>
    Array.from({ length: MARKETS_PER_SERIES }, (_, index) => `${series}-26NOV20-B${40 + index}.5`),
  )
  const exchange = await SoakExchange.start(markets, benchClock(clock))
  const { socketUrl, restUrl } = exchange
  const recorder = new SoakProcess({ root, series: SERIES, socketUrl, restUrl, clock })
  try {
    const samples = await soak(plan, exchange, recorder)
    while (exchange.unsentBytes > 0) await sleep(plan.sampleMs)
    await recorder.caughtUp(CATCH_UP_MS_MAX)
    samples.push(await recorder.sample())
    // An hour is closed some seconds after its end. Its log is removed once its slices are merged into one segment.
    while (
      logRemovedMs(samples) === undefined &&
      samples.at(-1)!.atMs < midnightOf(samples) + plan.logMsMax
    ) {
      await sleep(plan.sampleMs)
      samples.push(await recorder.sample())
    }
    await recorder.end('SIGTERM')
    const comparison = await compareLake(recorder.lake, exchange.truth)
    const lakeBytes = await bytesBelow(join(recorder.lake, 'lob'))
    const run = { plan, exchange, samples, comparison, lakeBytes }
    return {
      benchmark: 'soak',
      size,
      figures: [...rowFigures(run), ...processFigures(run)],
      hashes: {},
      notes: [...notes(run), ...comparison.told],
    }
  } finally {
    await recorder.end('SIGKILL')
    exchange.close()
    await rm(root, { recursive: true, force: true })
  }
}

interface SoakRun {
  readonly plan: Plan
  readonly exchange: SoakExchange
  readonly samples: readonly SoakSample[]
  readonly comparison: SoakComparison
  readonly lakeBytes: number
}

/** The clock shift that puts the nearest midnight `beforeMs` away. */
function shiftToMidnight(beforeMs: number): number {
  const nowMs = Date.now()
  const shiftMs = MS_PER_DAY - (nowMs % MS_PER_DAY) - beforeMs
  // The machine's clock stamps files: none may look a day old.
  return shiftMs > MS_PER_DAY / 2 ? shiftMs - MS_PER_DAY : shiftMs
}

async function soak(plan: Plan, exchange: SoakExchange, recorder: SoakProcess): Promise<SoakSample[]> {
  const random = new SeededRandom(1, 'soak kills')
  const samples: SoakSample[] = []
  const ended = new AbortController()
  const startMs = performance.now()
  recorder.start()
  const trading = exchange.trade(plan.perSecond, ended.signal)
  const events = [
    ...plan.kills.map((share) => ({ share, kind: 'kill' })),
    ...plan.drops.map((share) => ({ share, kind: 'drop' })),
    ...plan.stalls.map((share) => ({ share, kind: 'stall' })),
  ].toSorted((a, b) => a.share - b.share)
  try {
    for (;;) {
      const elapsedMs = performance.now() - startMs
      if (elapsedMs >= plan.durationMs) break
      samples.push(await recorder.sample())
      const [next] = events
      const dueMs = next === undefined ? Infinity : next.share * plan.durationMs - elapsedMs
      await sleep(Math.max(0, Math.min(plan.sampleMs, dueMs, plan.durationMs - elapsedMs)))
      if (next === undefined || dueMs > plan.sampleMs) continue
      events.shift()
      if (next.kind === 'drop') exchange.dropConnections()
      else if (next.kind === 'stall') await recorder.suspend(plan.stallMs)
      else {
        await recorder.end('SIGKILL')
        await sleep(random.unit() * plan.deadMsMax)
        recorder.start()
      }
    }
  } finally {
    ended.abort()
    await trading
  }
  return samples
}

function rowFigures({ plan, exchange, comparison, lakeBytes }: SoakRun): Figure[] {
  const { changeCount, connectionCount } = exchange.truth
  const lost = comparison.lostAtEnds
  return [
    { name: 'changes of the exchange', value: changeCount, unit: '' },
    {
      name: 'rate',
      value: (changeCount * 1000) / plan.durationMs,
      unit: 'changes/s',
      atLeast: plan.perSecond * 0.98,
    },
    { name: 'kills', value: plan.kills.length, unit: '' },
    { name: 'connections', value: connectionCount, unit: '' },
    { name: 'rows', value: comparison.rows, unit: '' },
    { name: 'changes in the lake', value: comparison.changes, unit: '' },
    { name: 'rows that differ', value: comparison.differentRows, unit: '', atMost: 0 },
    { name: 'rows at the time of their receipt', value: comparison.lateRows, unit: '' },
    { name: 'rows missing within a connection', value: comparison.missingRows, unit: '', atMost: 0 },
    { name: 'rows with an unknown book', value: comparison.unknownRows, unit: '', atMost: 0 },
    { name: 'gaps', value: comparison.gaps, unit: '' },
    { name: 'lost at an end, at most', value: Math.max(0, ...lost.slice(0, -1)), unit: '' },
    { name: 'lost at the last end', value: lost.at(-1) ?? 0, unit: '', atMost: 0 },
    { name: 'lake', value: lakeBytes / comparison.rows, unit: 'bytes/row' },
  ]
}

function processFigures({ plan, exchange, samples }: SoakRun): Figure[] {
  const last = samples.filter(({ life }) => life === samples.at(-1)?.life)
  const warm = last.slice(Math.floor(last.length * WARM_SHARE))
  const hours = warm.map(({ atMs }) => atMs / MS_PER_HOUR)
  const descriptors = warm.map((sample) => sample.descriptors)
  const { changeCount } = exchange.truth
  return [
    { name: 'most memory', value: Math.max(...samples.map(megabytes)), unit: 'MB' },
    { name: 'memory of the last process, warm', value: megabytes(warm[0]!), unit: 'MB' },
    { name: 'memory of the last process, at the end', value: megabytes(warm.at(-1)!), unit: 'MB' },
    { name: 'memory slope', value: slope(hours, warm.map(megabytes)), unit: 'MB/h' },
    { name: 'descriptors, at least', value: Math.min(...descriptors), unit: '' },
    { name: 'descriptors, at most', value: Math.max(...descriptors), unit: '' },
    { name: 'messages', value: exchange.sentBytes / changeCount, unit: 'bytes/change' },
    { name: 'log, at most', value: Math.max(...samples.map(({ logBytes }) => logBytes)) / 1e6, unit: 'MB' },
    {
      name: 'log of the date before, removed after midnight',
      value: (logRemovedMs(samples) ?? Infinity) / 1000,
      unit: 's',
      atMost: plan.logMsMax / 1000,
    },
  ]
}

/** The midnight nearest to the last sample. */
function midnightOf(samples: readonly SoakSample[]): number {
  return Math.round(samples.at(-1)!.atMs / MS_PER_DAY) * MS_PER_DAY
}

/** Time after midnight until the log of the previous date was removed; undefined if it still exists. */
function logRemovedMs(samples: readonly SoakSample[]): number | undefined {
  const midnightMs = midnightOf(samples)
  const today = new Date(midnightMs).toISOString().slice(0, 10).replaceAll('-', '')
  const sample = samples.find(
    ({ atMs, oldestLogHour }) => atMs > midnightMs && (oldestLogHour ?? '') >= today,
  )
  return sample === undefined ? undefined : sample.atMs - midnightMs
}

/** Memory, descriptors and log over time. */
function notes({ samples }: SoakRun): string[] {
  const step = Math.max(1, Math.floor(samples.length / TOLD_SAMPLES))
  return samples
    .filter((_, index) => index % step === 0)
    .map((sample) => {
      const time = new Date(sample.atMs).toISOString().slice(11, 19)
      const log = `log ${(sample.logBytes / 1e6).toFixed(0)} MB since ${sample.oldestLogHour ?? 'now'}`
      const process = `process ${sample.life}: ${megabytes(sample).toFixed(0)} MB`
      return `${time}: ${process}, ${sample.descriptors} descriptors, ${log}`
    })
}

function megabytes({ residentBytes }: SoakSample): number {
  return residentBytes / 1e6
}

/** The slope of the best-fitting line. */
function slope(xs: readonly number[], ys: readonly number[]): number {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length
  const [x0, y0] = [mean(xs), mean(ys)]
  const above = xs.reduce((sum, x, index) => sum + (x - x0) * (ys[index]! - y0), 0)
  return above / xs.reduce((sum, x) => sum + (x - x0) ** 2, 0)
}

async function bytesBelow(directory: string): Promise<number> {
  const names = await readdir(directory, { recursive: true })
  const sizes = await Promise.all(
    names.filter((name) => name.endsWith('.parquet')).map((name) => stat(join(directory, name))),
  )
  return sizes.reduce((sum, { size }) => sum + size, 0)
}
