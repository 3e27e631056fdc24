// The part file of a date that is being recorded: the bytes of its closed hours, and of the open hour's portions, without a
// footer.

import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { LobSource } from '../../shared/lob-sources.ts'
import { writeFully } from '../lake/durable-file.ts'
import type { LobFileContents } from '../lake/lob-file-contents.ts'
import { PARQUET_MAGIC } from '../lake/lob-footer.ts'
import type { LobRowGroup } from '../lake/lob-row-group.ts'

/** Begins the part file, unless there is one. */
export function createPart(part: string): void {
  if (existsSync(part)) return
  mkdirSync(dirname(part), { recursive: true })
  writeFileSync(`${part}.new`, PARQUET_MAGIC)
  renameSync(`${part}.new`, part)
}

/** A file that rows are added to. */
export interface OpenFile {
  readonly file: FileHandle
  readonly contents: LobFileContents
}

export async function writeGroup({ file, contents }: OpenFile, group: LobRowGroup): Promise<void> {
  const offset = contents.sizeBytes
  await writeFully(file, contents.add(group), offset)
}

export function partPathOf(
  { workDirectory, source }: { readonly workDirectory: string; readonly source: LobSource },
  series: string,
  date: string,
): string {
  return join(workDirectory, 'parts', source, series, `date=${date}.part`)
}
