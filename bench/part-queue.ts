// The export queue alone, with parts that do no work: parts per second by number of workers and by number of parts, with the load
// of the database. A hundred machines cannot be run here; this shows where the queue would limit them. Needs a PostgreSQL server in
// DATABASE_URL.

import { once } from 'node:events'
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { PartQueue } from '../server/export/part-queue.ts'
import { readVersion } from '../server/http/version.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'

const SIZES: Readonly<
  Record<BenchSize, { workers: readonly number[]; parts: readonly number[]; seconds: number }>
> = {
  full: { workers: [1, 2, 4, 8, 16, 32, 64], parts: [1_000, 10_000, 100_000, 1_000_000], seconds: 10 },
  smoke: { workers: [1, 2], parts: [20], seconds: 0.2 },
}
/** Loops that share a process, as with `bookcast work --concurrency`. */
const LOOPS_PER_PROCESS = 16

const CHILD = fileURLToPath(new URL('part-queue-child.js', import.meta.url))

export async function runPartQueue(
  size: BenchSize,
  databaseUrl = process.env['DATABASE_URL'],
): Promise<BenchReport> {
  const report = { benchmark: 'part-queue', size, hashes: {} }
  if (databaseUrl === undefined)
    return { ...report, figures: [], notes: ['not measured: DATABASE_URL names no server'] }
  const { workers, parts, seconds } = SIZES[size]
  const figures: Figure[] = []
  const queue = await PartQueue.open(databaseUrl, false, () => {})
  const database = postgres(databaseUrl, { max: 1 })
  /** Sessions of the queue that the server is working for now. */
  const sessionsAtWork = async (): Promise<number> => {
    const rows = await database`
      select 1 from pg_stat_activity where state = 'active' and application_name = 'bookcast-export'`
    return rows.length
  }
  try {
    for (const count of parts) {
      const submitMs = Date.now()
      const id = await queue.submit({
        version: readVersion(),
        parts: Array.from({ length: count }, () => ({})),
      })
      const perS = (count * 1000) / Math.max(Date.now() - submitMs, 1)
      figures.push({ name: `${count} parts: submitted`, value: perS, unit: 'parts/s' })
      // All numbers of workers at a middle size; a few workers at every other size.
      for (const loops of count === parts[Math.min(1, parts.length - 1)] ? workers : workers.slice(1, 2)) {
        const { rate, sessions } = await measure(queue, id, databaseUrl, loops, seconds, sessionsAtWork)
        const name = `${count} parts, ${loops} workers`
        figures.push({ name, value: rate, unit: 'parts/s' })
        figures.push({ name: `${name}: sessions at work`, value: sessions, unit: '' })
      }
      await queue.cancel(id)
    }
  } finally {
    await database.end()
    await queue.close()
  }
  return {
    ...report,
    figures,
    notes: ['sessions at work: how many sessions the database works for at once, on average'],
  }
}

async function measure(
  queue: PartQueue,
  id: string,
  url: string,
  loops: number,
  seconds: number,
  sessionsAtWork: () => Promise<number>,
): Promise<{ rate: number; sessions: number }> {
  const children = []
  for (let left = loops; left > 0; left -= LOOPS_PER_PROCESS) {
    const child = fork(CHILD, [url, String(Math.min(left, LOOPS_PER_PROCESS))])
    await once(child, 'message')
    children.push(child)
  }
  const done = async (): Promise<number> => (await queue.status(id))?.parts.done ?? 0
  const before = await done()
  const beganMs = Date.now()
  const sessions: number[] = []
  while (Date.now() - beganMs < seconds * 1000) {
    sessions.push(await sessionsAtWork())
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const rate = ((await done()) - before) / ((Date.now() - beganMs) / 1000)
  for (const child of children) {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  return { rate, sessions: sessions.reduce((sum, value) => sum + value, 0) / sessions.length }
}
