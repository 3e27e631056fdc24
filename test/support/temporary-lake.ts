// An empty directory for one test, and what lies in it afterwards.

import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, after, before } from 'node:test'

/** A fresh directory that is removed after the test. */
export async function temporaryDirectory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
  t.after(() => rm(path, { recursive: true, force: true }))
  return path
}

/** A lake that `write` makes once and that the tests of this file only read. Call it at top level. */
export function lakeOfThisFile(write: (lake: string) => Promise<unknown>): { readonly path: string } {
  let path = ''
  before(async () => {
    path = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
    await write(path)
  })
  after(() => rm(path, { recursive: true, force: true }))
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
