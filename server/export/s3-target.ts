// An export in a bucket. A part is written to a temporary file and uploaded with one PUT that carries its MD5. The service
// stores the whole object or nothing, so there are no unfinished uploads. Requests that fail are tried again.

import { createReadStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Readable } from 'node:stream'
import { SYNC_ATTEMPTS_MAX } from '../../shared/limits.ts'
import { describeLakeWriteError } from '../lake/lake-write-error.ts'
import { removeStaleTemporaries, temporaryPath } from '../lake/temporary-file.ts'
import { S3Store, type S3StoreOptions } from '../sync/s3-store.ts'
import { backOffMs, TRANSFER_BACK_OFF } from '../tasks/back-off.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import type { ExportTarget, FileDigests, TargetObject } from './export-target.ts'

const READ_BYTES = 1024 * 1024
/** Client errors worth another attempt: timeout, conflict of two writers, too early, too many requests. */
const PASSING_STATUSES = new Set([408, 409, 412, 425, 429])

export class S3Target implements ExportTarget {
  readonly name: string
  readonly checksUploads = true
  readonly #store: S3Store
  /** Of this user: another one may not write in it. */
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
    await this.#retry(signal, () => this.#store.put(head, body, { signal }))
  }

  async stat(key: string, signal: AbortSignal): Promise<TargetObject | undefined> {
    const head = await this.#retry(signal, () => this.#store.head(key, signal))
    return head && { bytes: head.sizeBytes, sha256: head.sha256 }
  }

  async read(key: string, signal: AbortSignal): Promise<Readable | undefined> {
    return await this.#retry(signal, async () => {
      const head = await this.#store.head(key, signal)
      return head && (await this.#store.get(head, 0, signal))
    })
  }

  async *list(signal: AbortSignal): AsyncGenerator<string, void, void> {
    for await (const { key } of this.#store.list(signal, { raw: true }, () => true)) yield key
  }

  async sweep(): Promise<void> {}

  describe(error: unknown): string | undefined {
    const local = describeLakeWriteError(error, this.#scratch, 'the directory for unsent parts')
    if (local !== undefined || !(error instanceof Error)) return local
    const status = statusOf(error)
    if (status === 401 || status === 403 || isWithoutCredentials(error))
      return `${this.name} refuses these credentials (${error.message}); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role that may write there`
    if (status === 404) return `${this.name}: there is no such bucket; make it or correct --out`
    return undefined
  }

  close(): void {
    this.#store.close()
  }

  async #retry<Value>(signal: AbortSignal, work: () => Promise<Value>): Promise<Value> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work()
      } catch (error) {
        signal.throwIfAborted()
        if (attempt === SYNC_ATTEMPTS_MAX || isFinal(error)) throw error
        await SYSTEM_CLOCK.sleep(backOffMs(TRANSFER_BACK_OFF, attempt), signal)
      }
    }
  }
}

/** The HTTP status of an error or of its cause. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } }
  return $metadata?.httpStatusCode ?? statusOf(error.cause)
}

function isWithoutCredentials(error: unknown): boolean {
  return error instanceof Error && error.name === 'CredentialsProviderError'
}

function isFinal(error: unknown): boolean {
  const status = statusOf(error)
  const isRefused = status !== undefined && status >= 400 && status < 500 && !PASSING_STATUSES.has(status)
  return isRefused || isWithoutCredentials(error)
}
