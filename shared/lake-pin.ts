// The files of a version of the lake, as the server passes them to a thread that answers a pinned request.

import { join } from 'node:path'

/** The directory of the lake with the lists of versions and the kept files. It is hidden, so no other code reads it. */
export const VERSIONS_DIRECTORY = '.versions'

export interface VersionFile {
  /** The path below the lake, with forward slashes. */
  readonly key: string
  readonly sizeBytes: number
  /** Lower-case hexadecimal. */
  readonly sha256: string
  /** `identityOf` the file when it had these bytes. */
  readonly stamp: string
  /** For records: the instant (ms since the epoch) up to which the file had all rows; null if unknown. */
  readonly coldToMs: number | null
}

/** The list of a version's files, in memory that threads share, so that no request copies it. */
export interface LakePin {
  readonly version: string
  /** Changes if the same version gets other stamps. */
  readonly id: string
  /** UTF-8 JSON of VersionFile[]. */
  readonly files: SharedArrayBuffer
}

/** A lake file of an answer, and its `identityOf`. */
export interface StampedFile {
  readonly key: string
  readonly stamp: string
}

/** The path of a file that is kept after it was replaced. */
export function keptFilePath(lake: string, sha256: string): string {
  return join(lake, VERSIONS_DIRECTORY, 'files', sha256)
}
