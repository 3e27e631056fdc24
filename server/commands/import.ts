// `bookcast import`: the command line of server/import. It reads options and environment, shows progress, and prints a summary.

import { setFlagsFromString } from 'node:v8'
import { messageOf } from '../../shared/error-message.ts'
import { seriesNameProblem } from '../../shared/series-name.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import { UnreadableInputError } from '../import/import-input.ts'
import { SEQUENCE_TRUSTS } from '../feed/feed-reading.ts'
import { PublishedInPartError } from '../fold/fold-raw-dates.ts'
import { importRecordings } from '../import/recording-import.ts'
import type { ImportResult } from '../import/recording-import.ts'
import { describeLakeWriteError } from '../lake/lake-write-error.ts'
import { choiceOption, type ParsedOptions } from '../options/options.ts'
import { UsageError } from '../options/usage-error.ts'
import { refuseOldLayout } from '../lake/old-layout.ts'
import type { CommandIo } from './command.ts'
import { IMPORT_HELP, IMPORT_OPTIONS } from './import-help.ts'
import { ImportProgressView } from './import-progress.ts'
import { checkReportPath, writeImportReport } from './import-report-file.ts'
import { importSummary } from './import-summary.ts'
import { optionCommand } from './option-command.ts'

/** The number of files that the message of a partly published import names. */
const PATHS_SHOWN_MAX = 5

type Settings = ReturnType<typeof readSettings>

const takesFiles = true
export const importCommand = optionCommand(IMPORT_OPTIONS, IMPORT_HELP, run, { takesFiles })

async function run(options: ParsedOptions, io: CommandIo): Promise<number> {
  const settings = readSettings(options, io)
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
    'run the same import again to complete it'
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

function readSettings(options: ParsedOptions, { stdin }: CommandIo) {
  const source = choiceOption(options.demand('source'), lobSources())
  const series = options.get('series')
  const problem = series === undefined ? undefined : seriesNameProblem(series.text)
  if (problem !== undefined)
    throw new UsageError(`${series?.origin} takes a series' name; "${series?.text}" ${problem}`)
  const lake = options.demand('lake').text
  if (options.files.length === 0 && stdin.isTTY) {
    throw new UsageError('no file is given, and stdin is a terminal')
  }
  return {
    source,
    lake,
    series: series?.text,
    paths: options.files,
    skipBad: options.has('skip-bad'),
    replace: options.has('replace'),
    keepsRaw: !options.has('no-keep-raw'),
    sequence: choiceOption(options.demand('sequence'), SEQUENCE_TRUSTS),
    /** The path of the JSON report. */
    report: options.get('report')?.text,
    useYesPrice: options.has('use-yes-price'),
  }
}
