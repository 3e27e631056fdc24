// Keeps a lake file that is replaced by a later one from object storage, if nothing shows that the later one contains its rows. It
// is kept beside that file, hidden, until the partition's next file has the rows of both.

import type { Stats } from 'node:fs'
import { link, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isErrno } from '../../shared/errno.ts'

function keptPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.kept`)
}

/** Keeps the file while `replace` may replace it. A file kept earlier stays: its rows are in no other file yet. */
export async function keepingFile(path: string, replace: () => Promise<void>): Promise<void> {
  await link(path, keptPath(path)).catch((error: unknown) => {
    if (!isErrno(error, 'EEXIST')) throw error
  })
  try {
    await replace()
  } finally {
    if ((await keptBeside(path)) === undefined) await forgetKept(path)
  }
}

/** The path of the kept file, if there is one that differs from the present file. */
export async function keptBeside(path: string): Promise<string | undefined> {
  const [kept, present] = [await inodeOf(keptPath(path)), await inodeOf(path)]
  return kept === undefined || kept === present ? undefined : keptPath(path)
}

/** Call it when the partition's file has the kept file's rows, or is the same file. */
export async function forgetKept(path: string): Promise<void> {
  await rm(keptPath(path), { force: true })
}

async function inodeOf(path: string): Promise<Stats['ino'] | undefined> {
  return await stat(path).then(
    ({ ino }) => ino,
    () => undefined,
  )
}
