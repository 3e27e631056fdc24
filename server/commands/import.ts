// `bookcast import`: the command line of server/import. It reads options and environment, shows progress, and prints a summary.

import { setFlagsFromString } from 'node:v8'
import { seriesNameProblem } from '../../shared/series-name.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { UnreadableInputError } from '../import/import-input.ts'
import { SEQUENCE_TRUSTS } from '../feed/feed-reading.ts'
import type { SequenceTrust } from '../feed/feed-reading.ts'
import { PublishedInPartError } from '../fold/fold-raw-dates.ts'
import { importRecordings } from '../import/recording-import.ts'
import type { ImportOptions, ImportResult } from '../import/recording-import.ts'
import { describeLakeWriteError } from '../lake/lake-write-error.ts'
import { flagOption, parseArguments } from '../options/options.ts'
import { UsageError } from '../options/usage-error.ts'
import { refuseOldLayout } from '../lake/old-layout.ts'
import type { Command, CommandIo } from './command.ts'
import { IMPORT_HELP } from './import-help.ts'
import { ImportProgressView } from './import-progress.ts'
import { checkReportPath, writeImportReport } from './import-report-file.ts'
import { importSummary } from './import-summary.ts'
import { showHelp } from './terminal.ts'

/** Files that are named when an import fails while it publishes. */
const PATHS_SHOWN_MAX = 5

interface Settings extends Pick<
  ImportOptions,
  'source' | 'lake' | 'paths' | 'series' | 'skipBad' | 'replace' | 'keepsRaw' | 'useYesPrice'
> {
  readonly sequence: SequenceTrust
  /** Where the report goes as JSON. */
  readonly report: string | undefined
}

export const importCommand: Command = async (args, io) => {
  const settings = readSettings(args, io)
  if (settings === 'help') return showHelp(IMPORT_HELP, io.stdout)
  return await run(settings, io)
}

async function run(settings: Settings, io: CommandIo): Promise<number> {
  await refuseOldLayout(settings.lake)
  // The encoder of order-book files is WebAssembly. Optimizing its code takes an import longer than the encoding, and 15 MB.
  setFlagsFromString('--liftoff-only')
  const view = new ImportProgressView(io.stderr)
  const startMs = performance.now()
  let result: ImportResult
  try {
    if (settings.report !== undefined) await checkReportPath(settings.report)
    result = await importRecordings({
      ...settings,
      stdin: io.stdin,
      signal: io.signal,
      progress: view,
    })
  } catch (error) {
    view.stop()
    const written = writtenText(error)
    const isOfInput = error instanceof UnreadableInputError
    const reason = (isOfInput ? undefined : describeLakeWriteError(error, settings.lake)) ?? messageOf(error)
    const isInterrupted = io.signal.aborted && !(error instanceof PublishedInPartError)
    const text = isInterrupted ? `interrupted; ${written}` : `${reason}\n(${written})`
    io.stderr.write(`bookcast import: ${text}\n`)
    return 1
  }
  view.stop()
  io.stdout.write(importSummary(result, settings, performance.now() - startMs))
  const isReported = await report(result, settings, io)
  if (result.segments.added + result.segments.present > 0) return isReported ? 0 : 1
  io.stderr.write('bookcast import: the input has no message of the exchange\n')
  return 1
}

function writtenText(error: unknown): string {
  if (!(error instanceof PublishedInPartError)) return 'nothing was written to the lake'
  const { paths } = error
  const others = paths.length > PATHS_SHOWN_MAX ? ` and ${paths.length - PATHS_SHOWN_MAX} more` : ''
  return (
    `${paths.slice(0, PATHS_SHOWN_MAX).join(', ')}${others} ${paths.length === 1 ? 'was' : 'were'} written before that; ` +
    'the same import again completes it'
  )
}

async function report(result: ImportResult, settings: Settings, { stderr }: CommandIo): Promise<boolean> {
  if (settings.report === undefined) return true
  try {
    await writeImportReport(result, settings, settings.report)
    return true
  } catch (error) {
    stderr.write(`bookcast import: the report ${settings.report} could not be written: ${messageOf(error)}\n`)
    return false
  }
}

function readSettings(args: readonly string[], { env, stdin }: CommandIo): Settings | 'help' {
  const { values, positionals } = parse(args)
  if (values.help === true) return 'help'
  const series = values.series ?? textOf(env, 'BOOKCAST_IMPORT_SERIES')
  const problem = series === undefined ? undefined : seriesNameProblem(series)
  if (problem !== undefined) throw new UsageError(`--series takes a series' name; "${series}" ${problem}`)
  const source = sourceOf(values.source ?? textOf(env, 'BOOKCAST_IMPORT_SOURCE'))
  const lake = values.lake ?? textOf(env, 'BOOKCAST_LAKE')
  if (lake === undefined || lake === '') throw new UsageError('--lake <dir> is missing (or BOOKCAST_LAKE)')
  if (positionals.length === 0 && stdin.isTTY) {
    throw new UsageError('no file is given, and stdin is a terminal')
  }
  return {
    source,
    lake,
    series,
    paths: positionals,
    skipBad: values['skip-bad'] ?? flagOf(env, 'BOOKCAST_SKIP_BAD'),
    replace: values.replace ?? flagOf(env, 'BOOKCAST_REPLACE'),
    keepsRaw: !(values['no-keep-raw'] ?? flagOf(env, 'BOOKCAST_NO_KEEP_RAW')),
    sequence: sequenceOf(values.sequence ?? textOf(env, 'BOOKCAST_SEQUENCE') ?? 'strict'),
    report: values.report ?? textOf(env, 'BOOKCAST_IMPORT_REPORT'),
    useYesPrice: values['use-yes-price'] ?? flagOf(env, 'BOOKCAST_USE_YES_PRICE'),
  }
}

// Not parseOptions: this command takes files.
function parse(args: readonly string[]) {
  return parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      source: { type: 'string' },
      lake: { type: 'string' },
      series: { type: 'string' },
      'skip-bad': { type: 'boolean' },
      replace: { type: 'boolean' },
      'no-keep-raw': { type: 'boolean' },
      sequence: { type: 'string' },
      report: { type: 'string' },
      'use-yes-price': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
}

function sourceOf(text: string | undefined): LobSource {
  const source = lobSources().find((name) => name === text)
  if (source !== undefined) return source
  const choice = lobSources().join(' or ')
  throw new UsageError(
    text === undefined
      ? `--source ${choice} is missing (or BOOKCAST_IMPORT_SOURCE)`
      : `--source takes ${choice}, not "${text}"`,
  )
}

function sequenceOf(text: string): SequenceTrust {
  const sequence = SEQUENCE_TRUSTS.find((name) => name === text)
  if (sequence !== undefined) return sequence
  throw new UsageError(`--sequence takes ${SEQUENCE_TRUSTS.join(', ')}, not "${text}"`)
}

// An empty variable counts as none: that is how shells and compose files switch one off.
function textOf(env: CommandIo['env'], name: string): string | undefined {
  return env[name] === '' ? undefined : env[name]
}

function flagOf(env: CommandIo['env'], name: string): boolean {
  const text = textOf(env, name)
  return flagOption(text === undefined ? undefined : { text, origin: name })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
