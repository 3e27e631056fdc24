// `bookcast import`: the command line around server/import. It reads options and environment, shows progress, and prints
// what became of the recording.

import { parseArgs } from 'node:util'
import { LOB_SOURCES, isSeriesName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lake-layout.ts'
import { importRecordings } from '../import/recording-import.ts'
import type { ImportOptions } from '../import/recording-import.ts'
import { UsageError } from './command.ts'
import type { Command, CommandIo } from './command.ts'
import { IMPORT_HELP } from './import-help.ts'
import { ImportProgressView } from './import-progress.ts'
import { importSummary } from './import-summary.ts'

type Settings = Pick<
  ImportOptions,
  'source' | 'lake' | 'paths' | 'series' | 'skipBad' | 'replace' | 'useYesPrice'
>

export const importCommand: Command = async (args, io) => {
  const settings = readSettings(args, io)
  if (settings === 'help') {
    io.stdout.write(IMPORT_HELP)
    return 0
  }
  return await run(settings, io, io.signal ?? new AbortController().signal)
}

async function run(settings: Settings, io: CommandIo, signal: AbortSignal): Promise<number> {
  const view = new ImportProgressView(io.stderr)
  const startMs = performance.now()
  try {
    const result = await importRecordings({ ...settings, stdin: io.stdin, signal, progress: view })
    view.stop()
    io.stdout.write(importSummary(result, settings.lake, performance.now() - startMs))
    if (result.files.length > 0) return 0
    io.stderr.write('bookcast import: there is no order-book message in the input\n')
    return 1
  } catch (error) {
    view.stop()
    const nothing = 'nothing was written to the lake'
    const text = signal.aborted ? `interrupted; ${nothing}` : `${messageOf(error)}\n(${nothing})`
    io.stderr.write(`bookcast import: ${text}\n`)
    return 1
  }
}

function readSettings(args: readonly string[], { env, stdin }: CommandIo): Settings | 'help' {
  const { values, positionals } = parseOrRefuse(args)
  if (values.help === true) return 'help'
  const series = values.series ?? textOf(env, 'BOOKCAST_IMPORT_SERIES')
  if (series !== undefined && !isSeriesName(series)) {
    throw new UsageError(`--series takes letters, digits, dot, dash and underscore, not "${series}"`)
  }
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
    useYesPrice: values['use-yes-price'] ?? flagOf(env, 'BOOKCAST_USE_YES_PRICE'),
  }
}

// Not parseOptions: this command has flags and takes files.
function parseOrRefuse(args: readonly string[]): ReturnType<typeof parse> {
  try {
    return parse(args)
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      source: { type: 'string' },
      lake: { type: 'string' },
      series: { type: 'string' },
      'skip-bad': { type: 'boolean' },
      replace: { type: 'boolean' },
      'use-yes-price': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
}

function sourceOf(text: string | undefined): LobSource {
  const source = LOB_SOURCES.find((name) => name === text)
  if (source !== undefined) return source
  const choice = LOB_SOURCES.join(' or ')
  throw new UsageError(
    text === undefined
      ? `--source ${choice} is missing (or BOOKCAST_IMPORT_SOURCE)`
      : `--source takes ${choice}, not "${text}"`,
  )
}

// An empty variable counts as none: that is how shells and compose files switch one off.
function textOf(env: CommandIo['env'], name: string): string | undefined {
  return env[name] === '' ? undefined : env[name]
}

function flagOf(env: CommandIo['env'], name: string): boolean {
  const text = textOf(env, name)?.toLowerCase()
  if (text === undefined || text === '0' || text === 'false') return false
  if (text === '1' || text === 'true') return true
  throw new UsageError(`${name} takes 1, true, 0 or false, not "${text}"`)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
