// Long order-book answers kept as bytes on disk, so that whoever asks for them again gets them ready. An answer lies
// under its query and says which state of the lake it was made of: one of another state is not found but written over.
// Several processes may share the directory: files appear whole by renaming, and each process counts what lies there.
// Nothing here fails a request: what cannot be kept is made again.

import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { STALE_TEMP_AGE_MS } from '../../shared/limits.ts'
import { BlockDamaged, BlockFile, type BlockFileHeader } from './block-file.ts'
import { type BlockDirectory, BlockWriter, type PartFile } from './block-writer.ts'
import { KeptBody, type KeptFiles } from './kept-body.ts'
import { KeptDisk } from './kept-disk.ts'

/** A single answer may not push out most of the others. */
const ANSWER_SHARE_MAX = 1 / 4
/** After a failure, such as a full disk, nothing is kept for so long. */
const PAUSE_MS = 60_000
/** A disk that takes longer to say what is kept is not asked again until it has. */
const LOOK_MS_MAX = 2_000
/** Files that are served from at once, each with two spans in memory; more requests are answered by threads. */
const READERS_MAX = 32
/** Files that are known to be as they were written. */
const CHECKED_FILES_MAX = 4_096
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

/** What was added first is forgotten first. */
class RecentSet extends Set<string> {
  readonly #sizeMax: number

  constructor(sizeMax: number) {
    super()
    this.#sizeMax = sizeMax
  }

  override add(value: string): this {
    if (this.size >= this.#sizeMax) for (const first of this.values()) if (this.delete(first)) break
    return super.add(value)
  }
}

export class BlockCache implements KeptFiles, BlockDirectory {
  readonly figures: BlockCacheFigures = { hits: 0, misses: 0, evicted: 0, damaged: 0, servedBytes: 0 }
  readonly #directory: string
  readonly #bytesMax: number
  readonly #logger: Logger
  readonly disk: KeptDisk
  readonly #checked = new RecentSet(CHECKED_FILES_MAX)
  #pausedUntilMs = 0
  #readers = 0
  /** Of all files there when they were last counted. */
  storedBytes = 0

  constructor({ directory, bytesMax, logger }: BlockCacheOptions) {
    this.#directory = directory
    this.#bytesMax = bytesMax
    this.#logger = logger
    this.disk = new KeptDisk(directory, logger)
  }

  /** The name of an answer, whatever state of the lake it is made of. */
  static keyOf(...parts: readonly unknown[]): string {
    return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  }

  /** The kept form of an answer in a coding; undefined where none can be read soon. Must be closed. */
  async find(key: string, coding: KeptCoding): Promise<KeptBody | undefined> {
    if (this.#readers >= READERS_MAX || this.disk.isSilent) return undefined
    const look = this.#look(this.#pathOf(key, coding), coding)
    if (await this.disk.answers(look, LOOK_MS_MAX)) return look
    void look.then((body) => body?.close())
    return undefined
  }

  /** A place for an answer that is being made; undefined while nothing can be kept. */
  keep(key: string, header: BlockFileHeader): BlockWriter | undefined {
    if (this.disk.isSilent || performance.now() < this.#pausedUntilMs) return undefined
    const path = this.#pathOf(key, header.coding)
    return new BlockWriter(this, { path, header, bytesMax: this.#bytesMax * ANSWER_SHARE_MAX })
  }

  async openPart(path: string): Promise<PartFile> {
    await this.disk.ask(() => mkdir(this.#directory, { recursive: true, mode: 0o700 }))
    const partPath = `${path}.${process.pid}-${randomUUID()}${PART_SUFFIX}`
    return { handle: await this.disk.ask(() => open(partPath, 'wx', 0o600)), partPath }
  }

  async makeRoom(bytes: number): Promise<boolean> {
    const files = await this.#list()
    let used = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    const oldest = files.filter(isRemovable).toSorted((left, right) => left.usedMs - right.usedMs)
    for (const { path, sizeBytes } of oldest) {
      if (used + bytes <= this.#bytesMax) break
      await this.disk.ask(() => rm(path, { force: true }))
      this.figures.evicted++
      used -= sizeBytes
    }
    this.storedBytes = used
    return used + bytes <= this.#bytesMax
  }

  async touch(path: string): Promise<void> {
    const now = new Date()
    await this.disk.ask(() => utimes(path, now, now)).catch(() => {})
  }

  async giveUp(path: string, error: unknown): Promise<void> {
    if (error instanceof BlockDamaged || error instanceof SyntaxError) this.figures.damaged++
    this.#logger.warn({ err: error, path }, 'a kept answer is given up')
    await this.disk.answers(
      this.disk.ask(() => rm(path, { force: true })),
      LOOK_MS_MAX,
    )
  }

  pause(error: unknown): void {
    this.#pausedUntilMs = performance.now() + PAUSE_MS
    this.#logger.warn({ err: error }, 'answers cannot be kept for now')
  }

  /** Never rejects. */
  async #look(path: string, coding: KeptCoding): Promise<KeptBody | undefined> {
    this.#readers++
    try {
      const file = await BlockFile.open(this.disk, path, this.#checked)
      if (file?.header.coding === coding) return new KeptBody(this, path, file, () => (this.#readers -= 1))
      await file?.close()
    } catch (error) {
      await this.giveUp(path, error)
    }
    this.#readers--
    return undefined
  }

  #pathOf(key: string, coding: KeptCoding): string {
    return join(this.#directory, `${key}.${coding}`)
  }

  async #list(): Promise<StoredFile[]> {
    const names = await this.disk.ask(() => readdir(this.#directory))
    const files = await Promise.all(
      names.map(async (name): Promise<StoredFile[]> => {
        const path = join(this.#directory, name)
        // Another process may have removed it.
        const found = await this.disk.ask(() => stat(path)).catch(() => undefined)
        return found?.isFile() === true ? [{ path, sizeBytes: found.size, usedMs: found.mtimeMs }] : []
      }),
    )
    return files.flat()
  }
}
