// The lake files of parts. Planning records their digests; making a part checks that they are unchanged.

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { identityOf } from '../../shared/file-identity.ts'
import type { SourceFile } from './export-plan.ts'

const READ_BYTES = 1024 * 1024

export class SourceFiles {
  readonly #lake: string
  /** Files read before: neighbouring parts share files. */
  readonly #known = new Map<string, { readonly identity: string; readonly file: SourceFile }>()

  constructor(lake: string) {
    this.#lake = lake
  }

  /** The digest of a file. Reads the file unless it is unchanged since the last call. */
  async of(name: string): Promise<SourceFile> {
    const identity = await this.#identity(name)
    const known = this.#known.get(name)
    if (known?.identity === identity) return known.file
    const hash = createHash('sha256')
    let bytes = 0
    for await (const chunk of createReadStream(this.#path(name), { highWaterMark: READ_BYTES })) {
      hash.update(chunk as Buffer)
      bytes += (chunk as Buffer).length
    }
    const file = { path: name, bytes, sha256: hash.digest('hex') }
    this.#known.set(name, { identity, file })
    return file
  }

  /**
   * Checks files against a plan.
   * @returns a check to call after use: it rejects if a file was replaced meanwhile
   * @throws {Error} that names the changed file
   */
  async check(files: readonly SourceFile[]): Promise<() => Promise<void>> {
    const identities: string[] = []
    for (const { path, sha256 } of files) {
      identities.push(await this.#identity(path).catch(() => changed(path)))
      if ((await this.of(path)).sha256 !== sha256) changed(path)
    }
    return async () => {
      for (const [index, { path }] of files.entries())
        if ((await this.#identity(path).catch(() => '')) !== identities[index]) changed(path)
    }
  }

  async #identity(name: string): Promise<string> {
    return identityOf(await stat(this.#path(name), { bigint: true }))
  }

  #path(name: string): string {
    return join(this.#lake, ...name.split('/'))
  }
}

function changed(name: string): never {
  throw new Error(`the lake file ${name} changed or went away since the plan was made; plan again`)
}
