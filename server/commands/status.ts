// `bookcast status`: a table of the sources: how current each is, how much it has brought, what is missing or failing.

import { SYSTEM_CLOCK } from '../ingest/clock.ts'
import { readSourceStatus, type SourceStatus } from '../ingest/source-status.ts'
import type { Command } from './command.ts'
import { describeOptions, parseOptions } from './options.ts'
import { openMigratedStore, readStoreOptions, STORE_OPTIONS } from './store-options.ts'

const HELP = `Usage: bookcast status [options]

Prints a table of the sources of data. "lag" is the time since the last success of the source's slowest part, "gaps" the
holes between the windows of time that were fetched completely, "failing" the parts whose last run failed.

Options:
${describeOptions(STORE_OPTIONS)}
  -h, --help                  this text
`

const HEADINGS = ['source', 'parts', 'rows', 'last success', 'lag', 'gaps', 'failing'] as const

export const statusCommand: Command = async (args, { env, stdout }) => {
  const options = parseOptions(args, env, STORE_OPTIONS)
  if (options.help) {
    stdout.write(HELP)
    return 0
  }
  const store = await openMigratedStore(readStoreOptions(options))
  try {
    stdout.write(statusTable(await readSourceStatus(store.postgres, SYSTEM_CLOCK.nowMs())))
    return 0
  } finally {
    await store.close()
  }
}

function statusTable(sources: readonly SourceStatus[]): string {
  const rows = [HEADINGS, ...sources.map(cellsOf)]
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const failures = sources
    .filter(({ lastFailure }) => lastFailure !== null)
    .map(({ source, lastFailure }) => `${source}: ${lastFailure}`)
  return `${[...lines, ...failures].join('\n')}\n`
}

function cellsOf(status: SourceStatus): readonly string[] {
  const { lastSuccessAtMs, lagMs } = status
  return [
    status.source,
    String(status.scopeCount),
    String(status.rowCount),
    lastSuccessAtMs === null ? 'never' : new Date(lastSuccessAtMs).toISOString().slice(0, 19) + 'Z',
    lagMs === null ? '-' : duration(lagMs),
    String(status.gapCount),
    String(status.failingCount),
  ]
}

/** The two greatest units: `3 h 5 min`. */
function duration(ms: number): string {
  const seconds = Math.max(Math.round(ms / 1000), 0)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}
