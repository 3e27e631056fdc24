// `bookcast rebuild`: the command line of server/fold/lake-rebuild.ts.

import { relative } from 'node:path'
import { messageOf } from '../../shared/error-message.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { foldInThread } from '../fold/fold-client.ts'
import { rebuildDates, rebuildPlan } from '../fold/lake-rebuild.ts'
import type { RebuildOptions, RebuiltDate } from '../fold/lake-rebuild.ts'
import { describeLakeWriteError } from '../lake/lake-write-error.ts'
import {
  choiceOption,
  dateOption,
  describeOptions,
  type OptionDeclaration,
  optionsOf,
  type ParsedOptions,
} from '../options/options.ts'
import { UsageError } from '../options/usage-error.ts'
import { rawDates } from '../raw/date-manifest.ts'
import { optionCommand } from './option-command.ts'
import { mustBeLake } from './directories.ts'
import { ImportProgressView } from './import-progress.ts'

const OPTIONS: readonly OptionDeclaration[] = [
  { name: 'lake', placeholder: '<dir>', description: 'the lake; required' },
  ...optionsOf('rebuild', [
    {
      name: 'source',
      placeholder: lobSources().join('|'),
      description: 'the exchange; default: each one with raw segments in the lake',
    },
    {
      name: 'from',
      placeholder: '<date>',
      description: 'first UTC date (YYYY-MM-DD); default: the first one with raw segments',
    },
    { name: 'to', placeholder: '<date>', description: 'last date; default: the last one with raw segments' },
    {
      name: 'without-damaged',
      description:
        'derive dates without their damaged and missing segments; damaged ones are renamed to <name>.damaged',
    },
    { name: 'dry-run', description: 'list the files that would change, and write nothing' },
  ]),
]

const HELP = `Usage: bookcast rebuild --lake <dir> [--source <exchange>] [--from <date>] [--to <date>] [options]

Derives order-book files (lob/) and trades files (trades/) again from the raw segments (raw/) of a lake. Without dates, it
derives dates that an earlier version of the program derived, dates with segments that are not folded yet, and dates
without a manifest or fold state. With --from or --to, it derives every date of the range. If the books at the end of a
date change, the next date is derived too. Files whose content does not change keep their bytes and times. Each date is
published as a whole.

A sealed date, whose raw segments were removed, stays as it is. Use --without-damaged with --from and --to: without dates,
a date whose files are up to date is skipped.

${describeOptions(OPTIONS)}

Exit codes: 0 done, 1 failed or interrupted (dates that were listed before are done), 2 wrong usage.
`

type Settings = Pick<RebuildOptions, 'lake' | 'from' | 'to' | 'isDryRun' | 'withoutDamaged'>

export const rebuildCommand = optionCommand(OPTIONS, HELP, async (options, { stdout, stderr, signal }) => {
  const settings = readSettings(options)
  const { lake, isDryRun } = settings
  const named = options.get('source')
  const asked = named === undefined ? undefined : choiceOption(named, lobSources())
  const view = new ImportProgressView(stderr)
  const counts = { changed: 0, unchanged: 0, dates: 0 }
  try {
    await mustBeLake(options.demand('lake'))
    for (const source of asked === undefined ? await rawSources(lake) : [asked]) {
      const rebuild: RebuildOptions = {
        ...settings,
        source,
        folding: foldInThread,
        listeners: view,
        signal,
      }
      const { dates, sealed } = await rebuildPlan(rebuild)
      for (const date of sealed) stdout.write(`${source} ${date} is sealed and stays as it is\n`)
      for await (const one of rebuildDates(rebuild, dates)) {
        view.stop()
        stdout.write(dateText(one, settings, counts))
      }
    }
  } catch (error) {
    view.stop()
    const reason = describeLakeWriteError(error, lake) ?? messageOf(error)
    stderr.write(`bookcast rebuild: ${signal.aborted ? 'interrupted' : reason}\n`)
    return 1
  }
  view.stop()
  const { changed, unchanged, dates } = counts
  stdout.write(
    `${fileCount(changed)} ${isDryRun ? 'would change' : 'changed'}, ${fileCount(unchanged)} unchanged, in ${dates} ` +
      `date${dates === 1 ? '' : 's'}\n`,
  )
  return 0
})

function readSettings(options: ParsedOptions): Settings {
  const [from, to] = [dateOption(options.get('from')), dateOption(options.get('to'))]
  if (from !== undefined && to !== undefined && from > to)
    throw new UsageError(`--from (${from}) must not be after --to (${to})`)
  return {
    lake: options.demand('lake').text,
    from,
    to,
    isDryRun: options.has('dry-run'),
    withoutDamaged: options.has('without-damaged'),
  }
}

async function rawSources(lake: string): Promise<LobSource[]> {
  const sources: LobSource[] = []
  for (const source of lobSources()) if ((await rawDates(lake, source)).length > 0) sources.push(source)
  return sources
}

function dateText(
  { files, trades, leftOut }: RebuiltDate,
  { lake, isDryRun }: Settings,
  counts: { changed: number; unchanged: number; dates: number },
): string {
  const written = [...files, ...trades]
  const changed = written.filter(({ status }) => status !== 'unchanged')
  counts.dates += new Set(written.map(({ date }) => date)).size
  counts.changed += changed.length
  counts.unchanged += written.length - changed.length
  const verb = isDryRun ? 'would be ' : ''
  return [
    ...leftOut.map((key) => `left out: ${key}\n`),
    ...changed.map(({ path, status, rows }) => `${verb}${status} ${relative(lake, path)}: ${rows} rows\n`),
  ].join('')
}

function fileCount(count: number): string {
  return `${count} file${count === 1 ? '' : 's'}`
}
