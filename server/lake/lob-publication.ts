// Compares finished lob.v1 files with those in the lake, and publishes them.

import { existsSync } from 'node:fs'
import { haveEqualBytes } from './durable-file.ts'
import { lacksHoursAlone } from './lob-file-reading.ts'
import type { LobDate } from './lob-footer.ts'
import type { FoldedFile } from './series-fold.ts'
import { publishPartition } from './temporary-file.ts'

export interface WrittenLobFile extends LobDate {
  readonly path: string
  /** `unchanged`: the lake already has the same rows. */
  readonly status: 'written' | 'replaced' | 'unchanged'
  readonly rows: number
  readonly markets: number
  readonly gaps: number
}

/** What publishing will do with each file, in the order of `files`. */
export async function describeFiles(files: readonly FoldedFile[]): Promise<WrittenLobFile[]> {
  const written: WrittenLobFile[] = []
  for (const { writer, series, date, coversFrom, coversTo, figures } of files) {
    const { path, temporaryPath } = writer
    const isThere = existsSync(path)
    const isUnchanged = isThere && (await haveEqualRows(path, temporaryPath))
    const status = isUnchanged ? 'unchanged' : isThere ? 'replaced' : 'written'
    const { rows, gaps } = figures
    const markets = figures.markets.length
    written.push({ path, series, date, status, rows, markets, gaps, coversFrom, coversTo })
  }
  return written
}

/** A file of an earlier version that lacks only the figures of hours is not written again. */
async function haveEqualRows(path: string, next: string): Promise<boolean> {
  return (await haveEqualBytes(path, next)) || (await lacksHoursAlone(path, next))
}

/** Renames each file that differs from the lake's, and calls `onPublished`. Nothing is awaited. */
export function publishFiles(
  files: readonly FoldedFile[],
  written: readonly WrittenLobFile[],
  onPublished?: (path: string) => void,
): void {
  for (const [index, { writer }] of files.entries()) {
    if (written[index]!.status === 'unchanged') continue
    publishPartition(writer.temporaryPath, writer.path)
    onPublished?.(writer.path)
  }
}
