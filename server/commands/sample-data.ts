// `bookcast sample-data`: writes a generated sample lake to try the server with.

import { join } from 'node:path'
import type { BenchmarkLakeOptions } from '../sample-data/benchmark-lake.ts'
import { generateBenchmarkLake } from '../sample-data/benchmark-lake.ts'
import type { SampleLakeOptions } from '../sample-data/sample-lake.ts'
import { writeSampleLake } from '../sample-data/sample-lake.ts'
import { SAMPLE_FIRST_DATE } from '../sample-data/sample-series.ts'
import { asLakeWriteError } from '../lake/lake-write-error.ts'
import type { OptionDeclaration } from '../options/options.ts'
import { describeOptions, integerOption, optionsOf } from '../options/options.ts'
import { optionCommand } from './option-command.ts'

const OPTIONS: readonly OptionDeclaration[] = [
  ...optionsOf('sample', [
    {
      name: 'out',
      placeholder: '<dir>',
      description: 'directory of the sample; its lake is <dir>/lake',
      default: 'data-samples',
    },
    {
      name: 'seed',
      placeholder: '<n>',
      description: 'integer seed; the same seed gives the same bytes',
      // The examples in the documentation use this seed; its first event of KXHIGHNY is split at 79 °F.
      default: '20',
    },
    {
      name: 'deltas',
      placeholder: '<n>',
      description: 'instead of the sample: one busy day with this many level changes, for load tests',
    },
    { name: 'markets', placeholder: '<n>', description: 'markets of that busy day', default: '5' },
  ]),
]

const SEED_MAX = 2 ** 32 - 1
const DELTAS_MAX = 1_000_000_000
const MARKETS_MAX = 1000
/** The series of a busy day. */
const BUSY_SERIES = 'KXBUSY'

const HELP = `Usage: bookcast sample-data [options]

Writes a small lake of simulated order books: three Kalshi series and one Polymarket series over three dates. It
replaces an earlier sample in the same directory and nothing else. With --deltas it writes a busy day for load tests.

${describeOptions(OPTIONS)}
`

export const sampleDataCommand = optionCommand(OPTIONS, HELP, async (options, io) => {
  const directory = options.demand('out').text
  const seed = integerOption(options.demand('seed'), 0, SEED_MAX)
  const markets = integerOption(options.demand('markets'), 1, MARKETS_MAX)
  const deltas = options.get('deltas')
  const lake = join(directory, 'lake')
  const writing =
    deltas === undefined
      ? writeSample({ directory, seed, signal: io.signal })
      : writeBusyDay({
          lake,
          series: BUSY_SERIES,
          date: SAMPLE_FIRST_DATE,
          markets,
          deltas: integerOption(deltas, 1, DELTAS_MAX),
          seed,
          signal: io.signal,
        })
  io.stdout.write(
    await writing.catch((error: unknown) => {
      throw asLakeWriteError(error, lake)
    }),
  )
  return 0
})

async function writeSample(options: SampleLakeOptions): Promise<string> {
  const { files } = await writeSampleLake(options)
  const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0)
  const rows = files.reduce((sum, file) => sum + file.rows, 0)
  return (
    `Wrote ${files.length} files (${rows} rows, ${(sizeBytes / 1e6).toFixed(1)} MB) of seed ${options.seed} to ` +
    `${join(options.directory, 'lake')}\n`
  )
}

async function writeBusyDay(options: BenchmarkLakeOptions): Promise<string> {
  const events = await generateBenchmarkLake(options)
  return `Wrote ${events} events of series ${options.series}, ${options.date}, to ${options.lake}\n`
}
