// What a file or directory is told from its successor by.

import type { BigIntStats } from 'node:fs'

/** A file or directory as somebody found it. */
export interface SeenFile {
  readonly path: string
  readonly identity: string
}

/**
 * Changes when a file is replaced or written to, and when something comes into a directory or leaves it. It is without ctime, which
 * changes with each hard link of the same bytes: those of kept versions and backups, and the one that a replacement takes.
 */
export function identityOf({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs}`
}
