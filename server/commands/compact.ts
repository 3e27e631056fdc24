// `bookcast compact`: the command line of server/compaction.

import {
  COMPACTION_DELAY_HOURS_MAX,
  COMPACTION_DELAY_MS,
  COMPACTION_GRACE_MINUTES_MAX,
} from '../../shared/limits.ts'
import { MS_PER_HOUR, MS_PER_MINUTE } from '../../shared/utc-date.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { compactClosedDays } from '../compaction/compaction.ts'
import type { CompactionResult } from '../compaction/compaction-options.ts'
import { optionCommand } from './option-command.ts'
import type { CommandIo } from './command.ts'
import {
  describeOptions,
  integerOption,
  type OptionDeclaration,
  optionsOf,
  type ParsedOptions,
} from '../options/options.ts'
import { readStoreOptions, STORE_OPTIONS } from '../storage/store-options.ts'
import { refuseOldLayout } from '../lake/old-layout.ts'
import { openExistingStore } from './open-store.ts'

const OPTIONS: readonly OptionDeclaration[] = [
  { name: 'lake', placeholder: '<dir>', description: 'the lake that rows move to; required' },
  ...STORE_OPTIONS,
  ...optionsOf('compact', [
    {
      name: 'delay-hours',
      placeholder: '<n>',
      description: 'hours between the end of a UTC day and its move',
      default: String(COMPACTION_DELAY_MS / MS_PER_HOUR),
    },
    {
      name: 'grace-minutes',
      placeholder: '<n>',
      description:
        'time that rows stay in the store after their file was written, for servers with a copy of the lake',
      default: '0',
    },
  ]),
]

const HELP = `Usage: bookcast compact --lake <dir> [options]

Moves closed days of candles and observations from the relational store to the lake. It reads each file back before it deletes
rows. If a run is killed, the next one completes it. With --grace-minutes, a later run deletes the rows, at least that long after
their file was written. While it runs, no other process can use an embedded store.

${describeOptions(OPTIONS)}
`

export const compactCommand = optionCommand(OPTIONS, HELP, run)

async function run(options: ParsedOptions, io: CommandIo): Promise<number> {
  const lake = options.demand('lake').text
  const place = readStoreOptions(options)
  const delayMs = integerOption(options.demand('delay-hours'), 0, COMPACTION_DELAY_HOURS_MAX) * MS_PER_HOUR
  const graceMs =
    integerOption(options.demand('grace-minutes'), 0, COMPACTION_GRACE_MINUTES_MAX) * MS_PER_MINUTE
  await refuseOldLayout(lake)
  const store = await openExistingStore(place)
  try {
    const result = await compactClosedDays({
      postgres: store.postgres,
      lake,
      delayMs,
      signal: io.signal,
      ...(graceMs === 0 ? {} : { retireBeforeMs: SYSTEM_CLOCK.nowMs() - graceMs }),
    })
    return report(result, io)
  } finally {
    await store.close()
  }
}

function report({ partitions, published, failures }: CompactionResult, io: CommandIo): number {
  for (const { path, rows, fileRows } of published) {
    io.stdout.write(`${path}: ${rows} rows copied, ${fileRows} in the file\n`)
  }
  for (const { path, rows, fileRows } of partitions) {
    io.stdout.write(`${path}: ${rows} rows moved, ${fileRows} in the file\n`)
  }
  const [first, ...others] = failures.filter(({ isPassing }) => isPassing)
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  if (first !== undefined) io.stderr.write(`failed: ${first.path}${more}: ${first.reason}\n`)
  for (const { path, reason, isPassing } of failures)
    if (!isPassing) io.stderr.write(`failed: ${path}: ${reason}\n`)
  if (published.length > 0)
    io.stdout.write(`${published.length} files written; their rows stay in the store for now\n`)
  io.stdout.write(`${partitions.length} files written, ${failures.length} failed\n`)
  return failures.length === 0 ? 0 : 1
}
