// An empty directory for one test, and what lies in it afterwards.

import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, after, before } from 'node:test'

/** A server that is still to be closed may write the list of versions at this moment. */
const REMOVAL = { recursive: true, force: true, maxRetries: 5 } as const

/** What is still to end before a test's directories go. */
const writers = new WeakMap<TestContext, (() => Promise<unknown>)[]>()

/** A fresh directory that is removed after the test. What writes there to the end is given to `endAfter`. */
export async function temporaryDirectory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
  t.after(async () => {
    await endWriters(t)
    await rm(path, REMOVAL)
  })
  return path
}

/** Ends what writes into directories of the test, before these go: hooks run in the order in which they were set. */
export function endAfter(t: TestContext, end: () => Promise<unknown>): void {
  writers.set(t, [...(writers.get(t) ?? []), end])
  t.after(() => endWriters(t))
}

async function endWriters(t: TestContext): Promise<void> {
  const ends = writers.get(t) ?? []
  writers.delete(t)
  for (const end of ends) await end()
}

/** A lake that `write` makes once and that the tests of this file only read. Call it at top level. */
export function lakeOfThisFile(write: (lake: string) => Promise<unknown>): { readonly path: string } {
  let path = ''
  before(async () => {
    path = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
    await write(path)
  })
  after(() => rm(path, REMOVAL))
  return {
    get path() {
      return path
    },
  }
}

/** Every entry below `directory` (directories too), relative and sorted; empty when there is none. */
export async function entriesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true }).catch(() => [])
  return entries.toSorted((a, b) => (a < b ? -1 : 1))
}
