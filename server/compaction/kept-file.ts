// A file of the lake that gives way to a later one of object storage, while nothing tells that the one was made from the
// other: it is kept beside it, hidden, until the partition's next file has the rows of both.

import type { Stats } from 'node:fs'
import { link, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isErrno } from '../../shared/errno.ts'

function keptPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.kept`)
}

/** Keeps the file while `replace` may put another in its place. One that is kept already stays: its rows are in no file yet. */
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

/** Where the kept file is, if there is one and the present file is another. */
export async function keptBeside(path: string): Promise<string | undefined> {
  const [kept, present] = [await inodeOf(keptPath(path)), await inodeOf(path)]
  return kept === undefined || kept === present ? undefined : keptPath(path)
}

/** The partition's file has its rows, or is the very same. */
export async function forgetKept(path: string): Promise<void> {
  await rm(keptPath(path), { force: true })
}

async function inodeOf(path: string): Promise<Stats['ino'] | undefined> {
  return await stat(path).then(
    ({ ino }) => ino,
    () => undefined,
  )
}
