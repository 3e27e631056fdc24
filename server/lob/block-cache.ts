// Long order-book answers kept as bytes on disk, so that whoever asks for them again gets them ready. An answer lies
// under its query and says which state of the lake it was made of: one of another state is not found but written over.
// Several processes may share the directory: files appear whole by renaming, and each process counts what lies there.
// Nothing here fails a request: what cannot be kept is made again.

import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { STALE_TEMP_AGE_MS } from '../../shared/limits.ts'
import { withinTime } from '../../shared/within-time.ts'
import {
  blockBytes,
  BlockDamaged,
  BlockFile,
  endBytes,
  headerBytes,
  type BlockFileHeader,
} from './block-file.ts'

/** A single answer may not push out most of the others. */
const ANSWER_SHARE_MAX = 1 / 4
/** Bytes that wait for the disk, from which on the client waits as well. */
const QUEUED_BYTES_MAX = 8 * 1024 * 1024
/** So long a client may wait for the disk in all; an answer that would take longer is not kept. */
const DISK_WAIT_MS_MAX = 1_000
/** Room is looked for whenever a body has grown by so much. */
const ROOM_STEP_BYTES = 32 * 1024 * 1024
/** After a failure, such as a full disk, nothing is kept for so long. */
const PAUSE_MS = 60_000
/** Files that are served from at once; more requests are answered by threads. */
const READERS_MAX = 64
const PART_SUFFIX = '.part'

export type KeptCoding = BlockFileHeader['coding']

/** What has happened so far. */
export interface BlockCacheFigures {
  hits: number
  misses: number
  evicted: number
  /** Files given up because their bytes were not what was written. */
  damaged: number
  servedBytes: number
}

export interface BlockCacheOptions {
  readonly directory: string
  readonly bytesMax: number
  readonly logger: Logger
}

interface StoredFile {
  readonly path: string
  readonly sizeBytes: number
  readonly usedMs: number
}

/** What another process is still writing is not, unless that was long ago. */
function isRemovable({ path, usedMs }: StoredFile): boolean {
  return !path.endsWith(PART_SUFFIX) || Date.now() - usedMs > STALE_TEMP_AGE_MS
}

export class BlockCache {
  readonly figures: BlockCacheFigures = { hits: 0, misses: 0, evicted: 0, damaged: 0, servedBytes: 0 }
  readonly #directory: string
  readonly #bytesMax: number
  readonly #logger: Logger
  #pausedUntilMs = 0
  #readers = 0
  /** Of all files there when they were last counted. */
  storedBytes = 0

  constructor({ directory, bytesMax, logger }: BlockCacheOptions) {
    this.#directory = directory
    this.#bytesMax = bytesMax
    this.#logger = logger
  }

  /** The name of an answer, whatever state of the lake it is made of. */
  static keyOf(...parts: readonly unknown[]): string {
    return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  }

  /** The kept form of an answer in a coding; undefined where there is none that can be read. Must be closed. */
  async find(key: string, coding: KeptCoding): Promise<KeptBody | undefined> {
    if (this.#readers >= READERS_MAX) return undefined
    const path = this.#pathOf(key, coding)
    this.#readers++
    try {
      const file = await BlockFile.open(path)
      if (file?.header.coding === coding) return new KeptBody(this, path, file, () => (this.#readers -= 1))
      await file?.close()
    } catch (error) {
      await this.giveUp(path, error)
    }
    this.#readers--
    return undefined
  }

  /** A place for an answer that is being made; undefined while nothing can be kept. */
  keep(key: string, header: BlockFileHeader): BlockWriter | undefined {
    if (Date.now() < this.#pausedUntilMs) return undefined
    const path = this.#pathOf(key, header.coding)
    return new BlockWriter(this, { path, header, bytesMax: this.#bytesMax * ANSWER_SHARE_MAX })
  }

  /** Opens a file of a name of its own. */
  async openPart(path: string): Promise<{ readonly handle: FileHandle; readonly partPath: string }> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const partPath = `${path}.${process.pid}-${randomUUID()}${PART_SUFFIX}`
    return { handle: await open(partPath, 'wx', 0o600), partPath }
  }

  /** Removes what was not used for longest until `bytes` more have room; false where that is not possible. */
  async makeRoom(bytes: number): Promise<boolean> {
    const files = await this.#list()
    let used = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    const oldest = files.filter(isRemovable).toSorted((left, right) => left.usedMs - right.usedMs)
    for (const { path, sizeBytes } of oldest) {
      if (used + bytes <= this.#bytesMax) break
      await rm(path, { force: true })
      this.figures.evicted++
      used -= sizeBytes
    }
    this.storedBytes = used
    return used + bytes <= this.#bytesMax
  }

  /** A file was read: it is given up last. */
  async touch(path: string): Promise<void> {
    const now = new Date()
    await utimes(path, now, now).catch(() => {})
  }

  /** A file cannot be read, or not as it was written. */
  async giveUp(path: string, error: unknown): Promise<void> {
    if (error instanceof BlockDamaged || error instanceof SyntaxError) this.figures.damaged++
    this.#logger.warn({ err: error, path }, 'a kept answer is given up')
    await rm(path, { force: true }).catch(() => {})
  }

  /** Something could not be written: a full disk, or no directory. */
  pause(error: unknown): void {
    this.#pausedUntilMs = Date.now() + PAUSE_MS
    this.#logger.warn({ err: error }, 'answers cannot be kept for now')
  }

  #pathOf(key: string, coding: KeptCoding): string {
    return join(this.#directory, `${key}.${coding}`)
  }

  async #list(): Promise<StoredFile[]> {
    const names = await readdir(this.#directory)
    const files = await Promise.all(
      names.map(async (name): Promise<StoredFile[]> => {
        const path = join(this.#directory, name)
        // Another process may have removed it.
        const found = await stat(path).catch(() => undefined)
        return found?.isFile() === true ? [{ path, sizeBytes: found.size, usedMs: found.mtimeMs }] : []
      }),
    )
    return files.flat()
  }
}

/** A kept body that is being served. */
export class KeptBody {
  readonly #cache: BlockCache
  readonly #path: string
  readonly #file: BlockFile
  readonly #onClose: () => void
  #isClosed = false

  constructor(cache: BlockCache, path: string, file: BlockFile, onClose: () => void) {
    this.#cache = cache
    this.#path = path
    this.#file = file
    this.#onClose = onClose
  }

  get header(): BlockFileHeader {
    return this.#file.header
  }

  /** The next bytes, valid until the next call; null behind the last. Rejects with BlockDamaged. */
  async next(): Promise<Uint8Array | null> {
    try {
      const bytes = await this.#file.next()
      this.#cache.figures.servedBytes += bytes?.length ?? 0
      return bytes
    } catch (error) {
      throw await this.#damaged(error)
    }
  }

  /** Whether all of it is as it was written. */
  async isWhole(): Promise<boolean> {
    try {
      await this.#file.verify()
      return true
    } catch (error) {
      await this.#damaged(error)
      return false
    }
  }

  /** It is going to be served. */
  async use(): Promise<void> {
    this.#cache.figures.hits++
    await this.#cache.touch(this.#path)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#file.close()
    this.#onClose()
  }

  /** A disk that gives an error is as bad as one that gives other bytes. */
  async #damaged(error: unknown): Promise<BlockDamaged> {
    const damage =
      error instanceof BlockDamaged ? error : new BlockDamaged('it cannot be read', { cause: error })
    await this.#cache.giveUp(this.#path, damage)
    return damage
  }
}

interface WriterOptions {
  readonly path: string
  readonly header: BlockFileHeader
  readonly bytesMax: number
}

/** Takes a body while it is sent. It appears only when it is whole. */
export class BlockWriter {
  readonly #cache: BlockCache
  readonly #options: WriterOptions
  readonly #queue: Buffer[]
  #queuedBytes = 0
  #patienceMs = DISK_WAIT_MS_MAX
  #bodyBytes = 0
  #writtenBytes = 0
  #roomBytes = 0
  #isGivenUp = false
  #writing: Promise<void> | undefined
  #part: { readonly handle: FileHandle; readonly partPath: string } | undefined

  constructor(cache: BlockCache, options: WriterOptions) {
    this.#cache = cache
    this.#options = options
    this.#queue = [headerBytes(options.header)]
  }

  take(chunk: Uint8Array): void {
    if (this.#isGivenUp) return
    this.#bodyBytes += chunk.length
    this.#queuedBytes += chunk.length
    if (this.#bodyBytes > this.#options.bytesMax) this.#giveUp()
    else this.#queue.push(...blockBytes(chunk))
    this.#writing ??= this.#write()
  }

  /** Resolves when little waits for the disk, or the answer is given up because that took too long. */
  async settle(): Promise<void> {
    if (this.#isGivenUp || this.#queuedBytes < QUEUED_BYTES_MAX || this.#writing === undefined) return
    const startMs = performance.now()
    await withinTime(this.#writing, this.#patienceMs)
    this.#patienceMs -= performance.now() - startMs
    if (this.#patienceMs <= 0) this.#giveUp()
  }

  #giveUp(): void {
    this.#isGivenUp = true
    this.#queue.length = 0
  }

  /** All was given: the file appears under its name, or goes. */
  async finish(): Promise<void> {
    if (!this.#isGivenUp) this.#queue.push(endBytes(this.#bodyBytes))
    await (this.#writing ??= this.#write())
    const part = this.#part
    this.#part = undefined
    if (part === undefined) return
    try {
      await part.handle.close()
      if (!this.#isGivenUp) {
        await rename(part.partPath, this.#options.path)
        return
      }
    } catch (error) {
      this.#cache.pause(error)
    }
    await rm(part.partPath, { force: true }).catch(() => {})
  }

  /** It will not be whole. */
  async abandon(): Promise<void> {
    this.#giveUp()
    await this.finish()
  }

  async #write(): Promise<void> {
    try {
      this.#part ??= await this.#cache.openPart(this.#options.path)
      while (this.#queue.length > 0 && !this.#isGivenUp) {
        const blocks = this.#queue.splice(0)
        const bytes = blocks.reduce((sum, { length }) => sum + length, 0)
        if (!(await this.#hasRoom(bytes))) {
          this.#giveUp()
          return
        }
        const { bytesWritten } = await this.#part.handle.writev(blocks)
        if (bytesWritten !== bytes) throw new Error(`${bytesWritten} of ${bytes} bytes were written`)
        this.#writtenBytes += bytes
        this.#queuedBytes = Math.max(this.#queuedBytes - bytes, 0)
      }
    } catch (error) {
      this.#giveUp()
      this.#cache.pause(error)
    } finally {
      this.#writing = undefined
    }
  }

  async #hasRoom(bytes: number): Promise<boolean> {
    if (this.#writtenBytes + bytes <= this.#roomBytes) return true
    // What is written already is counted where it lies.
    const more = Math.max(bytes, Math.min(ROOM_STEP_BYTES, this.#options.bytesMax))
    if (!(await this.#cache.makeRoom(more))) return false
    this.#roomBytes = this.#writtenBytes + more
    return true
  }
}
