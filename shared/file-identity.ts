// What a file or directory is told from its successor by.

import type { BigIntStats } from 'node:fs'

/** A file or directory as somebody found it. */
export interface SeenFile {
  readonly path: string
  readonly identity: string
}

/** Changes when a file is replaced or written to, and when something comes into a directory or leaves it. */
export function identityOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs} ${ctimeNs}`
}

/** Like the identity, but it does not change when a hard link to the file comes or goes. */
export function stampOf(stat: BigIntStats): string {
  return stampOfIdentity(identityOf(stat))
}

export function stampOfIdentity(identity: string): string {
  return identity.slice(0, identity.lastIndexOf(' '))
}
