// Directory trees for synchronization tests: written from a description, and read back as one.

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { entriesBelow } from './temporary-lake.ts'

export type Tree = Readonly<Record<string, string | Buffer>>

/** Writes files like every writer of a lake: under another name first. */
export async function writeTree(root: string, tree: Tree): Promise<void> {
  for (const [key, content] of Object.entries(tree)) {
    const path = join(root, key)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(`${path}.draft`, content)
    await rename(`${path}.draft`, path)
  }
}

/** The parquet files below a directory, except hidden ones, with their contents. */
export async function readTree(root: string): Promise<Record<string, Buffer>> {
  const tree: Record<string, Buffer> = {}
  for (const key of await entriesBelow(root)) {
    const isHidden = key.split('/').some((segment) => segment.startsWith('.'))
    if (!isHidden && key.endsWith('.parquet')) tree[key] = await readFile(join(root, key))
  }
  return tree
}

/** Pseudo-random bytes, determined by the seed. */
export function bytesOf(size: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(size)
  let state = seed
  for (let at = 0; at < size; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    bytes[at] = state >>> 16
  }
  return bytes
}
