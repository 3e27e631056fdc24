// The time that one and two `bookcast work` take for one export, each with one part at a time. In turns with them, one and two
// `bookcast export run` of that export, each to its own target and without a queue. These share nothing, so the parts that two of
// them make in the time of one are the most that a second worker can add on this machine. Needs a PostgreSQL server in
// DATABASE_URL.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type MadePlan, planLines } from '../server/export/export-plan.ts'
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
  full: { dates: 90, interval: '1', rounds: 3 },
  smoke: { dates: 2, interval: '3600', rounds: 1 },
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
  const { dates, interval, rounds } = SIZES[size]
  const range = { from: BENCH_DATE, to: addDays(BENCH_DATE, dates - 1) }
  for (const date of utcDatesBetween(range.from, range.to))
    await generateBenchmarkLake({ lake, series: SERIES, date, markets: 5, deltas: 20_000, seed: 1 })
  const targets = [1, 2].map((number) => join(lake, '..', `${process.pid}-bookcast-workers-${number}`))
  const clear = async (): Promise<void> => {
    for (const target of targets) await rm(target, { recursive: true, force: true })
  }
  const threads = new PartThreads({ lake, threads: 1 })
  const planFileOf = (target: string): string => `${target}.jsonl`
  const plans: MadePlan[] = []
  for (const target of targets) {
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
    plans.push(plan)
    await writeFile(planFileOf(target), [...planLines(plan)].join(''))
  }
  await threads.close()
  const queue = await PartQueue.open(databaseUrl, false, () => {})

  /** Resolves when the export is finished, to the start time of its first part and the processor time used by then. */
  const exported = async (plan: MadePlan, usedMs = async () => 0): Promise<readonly [number, number]> => {
    const id = await queue.submit(plan)
    while ((await queue.status(id))?.parts.waiting === dates) await delay(10)
    const begun = [performance.now(), await usedMs()] as const
    // Checking for the file does not load the workers, unlike querying the queue.
    while (!existsSync(join(plan.target, 'manifest.json'))) await delay(20)
    return begun
  }
  const work = async (count: number): Promise<{ seconds: number; processors: number }> => {
    await clear()
    const env = { ...process.env, DATABASE_URL: databaseUrl }
    const args = [MAIN, 'work', '--lake', lake, '--concurrency', '1']
    const workers = Array.from({ length: count }, () =>
      spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] }),
    )
    const usedMs = async (): Promise<number> => {
      const used = await Promise.all(workers.map(({ pid }) => readProcessCpuMs(pid!)))
      return used.reduce<number>((sum, ms) => sum + (ms ?? 0), 0)
    }
    // Each worker prints a line when it is ready.
    await Promise.all(workers.map(({ stderr }) => once(stderr, 'data')))
    for (const { stderr } of workers) stderr.resume()
    // Workers are long-lived: the first export only warms up their code.
    await exported(plans[1]!)
    const [beganMs, usedBeforeMs] = await exported(plans[0]!, usedMs)
    const tookMs = performance.now() - beganMs
    const processors = ((await usedMs()) - usedBeforeMs) / tookMs
    const ended = workers.map((worker) => once(worker, 'exit'))
    for (const worker of workers) worker.kill('SIGTERM')
    await Promise.all(ended)
    return { seconds: tookMs / 1000, processors }
  }
  const run = async (count: number): Promise<number> => {
    await clear()
    const beganMs = performance.now()
    const runs = targets.slice(0, count).map((target) => {
      const args = [MAIN, 'export', 'run', planFileOf(target), '--lake', lake, '--concurrency', '1']
      return once(spawn(process.execPath, args, { stdio: 'ignore' }), 'exit')
    })
    const codes = await Promise.all(runs)
    if (codes.some(([code]) => code !== 0)) throw new Error('bookcast export run failed')
    return (performance.now() - beganMs) / 1000
  }

  try {
    const results = await alternate(rounds, 0, [
      async () => {
        const [one, two, alone, both] = [await work(1), await work(2), await run(1), await run(2)]
        return {
          'one worker': one.seconds,
          'two workers': two.seconds,
          'two workers against one': one.seconds / two.seconds,
          'processors that one worker keeps busy': one.processors,
          'processors that two workers keep busy': two.processors,
          'two runs that share nothing against one': (2 * alone) / both,
        }
      },
    ])
    const rows = results[0]!
    const medians = Object.fromEntries(
      Object.keys(rows[0]!).map((name) => [name, median(rows.map((row) => row[name as keyof typeof row]))]),
    )
    const figures = Object.entries(medians).map(([name, value]) => {
      return { name, value, unit: /^(one|two) workers?$/.test(name) ? 's' : '' }
    })
    return { ...report, figures, notes: rows.map((row) => JSON.stringify(row)) }
  } finally {
    await queue.close()
    await clear()
    for (const target of targets) await rm(planFileOf(target), { force: true })
  }
}
