// Detects lakes of version 0.1, whose files have the partition in their name (`date=2026-07-01.parquet`). `bookcast migrate`
// renames them (server/sync/lake-migration.ts); all others refuse such a lake. Only the names that a start reads anyway are read.

import { basename, dirname, join } from 'node:path'
import { migratedKey } from '../../shared/lake-layout.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import { directoryNames } from './series-dates.ts'

/** A file of the old layout, below the lake. */
export interface OldFile {
  readonly key: string
  readonly newKey: string
}

/** Thrown for a lake or a bucket with the old layout. */
export class OldLayoutError extends Error {
  constructor(place: string, key: string) {
    super(`${place} has the layout of version 0.1 (${key}): run "bookcast migrate --lake ${place}" first`)
    this.name = 'OldLayoutError'
  }
}

/** The files of the old layout, grouped by series or station, sorted. */
export async function* oldFiles(lake: string): AsyncGenerator<readonly OldFile[], void, void> {
  const roots = [...lobSources().map((source) => `lob/source=${source}`), 'candles', 'observations']
  for (const root of roots) {
    for (const scope of await directoryNames(join(lake, root))) {
      const names = scope.includes('=') ? await directoryNames(join(lake, root, scope)) : []
      const files = names.flatMap((name) => oldFile(`${root}/${scope}`, name) ?? [])
      if (files.length > 0) yield files
    }
  }
}

/** @throws {OldLayoutError} */
export async function refuseOldLayout(lake: string): Promise<void> {
  for await (const [file] of oldFiles(lake)) throw new OldLayoutError(lake, file!.key)
}

function oldFile(directory: string, name: string): OldFile | undefined {
  // Compaction keeps a file that it has superseded beside the new one: `.month=2026-07.parquet.kept`.
  const kept = /^\.(.+)\.kept$/.exec(name)?.[1]
  const newKey = migratedKey(`${directory}/${kept ?? name}`)
  if (newKey === undefined) return undefined
  const key = `${directory}/${name}`
  return { key, newKey: kept === undefined ? newKey : `${dirname(newKey)}/.${basename(newKey)}.kept` }
}
