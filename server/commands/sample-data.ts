// `bookcast sample-data`: writes the generated sample lake that the server can be tried with.

import { join } from 'node:path'
import { writeSampleLake } from '../sample-data/sample-lake.ts'
import type { Command } from './command.ts'
import { UsageError } from './command.ts'
import type { OptionDeclaration, ParsedOptions } from './options.ts'
import { describeOptions, integerOption, parseOptions } from './options.ts'

const OPTIONS: readonly OptionDeclaration[] = [
  {
    name: 'out',
    placeholder: '<dir>',
    description: 'directory of the sample; its lake is <dir>/lake',
    env: 'BOOKCAST_SAMPLE_OUT',
    default: 'data-samples',
  },
  {
    name: 'seed',
    placeholder: '<n>',
    description: 'whole number; the same seed gives the same bytes',
    env: 'BOOKCAST_SAMPLE_SEED',
    // With this one the first event of KXHIGHNY is split at 79 °F, as in the examples of the documentation.
    default: '20',
  },
]

const SEED_MAX = 2 ** 32 - 1

const HELP = `Usage: bookcast sample-data [options]

Writes a small lake of simulated order books: three Kalshi series and one Polymarket series over three dates. It
replaces an earlier sample in the same directory and nothing else.

Options:
${describeOptions(OPTIONS)}
  -h, --help                  this text
`

export const sampleDataCommand: Command = async (args, io) => {
  const options = parseOptions(args, io.env, OPTIONS)
  if (options.help) {
    io.stdout.write(HELP)
    return 0
  }
  const directory = required(options, 'out').text
  const seed = integerOption(required(options, 'seed'), 0, SEED_MAX)
  const { files } = await writeSampleLake({
    directory,
    seed,
    ...(io.signal === undefined ? {} : { signal: io.signal }),
  })
  const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0)
  const rows = files.reduce((sum, file) => sum + file.rows, 0)
  io.stdout.write(
    `Wrote ${files.length} files (${rows} rows, ${(sizeBytes / 1e6).toFixed(1)} MB) of seed ${seed} to ` +
      `${join(directory, 'lake')}\n`,
  )
  return 0
}

function required(options: ParsedOptions, name: string) {
  const option = options.get(name)
  if (option === undefined || option.text === '') throw new UsageError(`--${name} needs a value`)
  return option
}
