// Compares the lake's record files with the manifest, which all collectors of a store share. If another collector has replaced a
// file, the lake's own can no longer be compacted or pushed, and its successor is fetched from object storage.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { readPartitions } from '../storage/manifest-store.ts'
import type { CompactionOptions } from './compaction-options.ts'
import { RECORD_TABLES } from './record-table.ts'

const EVER = { fromMs: 0, toMs: Date.UTC(9999, 0) } as const

/** Whether a file is of an earlier revision. False if it is missing or cannot be read, which is reported elsewhere. */
export async function isOutdated(path: string, revision: bigint): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile() !== true) return false
  const facts = await lakeFileFacts(path)
  return facts !== undefined && facts.revision < revision
}

/** 0 if none is known. */
export function highestOf(...revisions: readonly (bigint | undefined)[]): bigint {
  return revisions.reduce<bigint>((highest, each = 0n) => (each > highest ? each : highest), 0n)
}

/**
 * Fetches the successors of the lake's files, including those that get no new rows. Returns how many were fetched; a failed one is
 * retried with the next call.
 * @param known by path, of the files checked so far: a revision that the lake has
 */
export async function fetchLatestFiles(
  { postgres, lake, fetchFile, signal }: CompactionOptions,
  known: Map<string, bigint>,
): Promise<number> {
  if (fetchFile === undefined) return 0
  let count = 0
  for (const { dataset } of RECORD_TABLES) {
    const partitions = await readPartitions(postgres, { dataset, scopes: null, ...EVER })
    for (const { path: key, revision } of partitions) {
      if ((known.get(key) ?? -1n) >= revision) continue
      signal?.throwIfAborted()
      const path = join(lake, ...key.split('/'))
      if (await isOutdated(path, revision)) {
        // The push reports errors of object storage.
        await fetchFile({ key, revision }, signal).catch(() => signal?.throwIfAborted())
        if (await isOutdated(path, revision)) continue
        count += 1
      }
      known.set(key, revision)
    }
  }
  return count
}
