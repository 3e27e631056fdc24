// A directory as an object store: the lake itself, or another directory that stands for object storage. A file is
// written under a temporary name that identifies its content, so that an interrupted transfer continues
// where it stopped; it gets its real name when every byte has been checked and synced. Readers that have the file open
// before it is replaced keep the one they opened.

import { createHash, type Hash } from 'node:crypto'
import { constants, createReadStream, createWriteStream } from 'node:fs'
import { link, mkdir, open, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isErrno, noneThere } from '../../shared/errno.ts'
import { derivedFileOfKey } from '../../shared/lake-layout.ts'
import { FOLD_STATE_NAME, isWholeState } from '../fold/fold-state.ts'
import { BUSY_WAIT_MS_MAX, withLock } from '../fold/series-lock.ts'
import { filesBelow } from '../lake/files-below.ts'
import { syncDirectory, syncNames, writeFully } from '../lake/durable-file.ts'
import { removePartition } from '../lake/empty-directories.ts'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { asLakeWriteError, describeLakeWriteError } from '../lake/lake-write-error.ts'
import { partitionDraftPath, publishPartition, removeStaleTemporaries } from '../lake/temporary-file.ts'
import {
  DamagedTransfer,
  isLakeKey,
  isListed,
  isRawKey,
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  UnreadableObject,
  type ObjectHead,
  type ObjectStore,
  type OpenBytes,
  type WriteOptions,
  type WrittenObject,
} from './object-store.ts'
import { SyncConflict } from './sync-report.ts'
import { pumpBytes } from './transfer-pump.ts'

const READ_BYTES = 1024 * 1024
export class DirectoryStore implements ObjectStore {
  readonly name: string
  readonly #root: string
  readonly #cleaned = new Set<string>()

  constructor(root: string) {
    this.#root = resolve(root)
    this.name = this.#root
  }

  /** Every lake file, in no particular order. Rejects when there is no such directory. */
  async *list(signal?: AbortSignal, options: ListOptions = {}): AsyncGenerator<ListedObject, void, void> {
    const start = join(this.#root, options.prefix ?? '')
    const isBelow = start !== this.#root
    if (isBelow && (await stat(start).catch(noneThere))?.isDirectory() !== true) return
    try {
      for await (const path of filesBelow(start, '', signal)) {
        const key = relative(this.#root, path).split(sep).join('/')
        const listed = isListed(key, options) ? await this.stat(key) : undefined
        if (listed !== undefined) yield listed
      }
    } catch (error) {
      throw asLakeWriteError(error, this.#root, 'the directory')
    }
  }

  /** Reads the whole file, so that the digests are current. */
  async head(key: string, signal?: AbortSignal): Promise<ObjectHead | undefined> {
    const listed = await this.stat(key)
    if (listed === undefined) return undefined
    const digests = new Digests()
    const body = await this.get(listed, 0, signal)
    await pumpBytes(body, async (chunk) => digests.update(chunk), signal)
    return { ...listed, ...digests.result() }
  }

  async get(object: ListedObject, offset: number, signal?: AbortSignal): Promise<Readable> {
    const file = await open(this.#path(object.key)).catch(noneThere)
    if (file === undefined) throw new ObjectChanged(object.key)
    // An open file does not change: files are replaced, never modified.
    const isSame = versionOf(await file.stat({ bigint: true })) === object.version
    if (!isSame || signal?.aborted === true) {
      await file.close()
      signal?.throwIfAborted()
      throw new ObjectChanged(object.key)
    }
    return file.createReadStream({ start: offset, highWaterMark: READ_BYTES })
  }

  async put(head: ObjectHead, openBytes: OpenBytes, options: WriteOptions = {}): Promise<WrittenObject> {
    try {
      return await this.#write(head, openBytes, options)
    } catch (error) {
      const reason = describeLakeWriteError(error, this.#root, 'the directory')
      if (reason === undefined) throw error
      // On a full disk, what arrived would take the space that the next content needs.
      await rm(partialPath(this.#path(head.key), head), { force: true }).catch(() => {})
      throw new Error(reason, { cause: error })
    }
  }

  async #write(head: ObjectHead, openBytes: OpenBytes, options: WriteOptions): Promise<WrittenObject> {
    const path = this.#path(head.key)
    const temporary = partialPath(path, head)
    await this.#prepare(dirname(temporary))
    if (options.reusesPrefix === true) await copyPrefix(path, temporary, head.prefixBytes ?? 0)
    const written = await fillFile(temporary, head, openBytes, options)
    const damage = damageOf(head, written)
    if (damage !== undefined) {
      await rm(temporary, { force: true })
      throw new DamagedTransfer(head.key, damage)
    }
    // What arrived stays beside the file, so that the next synchronization need not transfer it again.
    if (typeof options.replaces === 'string' && (await isUnreadable(head.key, temporary, path)))
      throw new UnreadableObject(head.key)
    await options.beforeVisible?.(written.sha256)
    options.signal?.throwIfAborted()
    await this.#giveName(temporary, head.key, options)
    await syncNames([path])
    return written
  }

  async remove(key: string, signal?: AbortSignal): Promise<void> {
    const path = this.#path(key)
    const isPartition = isLakeKey(key)
    await this.#locked(key, signal, () => (isPartition ? removePartition(path) : rm(path, { force: true })))
    await syncDirectory(isPartition ? dirname(dirname(path)) : dirname(path))
  }

  close(): void {}

  async #giveName(temporary: string, key: string, { replaces, signal }: WriteOptions): Promise<void> {
    const path = this.#path(key)
    if (replaces === undefined) return publishPartition(temporary, path)
    if (replaces === null) {
      await mkdir(dirname(path), { recursive: true })
      try {
        return await link(temporary, path)
      } catch (error) {
        // Another writer of the same content has given it the name, and may have removed the temporary one.
        throw isErrno(error, 'EEXIST') || isErrno(error, 'ENOENT') ? new ObjectChanged(key) : error
      } finally {
        await rm(temporary, { force: true })
      }
    }
    await this.#locked(key, signal, async () => {
      if ((await this.stat(key))?.version !== replaces) throw new ObjectChanged(key)
      publishPartition(temporary, path)
    })
  }

  /** Locks the series: a file that a recorder or an import publishes between the check and the replacement would be lost. */
  async #locked(key: string, signal: AbortSignal | undefined, work: () => Promise<void>): Promise<void> {
    const file = derivedFileOfKey(key)
    if (file === undefined) return await work()
    const place = { lake: this.#root, source: file.source, series: file.series }
    await withLock(place, { waitMs: BUSY_WAIT_MS_MAX, signal }, work)
  }

  async #prepare(directory: string): Promise<void> {
    await mkdir(directory, { recursive: true })
    if (this.#cleaned.has(directory)) return
    this.#cleaned.add(directory)
    await removeStaleTemporaries(directory)
  }

  /** The file as a listing has it, without reading it. @throws {SyncConflict} if something else has its name */
  async stat(key: string): Promise<ListedObject | undefined> {
    const path = this.#path(key)
    const found = await stat(path, { bigint: true }).catch(noneThere)
    if (found === undefined) return undefined
    if (!found.isFile())
      throw new SyncConflict(key, `${path} is a directory where a file must be. Remove or rename it.`)
    return { key, sizeBytes: Number(found.size), version: versionOf(found) }
  }

  #path(key: string): string {
    if (!isLakeKey(key) && !isRawKey(key)) throw new Error(`${JSON.stringify(key)} is no lake file`)
    return join(this.#root, ...key.split('/'))
  }
}

/** Writes what the temporary file lacks, syncs and closes it, and returns the digests of all of its bytes. */
async function fillFile(
  temporary: string,
  head: ObjectHead,
  openBytes: OpenBytes,
  { signal, onBytes }: WriteOptions,
): Promise<WrittenObject & { readonly md5: string }> {
  const present = await stat(temporary).catch(noneThere)
  if (present !== undefined && present.size > head.sizeBytes) await rm(temporary, { force: true })
  // Never truncated: should another process work on the same content, it may have given this very file its real name.
  const file = await open(temporary, constants.O_RDWR | constants.O_CREAT)
  try {
    const digests = new Digests()
    let offset = 0
    await pumpBytes(
      createReadStream(temporary, { highWaterMark: READ_BYTES }),
      async (chunk) => {
        digests.update(chunk)
        offset += chunk.length
      },
      signal,
    )
    onBytes?.(offset)
    if (offset < head.sizeBytes) {
      await pumpBytes(
        await openBytes(offset, signal),
        async (chunk) => {
          if (offset + chunk.length > head.sizeBytes) throw new DamagedTransfer(head.key, 'it is too long')
          await writeFully(file, chunk, offset)
          digests.update(chunk)
          offset += chunk.length
          onBytes?.(chunk.length)
        },
        signal,
      )
    }
    if (offset !== head.sizeBytes) throw new Error(`${offset} of ${head.sizeBytes} bytes arrived`)
    await file.sync()
    return { version: versionOf(await file.stat({ bigint: true })), ...digests.result() }
  } finally {
    await file.close()
  }
}

/** Whether a file of a dataset or a fold state cannot be read, and the one that it would replace can. */
async function isUnreadable(key: string, next: string, present: string): Promise<boolean> {
  if (key.endsWith(`/${FOLD_STATE_NAME}`)) return !(await isWholeState(next)) && (await isWholeState(present))
  if (!isLakeKey(key) || (await lakeFileFacts(next)) !== undefined) return false
  return (await lakeFileFacts(present).catch(noneThere)) !== undefined
}

/** Begins a transfer with the first bytes of the file that it replaces; whether they are right shows at its end. */
async function copyPrefix(path: string, temporary: string, prefixBytes: number): Promise<void> {
  const present = await stat(path).catch(noneThere)
  if (prefixBytes === 0 || present === undefined || present.size < prefixBytes) return
  if ((await stat(temporary).catch(noneThere)) !== undefined) return
  const prefix = createReadStream(path, { end: prefixBytes - 1, highWaterMark: READ_BYTES })
  await pipeline(prefix, createWriteStream(temporary, { flags: 'wx' }))
}

function damageOf(
  head: ObjectHead,
  found: { readonly sha256: string; readonly md5: string },
): string | undefined {
  if (head.sha256 !== null && head.sha256 !== found.sha256)
    return `SHA-256 ${found.sha256}, not ${head.sha256}`
  if (head.md5 !== null && head.md5 !== found.md5) return `MD5 ${found.md5}, not ${head.md5}`
  return undefined
}

class Digests {
  readonly #sha256: Hash = createHash('sha256')
  readonly #md5: Hash = createHash('md5')

  update(bytes: Uint8Array): void {
    this.#sha256.update(bytes)
    this.#md5.update(bytes)
  }

  result(): { readonly sha256: string; readonly md5: string } {
    return { sha256: this.#sha256.digest('hex'), md5: this.#md5.digest('hex') }
  }
}

/** The same for the same content of the same file: a left-over goes after a day. */
function partialPath(path: string, head: ObjectHead): string {
  const content = `${head.version} ${head.sizeBytes} ${head.sha256 ?? ''} ${head.md5 ?? ''}`
  const unique = createHash('sha256').update(content).digest('hex').slice(0, 12)
  return isLakeKey(head.key)
    ? partitionDraftPath(path, unique)
    : join(dirname(path), `.${basename(path)}.${unique}.tmp`)
}

function versionOf({ size, mtimeNs, ino }: { size: bigint; mtimeNs: bigint; ino: bigint }): string {
  return `${size}-${mtimeNs}-${ino}`
}
