// The files of a version of the lake, as the server gives them to a thread that answers a request for it.

import { join } from 'node:path'

/** The directory below the lake that holds the lists of versions and the kept files. Hidden: nothing else looks into it. */
export const VERSIONS_DIRECTORY = '.versions'

export interface VersionFile {
  /** Its path below the lake, with forward slashes. */
  readonly key: string
  readonly sizeBytes: number
  /** Lower-case hexadecimal. */
  readonly sha256: string
  /** `identityOf` the file that had these bytes. */
  readonly stamp: string
  /** Of records the instant (ms since the epoch) up to which the file held all rows; null where nobody says it. */
  readonly coldToMs: number | null
}

/** Memory that the threads share, so that a request copies no list. */
export interface LakePin {
  readonly version: string
  /** Differs where the same version has other stamps. */
  readonly id: string
  /** UTF-8 JSON of VersionFile[]. */
  readonly files: SharedArrayBuffer
}

/** A lake file of an answer, and its `identityOf`. */
export interface StampedFile {
  readonly key: string
  readonly stamp: string
}

/** Where a file lies that is kept after it was replaced. */
export function keptFilePath(lake: string, sha256: string): string {
  return join(lake, VERSIONS_DIRECTORY, 'files', sha256)
}
