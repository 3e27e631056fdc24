// `bookcast import`: the command line around server/import. It reads options and environment, shows progress, and prints
// what became of the recording. Exit codes: 0 done, 1 failed, 2 wrong usage.

import type { Readable, Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import { LOB_SOURCES, isSeriesName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lake-layout.ts'
import { importRecordings } from '../import/recording-import.ts'
import type { ImportOptions } from '../import/recording-import.ts'
import { IMPORT_HELP } from './import-help.ts'
import { ImportProgressView } from './import-progress.ts'
import { importSummary } from './import-summary.ts'

export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdout: Writable
  readonly stderr: Writable & { readonly isTTY?: boolean }
  readonly stdin: Readable & { readonly isTTY?: boolean }
  /** Stops the command; without it SIGINT and SIGTERM do. */
  readonly signal?: AbortSignal
}

class UsageError extends Error {}

type Settings = Pick<
  ImportOptions,
  'source' | 'lake' | 'paths' | 'series' | 'skipBad' | 'replace' | 'useYesPrice'
>

/** Runs the command and returns its exit code. Everything is said on the two outputs; nothing is thrown. */
export async function importCommand(args: readonly string[], io: CommandIo): Promise<number> {
  let settings: Settings | 'help'
  try {
    settings = readSettings(args, io)
  } catch (error) {
    io.stderr.write(`bookcast import: ${messageOf(error)}\nTry: bookcast import --help\n`)
    return 2
  }
  if (settings === 'help') {
    io.stdout.write(IMPORT_HELP)
    return 0
  }
  return await withSignal(io.signal, async (signal) => await run(settings, io, signal))
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

async function withSignal(
  given: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  if (given !== undefined) return await work(given)
  const controller = new AbortController()
  const stop = (): void => controller.abort(new Error('interrupted'))
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    return await work(controller.signal)
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}

function readSettings(args: readonly string[], { env, stdin }: CommandIo): Settings | 'help' {
  const { values, positionals } = parseArgs({
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
  if (values.help === true) return 'help'
  const series = values.series ?? textOf(env, 'BOOKCAST_IMPORT_SERIES')
  if (series !== undefined && !isSeriesName(series)) {
    throw new UsageError(`--series takes letters, digits, dot, dash and underscore, not "${series}"`)
  }
  const source = sourceOf(values.source ?? textOf(env, 'BOOKCAST_IMPORT_SOURCE'))
  const lake = values.lake ?? textOf(env, 'BOOKCAST_LAKE')
  if (lake === undefined || lake === '') throw new UsageError('--lake <dir> is missing (or BOOKCAST_LAKE)')
  if (positionals.length === 0 && stdin.isTTY === true) {
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
