// The lake files of parts. Planning records their digests; making a part checks that they are unchanged.

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { identityOf } from '../../shared/file-identity.ts'
import type { SourceFile } from './export-plan.ts'

const READ_BYTES = 1024 * 1024

/** Reads a file for its digest. */
export async function sourceFile(lake: string, name: string): Promise<SourceFile> {
  const hash = createHash('sha256')
  const stream = createReadStream(pathOf(lake, name), { highWaterMark: READ_BYTES })
  for await (const chunk of stream) hash.update(chunk as Buffer)
  return { path: name, bytes: stream.bytesRead, sha256: hash.digest('hex') }
}

/**
 * Checks files against a plan.
 * @returns a check to call after use: it rejects if a file was replaced meanwhile
 * @throws {Error} that names the changed file
 */
export async function checkFiles(lake: string, files: readonly SourceFile[]): Promise<() => Promise<void>> {
  const identity = async (name: string): Promise<string> =>
    identityOf(await stat(pathOf(lake, name), { bigint: true }))
  const identities: string[] = []
  for (const { path, sha256 } of files) {
    identities.push(await identity(path).catch(() => changed(path)))
    if ((await sourceFile(lake, path)).sha256 !== sha256) changed(path)
  }
  return async () => {
    for (const [index, { path }] of files.entries())
      if ((await identity(path).catch(() => '')) !== identities[index]) changed(path)
  }
}

function pathOf(lake: string, name: string): string {
  return join(lake, ...name.split('/'))
}

function changed(name: string): never {
  throw new Error(`the lake file ${name} changed or went away since the plan was made; plan again`)
}
