// File-system operations for publishing a lake file.

import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'

const COMPARE_BYTES = 1024 * 1024
const CANNOT_SYNC = new Set(['EISDIR', 'EPERM', 'EINVAL', 'ENOTSUP'])

/** Makes renames in a directory survive a power cut. Windows cannot sync a directory and leaves it to the file system. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path).catch(() => undefined)
  if (directory === undefined) return
  try {
    await directory.sync()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (typeof code !== 'string' || !CANNOT_SYNC.has(code)) throw error
  } finally {
    await directory.close()
  }
}

/** Makes the names of files, and of their directories, survive a power cut. */
export async function syncNames(paths: Iterable<string>): Promise<void> {
  const directories = new Set<string>()
  for (const path of paths) directories.add(dirname(path)).add(dirname(dirname(path)))
  for (const directory of directories) await syncDirectory(directory)
}

/** Whether two files have the same bytes; both must exist. */
export async function haveEqualBytes(pathA: string, pathB: string): Promise<boolean> {
  const [a, b] = [await open(pathA), await open(pathB)]
  try {
    if ((await a.stat()).size !== (await b.stat()).size) return false
    const [bytesA, bytesB] = [Buffer.alloc(COMPARE_BYTES), Buffer.alloc(COMPARE_BYTES)]
    for (let offset = 0; ;) {
      const count = (await a.read(bytesA, 0, COMPARE_BYTES, offset)).bytesRead
      const other = (await b.read(bytesB, 0, COMPARE_BYTES, offset)).bytesRead
      if (count !== other || bytesA.compare(bytesB, 0, count, 0, count) !== 0) return false
      if (count === 0) return true
      offset += count
    }
  } finally {
    await a.close()
    await b.close()
  }
}

/** Writes all of `bytes` at `offset`, in as many calls as needed. */
export async function writeFully(file: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, offset + done)
    done += bytesWritten
  }
}
