// An export in a directory. A file is written under a temporary name in the same directory and then renamed.

import { createReadStream } from 'node:fs'
import { mkdir, opendir, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { noneThere } from '../../shared/errno.ts'
import { syncDirectory } from '../lake/durable-file.ts'
import { describeLakeWriteError } from '../lake/lake-write-error.ts'
import { temporaryPath } from '../lake/temporary-file.ts'
import { digestOf, type ExportTarget, type FileDigests } from './export-target.ts'

const READ_BYTES = 1024 * 1024

export class DirectoryTarget implements ExportTarget {
  readonly name: string
  readonly checksUploads = false

  constructor(root: string) {
    this.name = resolve(root)
  }

  async scratchPath(key: string): Promise<string> {
    const path = this.#path(key)
    await mkdir(dirname(path), { recursive: true })
    return temporaryPath(path)
  }

  async put(key: string, scratch: string, { sha256 }: FileDigests, signal: AbortSignal): Promise<void> {
    try {
      await rename(scratch, this.#path(key))
    } catch (error) {
      // Another process may have made the same object, and removed this file.
      if ((await digestOf(this, key, signal))?.sha256 !== sha256) throw error
    }
    await syncDirectory(dirname(this.#path(key)))
  }

  async stat(key: string) {
    const found = await stat(this.#path(key)).catch(noneThere)
    return found === undefined ? undefined : { bytes: found.size, sha256: null }
  }

  async read(key: string) {
    const isThere = (await this.stat(key)) !== undefined
    return isThere ? createReadStream(this.#path(key), { highWaterMark: READ_BYTES }) : undefined
  }

  async *list(): AsyncGenerator<string, void, void> {
    for await (const entry of await opendir(this.name, { recursive: true })) {
      if (entry.isDirectory()) continue
      yield relative(this.name, join(entry.parentPath, entry.name)).replaceAll('\\', '/')
    }
  }

  async sweep(key: string): Promise<void> {
    const directory = dirname(this.#path(key))
    for (const name of await readdir(directory))
      if (name.startsWith(`.${basename(key)}.`) && name.endsWith('.tmp'))
        await rm(join(directory, name), { force: true })
  }

  describe(error: unknown): string | undefined {
    return describeLakeWriteError(error, this.name, 'the target')
  }

  close(): void {}

  #path(key: string): string {
    return join(this.name, ...key.split('/'))
  }
}
