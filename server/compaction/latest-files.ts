// The lake's files of records against the manifest, which all collectors of a store share: where another one has gone on from
// a file, the lake's own can neither be compacted nor pushed any more, and its successor is fetched from object storage.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { readPartitions } from '../storage/manifest-store.ts'
import type { CompactionOptions } from './compaction-options.ts'
import { RECORD_TABLES } from './record-table.ts'

const EVER = { fromMs: 0, toMs: Date.UTC(9999, 0) } as const

/** Whether a file is of an earlier revision. No: it is not there, or cannot be read, which is told when it must be. */
export async function isOutdated(path: string, revision: bigint): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile() !== true) return false
  const facts = await lakeFileFacts(path)
  return facts !== undefined && facts.revision < revision
}

/** 0 where none is known. */
export function highestOf(...revisions: readonly (bigint | undefined)[]): bigint {
  return revisions.reduce<bigint>((highest, each = 0n) => (each > highest ? each : highest), 0n)
}

export class LatestFiles {
  /** By path, of the files that were looked at: a revision that the lake has. */
  readonly #known = new Map<string, bigint>()

  /**
   * Fetches the successors of the files that are in the lake, also of those that no row is added to. Returns how many came;
   * one that does not come is tried again with the next call.
   */
  async fetch({ postgres, lake, fetchFile, signal }: CompactionOptions): Promise<number> {
    if (fetchFile === undefined) return 0
    let count = 0
    for (const { dataset } of RECORD_TABLES) {
      for (const { path: key, revision } of await readPartitions(postgres, {
        dataset,
        scopes: null,
        ...EVER,
      })) {
        if ((this.#known.get(key) ?? -1n) >= revision) continue
        signal?.throwIfAborted()
        const path = join(lake, ...key.split('/'))
        if (await isOutdated(path, revision)) {
          // What is wrong with object storage is told by the push.
          await fetchFile({ key, revision }, signal).catch(() => signal?.throwIfAborted())
          if (await isOutdated(path, revision)) continue
          count += 1
        }
        this.#known.set(key, revision)
      }
    }
    return count
  }
}
