// The identity of a file, which distinguishes it from its replacement: a running response breaks off if it changes.

import assert from 'node:assert/strict'
import { linkSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { identityOf } from '../../shared/file-identity.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

test('a file keeps its identity when hard links are added and removed, and gets a new one when it is written or replaced', async (t) => {
  const directory = await temporaryDirectory(t)
  const [path, kept, draft] = ['lob.parquet', 'kept', 'draft'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ]
  const at = (name: string): string => identityOf(statSync(name, { bigint: true }))
  writeFileSync(path, 'first')
  const first = at(path)
  linkSync(path, kept)
  assert.equal(at(path), first)
  writeFileSync(draft, 'other')
  renameSync(draft, path)
  assert.equal(at(kept), first, 'the kept file of a version, whose other name went')
  const second = at(path)
  assert.notEqual(second, first)
  utimesSync(path, 1, 1)
  assert.notEqual(at(path), second)
  rmSync(kept)
})
