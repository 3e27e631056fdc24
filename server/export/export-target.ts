// The interface of a target: a directory, or a bucket below a prefix. An object appears under its key only when it is
// complete.

import { createHash } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { writeFully } from '../lake/durable-file.ts'
import { bytesOf, pumpBytes } from '../sync/transfer-pump.ts'
import { retried } from '../tasks/retry.ts'
import { asPlaceError } from './place-error.ts'

export interface FileDigests {
  readonly bytes: number
  readonly sha256: string
  /** Null if the target does not need it. */
  readonly md5: string | null
}

/** What the target stores about an object, available without reading it. */
export interface TargetObject {
  readonly bytes: number
  /** Null if the target does not store it. */
  readonly sha256: string | null
}

export interface ExportTarget {
  /** For messages. */
  readonly name: string
  /** Whether it checks an upload by its MD5 and stores its SHA-256. */
  readonly checksUploads: boolean
  /** A path for the file of a key until `put`. The caller removes the file. */
  scratchPath(key: string): Promise<string>
  /** Stores a finished scratch file under its key. Retries temporary failures. */
  put(key: string, scratch: string, digests: FileDigests, signal: AbortSignal): Promise<void>
  /** Undefined if there is none. */
  stat(key: string, signal: AbortSignal): Promise<TargetObject | undefined>
  /** Undefined if there is none. */
  read(key: string, signal: AbortSignal): Promise<Readable | undefined>
  /** Every key, including left-over temporary files. */
  list(signal: AbortSignal): AsyncIterable<string>
  /** Removes temporary files that killed processes left beside a key. */
  sweep(key: string): Promise<void>
  /** A sentence for the user if the error is one of this target; else undefined. */
  describe(error: unknown): string | undefined
  close(): void
}

/** Writes an object, which appears only when it is complete. A chunk is consumed before the next one is requested. */
export async function putObject(
  target: ExportTarget,
  key: string,
  chunks: Iterable<string> | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  onBytes: (count: number) => void = () => {},
): Promise<FileDigests> {
  const scratch = await target.scratchPath(key)
  try {
    const digests = await writeScratch(scratch, chunks, target.checksUploads, onBytes)
    await target.put(key, scratch, digests, signal)
    return digests
  } finally {
    await rm(scratch, { force: true })
  }
}

async function writeScratch(
  path: string,
  chunks: Iterable<string> | AsyncIterable<Uint8Array>,
  needsMd5: boolean,
  onBytes: (count: number) => void,
): Promise<FileDigests> {
  const [sha256, md5] = [createHash('sha256'), needsMd5 ? createHash('md5') : null]
  const file = await open(path, 'wx')
  try {
    let bytes = 0
    for await (const each of chunks) {
      const chunk = typeof each === 'string' ? Buffer.from(each) : each
      sha256.update(chunk)
      md5?.update(chunk)
      await writeFully(file, chunk, bytes)
      bytes += chunk.length
      onBytes(chunk.length)
    }
    await file.sync()
    return { bytes, sha256: sha256.digest('hex'), md5: md5?.digest('hex') ?? null }
  } finally {
    await file.close()
  }
}

/** Retries failures, unless the target can explain them. @throws {PlaceError} */
export async function retriedAt<Value>(
  target: ExportTarget,
  signal: AbortSignal,
  work: () => Promise<Value>,
): Promise<Value> {
  const isFinal = (error: unknown): boolean => target.describe(error) !== undefined
  return await retried(work, { signal, isFinal }).catch((error: unknown) => {
    throw asPlaceError(error, signal, target.describe(error))
  })
}

/** Size and SHA-256 of an object's bytes; undefined if there is none. */
export async function digestOf(
  target: ExportTarget,
  key: string,
  signal: AbortSignal,
): Promise<{ readonly bytes: number; readonly sha256: string } | undefined> {
  return await retriedAt(target, signal, async () => {
    const body = await target.read(key, signal)
    if (body === undefined) return undefined
    const hash = createHash('sha256')
    let bytes = 0
    const take = async (chunk: Buffer): Promise<void> => {
      hash.update(chunk)
      bytes += chunk.length
    }
    await pumpBytes(body, take, signal)
    return { bytes, sha256: hash.digest('hex') }
  })
}

export async function readText(
  target: ExportTarget,
  key: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  return await retriedAt(target, signal, async () => {
    const body = await target.read(key, signal)
    return body && (await bytesOf(body, signal)).toString()
  })
}
