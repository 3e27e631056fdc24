// The cost of adding to a date: a recording is imported whole, and in two halves, the second into the lake with the first. Measures
// processor time and peak memory of each `bookcast import` process; both lakes must have the same bytes. Runs once with all
// sequence numbers, once with holes.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { SeededRandom } from '../server/sample-data/seeded-random.ts'
import { alternate, median } from './measure.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'

const SIZES = {
  smoke: { messages: 2_000, holes: 50, rounds: 1 },
  full: { messages: 300_000, holes: 10_000, rounds: 5 },
} as const
const DATE = '2026-06-24'
const DAY_MS = 86_400_000
const MARKETS = ['T80', 'B82.5', 'B84.5', 'T86'].map((strike) => `KXHIGHNY-26JUN24-${strike}`)
const MAIN = fileURLToPath(new URL('../server/main.js', import.meta.url))
/** Each market has a snapshot once in this many messages, so that its book is known again after a hole. */
const SNAPSHOT_EVERY = 1_000
/** At its end, the process reports its resource usage on an extra descriptor. */
const TELLS_USAGE =
  "import { writeSync } from 'node:fs'; process.on('exit', () => writeSync(3, JSON.stringify(process.resourceUsage())))"

interface Usage {
  readonly cpuMs: number
  readonly peakMb: number
}

/** Runs `bookcast import` of the files into the lake. */
async function importFiles(lake: string, paths: readonly string[]): Promise<Usage> {
  const preload = `data:text/javascript,${encodeURIComponent(TELLS_USAGE)}`
  const args = ['--import', preload, MAIN, 'import', '--source', 'kalshi', '--lake', lake, ...paths]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'] })
  const [usage, errors, [code]] = await Promise.all([
    text(child.stdio[3] as Readable),
    text(child.stderr!),
    once(child, 'close'),
  ])
  if (code !== 0) throw new Error(`bookcast import failed: ${errors}`)
  const { userCPUTime, systemCPUTime, maxRSS } = JSON.parse(usage) as NodeJS.ResourceUsage
  return { cpuMs: (userCPUTime + systemCPUTime) / 1000, peakMb: maxRSS / 1024 }
}

/** The lines of a day; `holes` sequence numbers are missing, evenly spaced. */
function recording(messages: number, holes: number): string[] {
  const random = new SeededRandom(messages, 'import bench')
  const startMs = Date.parse(`${DATE}T00:00:00Z`)
  const every = holes === 0 ? Infinity : Math.floor(messages / holes)
  const lines: string[] = []
  for (let seq = 1; seq <= messages; seq++) {
    if (seq % every === every - 1) continue
    const ticker = MARKETS[seq % MARKETS.length]!
    const ms = startMs + Math.floor((seq * (DAY_MS - 60_000)) / messages)
    const isSnapshot = seq <= MARKETS.length || seq % SNAPSHOT_EVERY < MARKETS.length
    const cents = 1 + Math.floor(random.unit() * 99)
    const msg = isSnapshot
      ? {
          market_ticker: ticker,
          yes_dollars_fp: [['0.4000', '500.00']],
          no_dollars_fp: [['0.5500', '300.00']],
        }
      : {
          market_ticker: ticker,
          price_dollars: (cents / 100).toFixed(4),
          delta_fp: `${1 + Math.floor(random.unit() * 400)}.00`,
          side: cents < 50 ? 'yes' : 'no',
          ts_ms: ms - 20,
        }
    const type = isSnapshot ? 'orderbook_snapshot' : 'orderbook_delta'
    lines.push(`${JSON.stringify({ recv_ts: ms, msg: { type, sid: 1, seq, msg } })}\n`)
  }
  return lines
}

async function hashOf(lake: string): Promise<string> {
  const path = join(lake, `lob/source=kalshi/series=KXHIGHNY/date=${DATE}/lob.parquet`)
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex')
}

export async function runImportBench(size: BenchSize): Promise<BenchReport> {
  const { messages, holes, rounds } = SIZES[size]
  const root = await mkdtemp(join(tmpdir(), 'bookcast-bench-import-'))
  const figures: Figure[] = [{ name: 'messages', value: messages, unit: '' }]
  const hashes: Record<string, string> = {}
  try {
    for (const missing of [0, holes]) {
      const name = missing === 0 ? 'without holes' : `with ${missing} holes`
      const measured = await measure(join(root, String(missing)), recording(messages, missing), rounds)
      figures.push(...measured.figures.map((figure) => ({ ...figure, name: `${figure.name}, ${name}` })))
      hashes[`one import, ${name}`] = measured.whole
      hashes[`two imports, ${name}`] = measured.halves
    }
  } finally {
    await rm(root, { recursive: true, force: true })
  }
  return { benchmark: 'import', size, figures, hashes, notes: ['processor time of all threads, median'] }
}

async function measure(
  directory: string,
  lines: readonly string[],
  rounds: number,
): Promise<{ readonly figures: readonly Figure[]; readonly whole: string; readonly halves: string }> {
  await mkdir(directory, { recursive: true })
  const middle = Math.floor(lines.length / 2)
  const [first, second] = [join(directory, 'a.ndjson.gz'), join(directory, 'b.ndjson.gz')]
  await writeFile(first, gzipSync(lines.slice(0, middle).join('')))
  await writeFile(second, gzipSync(lines.slice(middle).join('')))
  const [whole, halves] = [join(directory, 'whole'), join(directory, 'halves')]
  const [wholes, seconds] = await alternate(rounds, 0, [
    async () => {
      await rm(whole, { recursive: true, force: true })
      return await importFiles(whole, [first, second])
    },
    async () => {
      await rm(halves, { recursive: true, force: true })
      await importFiles(halves, [first])
      return await importFiles(halves, [second])
    },
  ])
  const cpuMs = (usages: readonly Usage[]): number => median(usages.map((usage) => usage.cpuMs))
  const peakMb = Math.max(...[...wholes!, ...seconds!].map((usage) => usage.peakMb))
  return {
    figures: [
      { name: 'whole import', value: cpuMs(wholes!) / 1000, unit: 's' },
      { name: 'second half into a lake with the first', value: cpuMs(seconds!) / 1000, unit: 's' },
      {
        name: 'second half of a whole import',
        value: cpuMs(seconds!) / cpuMs(wholes!),
        unit: '×',
        atMost: 1.5,
      },
      { name: 'peak memory', value: peakMb, unit: 'MB' },
    ],
    whole: await hashOf(whole),
    halves: await hashOf(halves),
  }
}
