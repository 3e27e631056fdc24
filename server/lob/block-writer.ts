// Keeps an answer while it is sent, without holding the client up: what the disk does not take in time is not kept.

import type { FileHandle } from 'node:fs/promises'
import { rename, rm } from 'node:fs/promises'
import { withinTime } from '../../shared/within-time.ts'
import { type BlockFileHeader, headerBytes, SpanChecksums } from './block-file.ts'
import type { KeptDisk } from './kept-disk.ts'

/** Bytes that wait for the disk, from which on the client waits as well. */
const QUEUED_BYTES_MAX = 8 * 1024 * 1024
/** So long a client may wait for the disk in all; an answer that would take longer is not kept. */
const DISK_WAIT_MS_MAX = 1_000
/** Room is looked for whenever a body has grown by so much. */
const ROOM_STEP_BYTES = 32 * 1024 * 1024

/** A file that is being written. */
export interface PartFile {
  readonly handle: FileHandle
  readonly partPath: string
}

/** The directory in which answers are kept. */
export interface BlockDirectory {
  readonly disk: KeptDisk
  /** Opens a file of a name of its own. */
  openPart(path: string): Promise<PartFile>
  /** Removes what was not used for longest until `bytes` more have room; false where that is not possible. */
  makeRoom(bytes: number): Promise<boolean>
  /** Something could not be written: a full disk, or no directory. */
  pause(error: unknown): void
}

interface WriterOptions {
  readonly path: string
  readonly header: BlockFileHeader
  readonly bytesMax: number
}

/** Takes a body while it is sent. It appears only when it is whole. */
export class BlockWriter {
  readonly #directory: BlockDirectory
  readonly #options: WriterOptions
  readonly #queue: Buffer[]
  readonly #checksums = new SpanChecksums()
  #queuedBytes = 0
  #patienceMs = DISK_WAIT_MS_MAX
  #bodyBytes = 0
  #writtenBytes = 0
  #roomBytes = 0
  #isGivenUp = false
  #writing: Promise<void> | undefined
  #part: PartFile | undefined
  #ending: Promise<void> | undefined

  constructor(directory: BlockDirectory, options: WriterOptions) {
    this.#directory = directory
    this.#options = options
    this.#queue = [headerBytes(options.header)]
  }

  take(chunk: Uint8Array): void {
    if (this.#isGivenUp) return
    this.#bodyBytes += chunk.length
    this.#queuedBytes += chunk.length
    if (this.#bodyBytes > this.#options.bytesMax) this.#giveUp()
    else {
      this.#checksums.add(chunk)
      // A copy: the chunk's memory is used again.
      this.#queue.push(Buffer.from(chunk))
    }
    this.#writing ??= this.#write()
  }

  /** Resolves when little waits for the disk, or the answer is given up because that took too long. */
  async settle(): Promise<void> {
    if (this.#isGivenUp || this.#queuedBytes < QUEUED_BYTES_MAX || this.#writing === undefined) return
    const startMs = performance.now()
    await withinTime(this.#writing, this.#patienceMs)
    this.#patienceMs -= performance.now() - startMs
    if (this.#patienceMs <= 0) await this.abandon()
  }

  #giveUp(): void {
    this.#isGivenUp = true
    this.#queue.length = 0
  }

  /** All was given: the file appears under its name, or goes; later, where the disk takes too long. */
  async finish(): Promise<void> {
    if (this.#ending !== undefined) return
    if (!this.#isGivenUp) this.#queue.push(this.#checksums.endBytes())
    this.#ending = this.#end()
    await this.#directory.disk.answers(this.#ending, Math.max(this.#patienceMs, 0))
  }

  /** It will not be whole. */
  async abandon(): Promise<void> {
    this.#giveUp()
    await this.finish()
  }

  async #end(): Promise<void> {
    await (this.#writing ??= this.#write())
    const part = this.#part
    if (part === undefined) return
    const { disk } = this.#directory
    const { handle, partPath } = part
    try {
      await disk.ask(() => handle.close())
      if (!this.#isGivenUp) {
        await disk.ask(() => rename(partPath, this.#options.path))
        return
      }
    } catch (error) {
      this.#directory.pause(error)
    }
    await disk.ask(() => rm(partPath, { force: true })).catch(() => {})
  }

  async #write(): Promise<void> {
    try {
      this.#part ??= await this.#directory.openPart(this.#options.path)
      while (this.#queue.length > 0 && !this.#isGivenUp) {
        const blocks = this.#queue.splice(0)
        const bytes = blocks.reduce((sum, { length }) => sum + length, 0)
        if (!(await this.#hasRoom(bytes))) {
          this.#giveUp()
          return
        }
        const { handle } = this.#part
        const { bytesWritten } = await this.#directory.disk.ask(() => handle.writev(blocks))
        if (bytesWritten !== bytes) throw new Error(`${bytesWritten} of ${bytes} bytes were written`)
        this.#writtenBytes += bytes
        this.#queuedBytes = Math.max(this.#queuedBytes - bytes, 0)
      }
    } catch (error) {
      this.#giveUp()
      this.#directory.pause(error)
    } finally {
      this.#writing = undefined
    }
  }

  async #hasRoom(bytes: number): Promise<boolean> {
    if (this.#writtenBytes + bytes <= this.#roomBytes) return true
    // What is written already is counted where it lies.
    const more = Math.max(bytes, Math.min(ROOM_STEP_BYTES, this.#options.bytesMax))
    if (!(await this.#directory.makeRoom(more))) return false
    this.#roomBytes = this.#writtenBytes + more
    return true
  }
}
