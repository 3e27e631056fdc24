// `npm run bench`: runs the benchmarks against the built server and prints the figures and the environment. They run one at a time,
// because they would affect each other.

import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { BenchLake } from './bench-lake.ts'
import { runCatalogue } from './catalogue.ts'
import { runClients } from './clients.ts'
import { runCoverage } from './coverage.ts'
import { runEndurance } from './endurance.ts'
import { readEnvironment } from './environment.ts'
import { runExplorer } from './explorer.ts'
import { runImportBench } from './import.bench.ts'
import { runBackpressure } from './lob-backpressure.ts'
import { runEndToEnd } from './lob-end-to-end.ts'
import { runMemory } from './lob-memory.ts'
import { runReceipts } from './lob-receipts.ts'
import { runSeeking } from './lob-seeking.ts'
import { runMixedLoad } from './mixed-load.ts'
import { runPartQueue } from './part-queue.ts'
import { runParquetOutBench } from './parquet-out.bench.ts'
import { runRecordMemory } from './record-memory.ts'
import { runRecorderBench } from './recorder.bench.ts'
import { runRecords } from './records.ts'
import { runReplicas } from './replicas.ts'
import { environmentMarkdown, reportMarkdown } from './report.ts'
import { runSoakHours } from './soak-hours.ts'
import { runSoak, type SoakLength } from './soak.ts'
import { runTrades } from './trades.ts'
import { runVolume } from './volume.ts'
import { runWorkers } from './workers.ts'
import { MS_PER_MINUTE } from '../shared/utc-date.ts'
import type { BenchReport, BenchSize } from './report.ts'

/** Options of long benchmarks. */
interface AskedLength extends Partial<SoakLength> {
  readonly hours?: number
}
type Benchmark = (lake: BenchLake, size: BenchSize, length: AskedLength) => Promise<BenchReport>

const BENCHMARKS: ReadonlyMap<string, Benchmark> = new Map<string, Benchmark>([
  ['lob-end-to-end', runEndToEnd],
  ['lob-seeking', runSeeking],
  ['lob-receipts', runReceipts],
  ['lob-memory', runMemory],
  ['lob-backpressure', runBackpressure],
  ['parquet-out', runParquetOut],
  ['records', runRecords],
  ['trades', runTrades],
  ['record-memory', (lake, size) => runRecordMemory(lake, size)],
  ['volume', runVolume],
  ['mixed-load', (lake, size) => runMixedLoad(lake, size)],
  ['catalogue', (_lake, size) => runCatalogue(size)],
  ['coverage', runCoverage],
  ['clients', runClients],
  ['explorer', runExplorer],
  ['part-queue', (_lake, size) => runPartQueue(size)],
  ['workers', (lake, size) => runWorkers(lake, size)],
  ['recorder', (_lake, size) => runRecorderBench(size)],
  ['import', (_lake, size) => runImportBench(size)],
  [
    'endurance',
    (lake, size, { durationMs }) => runEndurance(lake, size, durationMs === undefined ? {} : { durationMs }),
  ],
  [
    'replicas',
    (lake, size, { durationMs }) => runReplicas(lake, size, durationMs === undefined ? {} : { durationMs }),
  ],
  ['soak', (_lake, size, length) => runSoak(size, length)],
  ['soak-hours', (_lake, size, length) => runSoakHours(size, length)],
])

/** These take ten minutes or more, and run only if they are named. */
const LONG = new Set(['endurance', 'replicas', 'soak', 'soak-hours'])

const HELP = `Usage: npm run bench -- [options]

  --only <name>    one of ${[...BENCHMARKS.keys()].join(', ')}; may be repeated
  --smoke          small inputs: checks that everything runs, measures nothing of worth
  --minutes <n>    a soak of other length than 60 minutes, endurance of other length than 30, replicas
                   than 10
  --soak-rate <n>  a soak at another rate than 5000 changes/s
  --soak-hours <n> hours of the clock of soak-hours, which is 12 times as fast, instead of 5
  --json <file>    also writes the reports as JSON
  -h, --help       this text
`

async function runParquetOut(_lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const notes: string[] = []
  const { rows, ours, peer, ratio } = await runParquetOutBench(size, (line) => notes.push(line))
  const rowsPerS = (totalMs: number) => rows / totalMs / 1000
  return {
    benchmark: 'parquet-out',
    size,
    figures: [
      { name: 'bookcast', value: rowsPerS(ours.totalMs), unit: 'M rows/s', atLeast: 1.5 },
      { name: 'parquet-wasm', value: rowsPerS(peer.totalMs), unit: 'M rows/s' },
      { name: 'bookcast is faster by', value: ratio, unit: '×', atLeast: 3 },
      {
        name: 'first row group of total',
        value: (100 * ours.firstRowGroupMs) / ours.totalMs,
        unit: '%',
        atMost: 10,
      },
    ],
    hashes: { bookcast: ours.sha256, 'parquet-wasm': peer.sha256 },
    notes,
  }
}

/** A positive number from the command line, converted by `mean`; undefined if it is not given. */
function asked<T>(name: string, text: string | undefined, mean: (value: number) => T): T | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!(value > 0 && Number.isFinite(value))) throw new Error(`--${name} is no positive number: ${text}`)
  return mean(value)
}

async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', multiple: true },
      smoke: { type: 'boolean', default: false },
      json: { type: 'string' },
      minutes: { type: 'string' },
      'soak-rate': { type: 'string' },
      'soak-hours': { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(HELP)
    return
  }
  const names = values.only ?? [...BENCHMARKS.keys()].filter((name) => !LONG.has(name))
  const unknown = names.filter((name) => !BENCHMARKS.has(name))
  if (unknown.length > 0) throw new Error(`no benchmark is called ${unknown.join(', ')}\n\n${HELP}`)
  const length = {
    ...asked('minutes', values.minutes, (minutes) => ({ durationMs: minutes * MS_PER_MINUTE })),
    ...asked('soak-hours', values['soak-hours'], (hours) => ({ hours })),
    ...asked('soak-rate', values['soak-rate'], (perSecond) => ({ perSecond })),
  }
  const environment = await readEnvironment()
  process.stdout.write(`${environmentMarkdown(environment)}\n`)
  const lake = await BenchLake.create()
  const reports: BenchReport[] = []
  try {
    for (const name of names) {
      const report = await BENCHMARKS.get(name)!(lake, values.smoke ? 'smoke' : 'full', length)
      process.stdout.write(`${reportMarkdown(report)}\n`)
      reports.push(report)
    }
  } finally {
    await lake.remove()
  }
  if (values.json !== undefined) {
    await writeFile(values.json, `${JSON.stringify({ environment, reports }, null, 2)}\n`)
  }
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
