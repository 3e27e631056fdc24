// An empty directory for one test, and its content afterwards.

import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, after, before } from 'node:test'

/** A server that is not closed yet may be writing the list of versions. */
const REMOVAL = { recursive: true, force: true, maxRetries: 5 } as const

/** Functions to call before a test's directories are removed. */
const writers = new WeakMap<TestContext, (() => Promise<unknown>)[]>()

/** A fresh directory that is removed after the test. Use `endAfter` for anything that still writes there. */
export async function temporaryDirectory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
  t.after(async () => {
    await endWriters(t)
    await rm(path, REMOVAL)
  })
  return path
}

/** Ends writers of the test's directories before these are removed: hooks run in the order in which they were set. */
export function endAfter(t: TestContext, end: () => Promise<unknown>): void {
  writers.set(t, [...(writers.get(t) ?? []), end])
  t.after(() => endWriters(t))
}

async function endWriters(t: TestContext): Promise<void> {
  const ends = writers.get(t) ?? []
  writers.delete(t)
  for (const end of ends) await end()
}

/** A lake that `write` makes once and the tests of this file only read. Call it at top level. */
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

/** Every entry below `directory` (including directories), relative and sorted; empty if there is none. */
export async function entriesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true }).catch(() => [])
  return entries.toSorted((a, b) => (a < b ? -1 : 1))
}
