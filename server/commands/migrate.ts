// `bookcast migrate`: the command line of server/sync/lake-migration.ts.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type OldFile } from '../lake/old-layout.ts'
import { describeOptions, type OptionDeclaration } from '../options/options.ts'
import { type MigrationOptions, migrateBucket, migrateDirectory } from '../sync/lake-migration.ts'
import { DataDirectoryLock, DataDirectoryLocked } from '../storage/data-directory-lock.ts'
import { S3Store } from '../sync/s3-store.ts'
import { readPlace, S3_OPTIONS } from '../sync/sync-options.ts'
import { parsePlace } from '../sync/sync-place.ts'
import { asLakeWriteError } from '../lake/lake-write-error.ts'
import { optionCommand } from './option-command.ts'
import { mustBeDirectory } from './directories.ts'

const OPTIONS: readonly OptionDeclaration[] = [
  { name: 'lake', placeholder: '<place>', description: 's3://bucket/prefix or a directory; required' },
  ...S3_OPTIONS,
  { name: 'region', placeholder: '<name>', description: "the bucket's region", env: 'AWS_REGION' },
]

const HELP = `Usage: bookcast migrate --lake <place> [options]

Renames the files of a lake of version 0.1 to today's layout: date=2026-07-01.parquet becomes date=2026-07-01/lob.parquet, and
month=2026-07.parquet and year=2026.parquet likewise. Stop every process that writes to the lake first. Then migrate object storage
and each lake. Run one migration of a bucket at a time: nothing locks a bucket, and some S3 services do not copy an object
atomically. In object storage the service copies each object, and the command checks the copy before it removes the old object. If
a run is killed, the next one completes it. A lake that already has today's layout is not changed.

${describeOptions(OPTIONS)}

Exit codes: 0 done, 1 some files stay (each is named), 2 wrong usage.
`

export const migrateCommand = optionCommand(OPTIONS, HELP, async (options, { stdout, stderr, signal }) => {
  const lake = options.demand('lake')
  const settings = { ...readPlace(lake, options), region: options.get('region')?.text }
  const place = parsePlace(lake.text)
  let [movedCount, conflictCount] = [0, 0]
  const migration: MigrationOptions = {
    signal,
    onMoved: () => (movedCount += 1),
    onConflict: ({ key, newKey }: OldFile) => {
      conflictCount += 1
      stderr.write(`stays: ${key}: ${newKey} has other bytes; remove the one that is wrong\n`)
    },
  }
  if (place?.kind === 's3') {
    const store = new S3Store({ ...place, ...settings })
    await migrateBucket(store, migration).finally(() => store.close())
  } else {
    await mustBeDirectory(lake)
    await alone(lake.text, signal, (stopping) =>
      migrateDirectory(lake.text, { ...migration, signal: stopping }),
    ).catch((error: unknown) => {
      throw asLakeWriteError(error, lake.text)
    })
  }
  stdout.write(`${movedCount} files renamed, ${conflictCount} stay\n`)
  return conflictCount === 0 ? 0 : 1
})

/** Runs a migration under a lock: two at once would each miss files that the other has renamed. */
async function alone(
  lake: string,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  // This directory has the journals, which are migrated, too. It stays afterwards.
  const directory = join(lake, '.sync')
  await mkdir(directory, { recursive: true })
  const lost = new AbortController()
  const lock = await DataDirectoryLock.acquire(directory, join(directory, 'none.sock'), (error) =>
    lost.abort(error),
  ).catch((error: unknown) => {
    if (!(error instanceof DataDirectoryLocked)) throw error
    throw new Error(
      `${lake} is being migrated by process ${error.pid} on ${error.host}: wait until that ends`,
    )
  })
  try {
    await work(AbortSignal.any([lost.signal, signal]))
  } finally {
    await lock.release()
  }
}
