// `bookcast status`: the age of each source's data, the state of the recorders, gaps, failures and full disks. It can run
// beside a server: if another process has the embedded store open, it queries the store through that process.

import { join } from 'node:path'
import { pino } from 'pino'
import { StorageWatch, type StorageFigures } from '../health/storage-watch.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { readRecorderStatus } from '../recorder/recorder-status.ts'
import { readSourceStatus } from '../ingest/source-status.ts'
import { newestRowsOf } from '../storage/newest-rows.ts'
import { optionCommand } from './option-command.ts'
import { isDirectory, isStoreThere, mustBeDirectory, noStoreIn } from './directories.ts'
import { describeOptions, type OptionDeclaration, type ParsedOptions } from '../options/options.ts'
import { newestLines, recorderTable, sourceTable, storageLines } from './status-text.ts'
import { readStoreOptions, STORE_OPTIONS, type StorePlace } from '../storage/store-options.ts'
import { openSharedStore } from './open-store.ts'

const OPTIONS: readonly OptionDeclaration[] = [
  ...STORE_OPTIONS,
  { name: 'lake', placeholder: '<dir>', description: 'also show the recorders and disks of this lake' },
  {
    name: 'work',
    placeholder: '<dir>',
    description: "directory of the recorder's work files; default: .recorder in the lake",
    env: 'BOOKCAST_RECORDER_DIR',
  },
]

const HELP = `Usage: bookcast status [options]

Prints a table of the data sources. "lag" is the time since the last success of the source's slowest part, "gaps" counts the
holes between the time windows that were fetched completely, "failing" counts the parts whose last run failed. Then it prints the
newest rows and, with --lake, the recorders, disks, lake and logs. You can run it while a server runs.

${describeOptions(OPTIONS)}
`

const SILENT = pino({ level: 'silent' })

export const statusCommand = optionCommand(OPTIONS, HELP, async (options, { stdout }) => {
  const settings = readStoreOptions(options)
  await mustBeThere(options)
  const lake = options.get('lake')?.text ?? null
  const work = workDirectoryOf(options, lake)
  try {
    stdout.write(await storeLines(settings, work !== null))
  } finally {
    // Show the recorders and disks of this machine even if the store fails.
    if (work !== null) stdout.write(recorderTable(await readRecorderStatus(work), SYSTEM_CLOCK.nowMs()))
    if (lake !== null) stdout.write(storageLines(await lookAtStorage(lake, work, settings)))
  }
  return 0
})

/** @param isOptional whether the store may be missing, as on a machine that only records */
async function storeLines(settings: StorePlace, isOptional: boolean): Promise<string> {
  if (!(await isStoreThere(settings))) {
    if (!isOptional) throw new Error(noStoreIn(settings))
    return `${noStoreIn(settings)}\n`
  }
  const store = await openSharedStore(settings)
  try {
    const nowMs = SYSTEM_CLOCK.nowMs()
    const sources = sourceTable(await readSourceStatus(store.postgres, nowMs))
    return sources + newestLines(await newestRowsOf(store.postgres)(), nowMs)
  } finally {
    await store.close()
  }
}

/** A lake may be missing if there is a work directory: a recorder creates the lake when it first publishes. */
async function mustBeThere(options: ParsedOptions): Promise<void> {
  const [lake, work] = [options.get('lake'), options.get('work')]
  if (lake === undefined || (work !== undefined && (await isDirectory(work.text)))) return
  await mustBeDirectory(lake)
}

function workDirectoryOf(options: ParsedOptions, lake: string | null): string | null {
  return options.get('work')?.text ?? (lake === null ? null : join(lake, '.recorder'))
}

async function lookAtStorage(
  lake: string,
  recorder: string | null,
  { databaseUrl, dataDirectory }: StorePlace,
): Promise<StorageFigures> {
  const data = databaseUrl === null ? dataDirectory : null
  // The watch would log warnings; the figures already show them.
  const watch = new StorageWatch({ lake, recorder, data, logger: SILENT })
  return await watch.look()
}
