// The time that one and two `bookcast work` take for one export, each with one part at a time. In turns with them, what two
// processes that only compute do in the time of one, and how many processors one worker keeps busy: the first by the second
// is the most that a second worker can bring on this machine. Needs a PostgreSQL server in DATABASE_URL.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { PartQueue } from '../server/export/part-queue.ts'
import { PartThreads } from '../server/export/part-threads.ts'
import { planExport } from '../server/export/planning.ts'
import { generateBenchmarkLake } from '../server/sample-data/benchmark-lake.ts'
import { addDays, utcDatesBetween } from '../shared/utc-date.ts'
import { BENCH_DATE, type BenchLake } from './bench-lake.ts'
import { alternate, median } from './measure.ts'
import { readProcessCpuMs } from './process-status.ts'
import type { BenchReport, BenchSize } from './report.ts'

const SIZES = {
  full: { dates: 30, interval: '1', rounds: 3, loops: 3e9 },
  smoke: { dates: 2, interval: '3600', rounds: 1, loops: 1e6 },
} as const
const SERIES = 'KXWORKERS'
const MAIN = fileURLToPath(new URL('../server/main.js', import.meta.url))

export async function runWorkers(
  { lake }: BenchLake,
  size: BenchSize,
  databaseUrl = process.env['DATABASE_URL'],
): Promise<BenchReport> {
  const report = { benchmark: 'workers', size, hashes: {} }
  if (databaseUrl === undefined)
    return { ...report, figures: [], notes: ['not measured: DATABASE_URL names no server'] }
  const { dates, interval, rounds, loops } = SIZES[size]
  const range = { from: BENCH_DATE, to: addDays(BENCH_DATE, dates - 1) }
  for (const date of utcDatesBetween(range.from, range.to))
    await generateBenchmarkLake({ lake, series: SERIES, date, markets: 5, deltas: 20_000, seed: 1 })
  const target = join(lake, '..', `${process.pid}-bookcast-workers`)
  const threads = new PartThreads({ lake, threads: 1 })
  const plan = await planExport({
    dataset: 'lob',
    scopes: [SERIES],
    range,
    parameters: { interval, levels: '10', format: 'parquet' },
    target,
    threads,
    store: null,
    nowMs: Date.now(),
    signal: new AbortController().signal,
  })
  await threads.close()
  const queue = await PartQueue.open(databaseUrl, false, () => {})

  const work = async (count: number): Promise<{ seconds: number; processors: number }> => {
    await rm(target, { recursive: true, force: true })
    const env = { ...process.env, DATABASE_URL: databaseUrl }
    const args = [MAIN, 'work', '--lake', lake, '--concurrency', '1']
    const workers = Array.from({ length: count }, () =>
      spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] }),
    )
    const usedMs = async (): Promise<number> => {
      const used = await Promise.all(workers.map(({ pid }) => readProcessCpuMs(pid!)))
      return used.reduce<number>((sum, ms) => sum + (ms ?? 0), 0)
    }
    // Each says that it is there.
    await Promise.all(workers.map(({ stderr }) => once(stderr, 'data')))
    for (const { stderr } of workers) stderr.resume()
    const id = await queue.submit(plan)
    while ((await queue.status(id))?.parts.waiting === dates) await delay(10)
    const [beganMs, usedBeforeMs] = [performance.now(), await usedMs()]
    while ((await queue.status(id))?.state !== 'completed') await delay(50)
    const tookMs = performance.now() - beganMs
    const processors = ((await usedMs()) - usedBeforeMs) / tookMs
    const ended = workers.map((worker) => once(worker, 'exit'))
    for (const worker of workers) worker.kill('SIGTERM')
    await Promise.all(ended)
    return { seconds: tookMs / 1000, processors }
  }
  const compute = async (count: number): Promise<number> => {
    const code = `let x = 0; for (let i = 0; i < ${loops}; i += 1) x = (x * 31 + i) | 0`
    const beganMs = performance.now()
    const children = Array.from({ length: count }, () => spawn(process.execPath, ['-e', code]))
    await Promise.all(children.map((child) => once(child, 'exit')))
    return (performance.now() - beganMs) / 1000
  }

  try {
    const results = await alternate(rounds, 0, [
      async () => {
        const [one, two, alone, both] = [await work(1), await work(2), await compute(1), await compute(2)]
        return {
          'one worker': one.seconds,
          'two workers': two.seconds,
          'two workers against one': one.seconds / two.seconds,
          'processors that one worker keeps busy': one.processors,
          'processors that two workers keep busy': two.processors,
          'two loops against one': (2 * alone) / both,
        }
      },
    ])
    const rows = results[0]!
    const medians = Object.fromEntries(
      Object.keys(rows[0]!).map((name) => [name, median(rows.map((row) => row[name as keyof typeof row]))]),
    )
    const bound = medians['two loops against one']! / medians['processors that one worker keeps busy']!
    const figures = Object.entries({ ...medians, 'most that the processors allow': bound }).map(
      ([name, value]) => ({ name, value, unit: /^(one|two) workers?$/.test(name) ? 's' : '' }),
    )
    return { ...report, figures, notes: rows.map((row) => JSON.stringify(row)) }
  } finally {
    await queue.close()
    await rm(target, { recursive: true, force: true })
  }
}
