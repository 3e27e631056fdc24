// A kept answer on its way to a client. One that is not as it was written is given up.

import { BlockDamaged, type BlockFile, type BlockFileHeader } from './block-file.ts'
import { DiskSilent } from './kept-disk.ts'

/** Whether a file is in use is said so seldom: saying so changes its times, and it is checked anew then. */
const USE_STEP_MS = 5 * 60_000

/** The directory in which answers are kept. */
export interface KeptFiles {
  readonly figures: { hits: number; servedBytes: number }
  /** A file was read: it is given up last. Never rejects. */
  touch(path: string): Promise<void>
  /** A file cannot be read, or not as it was written. */
  giveUp(path: string, error: unknown): Promise<void>
}

/** A kept body that is being served. */
export class KeptBody {
  readonly #files: KeptFiles
  readonly #path: string
  readonly #file: BlockFile
  readonly #onClose: () => void
  #isClosed = false

  constructor(files: KeptFiles, path: string, file: BlockFile, onClose: () => void) {
    this.#files = files
    this.#path = path
    this.#file = file
    this.#onClose = onClose
  }

  get header(): BlockFileHeader {
    return this.#file.header
  }

  get sizeBytes(): number {
    return this.#file.bodyBytes
  }

  /** The next bytes, valid until the next call; null behind the last. Rejects with BlockDamaged. */
  async next(): Promise<Uint8Array | null> {
    try {
      const bytes = await this.#file.next()
      this.#files.figures.servedBytes += bytes?.length ?? 0
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
  use(): void {
    this.#files.figures.hits++
    if (Date.now() - this.#file.usedMs < USE_STEP_MS) return
    void this.#files.touch(this.#path)
  }

  /** Nobody waits for the disk here: it counts as read until it has answered. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    void this.#file
      .close()
      .catch(() => {})
      .finally(this.#onClose)
  }

  /** A disk that gives an error is as bad as one that gives other bytes. */
  async #damaged(error: unknown): Promise<BlockDamaged> {
    const damage =
      error instanceof BlockDamaged ? error : new BlockDamaged('it cannot be read', { cause: error })
    // What a silent disk has may be whole.
    if (!(error instanceof DiskSilent)) await this.#files.giveUp(this.#path, damage)
    return damage
  }
}
