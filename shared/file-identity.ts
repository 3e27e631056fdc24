// Identifies a file or directory, so that a replacement under the same name is detected.

import type { BigIntStats } from 'node:fs'

/** A file or directory, with its identity at some time. */
export interface SeenFile {
  readonly path: string
  readonly identity: string
}

/**
 * Changes when a file is replaced or written to, and when an entry is added to or removed from a directory. ctime is not part of
 * it, because each hard link to the file changes it: those of kept versions and backups, and the one that a replacement makes.
 */
export function identityOf({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs}`
}
