// An export in a bucket. A part is written to a temporary file and uploaded with one PUT that carries its MD5. The service
// stores the whole object or nothing, so there are no unfinished uploads. Failed requests are tried again.

import { createReadStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Readable } from 'node:stream'
import { describeLakeWriteError } from '../lake/lake-write-error.ts'
import { removeStaleTemporaries, temporaryPath } from '../lake/temporary-file.ts'
import { S3Store, type S3StoreOptions, statusOf, storageStatusOf } from '../sync/s3-store.ts'
import { type ExportTarget, type FileDigests, retriedAt, type TargetObject } from './export-target.ts'

const READ_BYTES = 1024 * 1024
/** Client errors worth a retry: timeout, conflict of two writers, too early, too many requests. */
const PASSING_STATUSES = new Set([408, 409, 412, 425, 429])

export class S3Target implements ExportTarget {
  readonly name: string
  readonly checksUploads = true
  readonly #store: S3Store
  /** One directory per user: another user could not write into it. */
  readonly #scratch = join(tmpdir(), `bookcast-export-${process.getuid?.() ?? 0}`)

  constructor(options: S3StoreOptions) {
    this.#store = new S3Store(options)
    this.name = this.#store.name
  }

  async scratchPath(key: string): Promise<string> {
    await mkdir(this.#scratch, { recursive: true })
    await removeStaleTemporaries(this.#scratch)
    return temporaryPath(join(this.#scratch, basename(key)))
  }

  async put(
    key: string,
    scratch: string,
    { bytes, sha256, md5 }: FileDigests,
    signal: AbortSignal,
  ): Promise<void> {
    const head = { key, sizeBytes: bytes, version: '', sha256, md5 }
    const body = async () => createReadStream(scratch, { highWaterMark: READ_BYTES })
    await retriedAt(this, signal, async () => await this.#store.put(head, body, { signal }))
  }

  async stat(key: string, signal: AbortSignal): Promise<TargetObject | undefined> {
    const head = await this.#store.head(key, signal)
    return head && { bytes: head.sizeBytes, sha256: head.sha256 }
  }

  async read(key: string, signal: AbortSignal): Promise<Readable | undefined> {
    const head = await this.#store.head(key, signal)
    return head && (await this.#store.get(head, 0, signal))
  }

  async *list(signal: AbortSignal): AsyncGenerator<string, void, void> {
    for await (const { key } of this.#store.list(signal, { raw: true }, () => true)) yield key
  }

  async sweep(): Promise<void> {}

  describe(error: unknown): string | undefined {
    const local = describeLakeWriteError(error, this.#scratch, 'the directory for unsent parts')
    if (local !== undefined || !(error instanceof Error)) return local
    const status = statusOf(error)
    if (status === 401 || status === 403 || error.name === 'CredentialsProviderError')
      return `${this.name} refuses these credentials (${error.message}); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role that may write there`
    if (storageStatusOf(error) === 404)
      return `${this.name}: there is no such bucket; make it or correct --out`
    const isRefused = status !== undefined && status >= 400 && status < 500 && !PASSING_STATUSES.has(status)
    return isRefused ? `${this.name} refuses a request: ${error.message}` : undefined
  }

  close(): void {
    this.#store.close()
  }
}
