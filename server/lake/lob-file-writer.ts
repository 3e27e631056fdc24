// Writes one lob.v1 file, row group by row group, to a temporary name beside its final one. The file is closed, synced
// and read back before it may be published. Until then no reader sees it, and `discard` removes it.

import { mkdirSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { writeFully } from './durable-file.ts'
import { LobFileContents } from './lob-file-contents.ts'
import { verifyLobFile } from './lob-file-verify.ts'
import { PARQUET_MAGIC } from './lob-footer.ts'
import type { LobFileLabels } from './lob-footer.ts'
import type { LobRowGroup } from './lob-row-group.ts'
import type { LobRowFigures } from './lob-summary.ts'
import { partitionDraftPath } from './temporary-file.ts'
import { messageOf } from '../../shared/error-message.ts'

export class LobFileWriter {
  /** The final path of the file. */
  readonly path: string
  readonly temporaryPath: string
  readonly #contents = new LobFileContents()
  #file: FileHandle | undefined
  #offset = 0

  private constructor(path: string, temporary: string, file: FileHandle) {
    this.path = path
    this.temporaryPath = temporary
    this.#file = file
  }

  /** Creates the directory if needed and opens the temporary file. */
  static async open(path: string): Promise<LobFileWriter> {
    const temporary = partitionDraftPath(path)
    mkdirSync(dirname(temporary), { recursive: true })
    const writer = new LobFileWriter(path, temporary, await open(temporary, 'wx'))
    try {
      await writer.#write(PARQUET_MAGIC)
    } catch (error) {
      await writer.discard()
      throw error
    }
    return writer
  }

  /**
   * Appends the rows of `group` (at least one) as one row group; the group can be reused when the promise resolves.
   * Throws when the rows violate lob.v1: more than one UTC hour, markets out of order, a market's time going back.
   */
  async writeRowGroup(group: LobRowGroup): Promise<void> {
    let bytes: Uint8Array
    try {
      bytes = this.#contents.add(group)
    } catch (error) {
      const reason = messageOf(error)
      throw new Error(`${basename(this.path)}: ${reason}`, { cause: error })
    }
    await this.#write(bytes)
  }

  /** Writes the footer, syncs, closes and reads the file back. The file keeps its temporary name. */
  async finish(labels: LobFileLabels): Promise<LobRowFigures> {
    const { bytes, figures } = this.#contents.footer(labels)
    await this.#write(bytes)
    await this.#file?.sync()
    await this.#close()
    await verifyLobFile(this.temporaryPath)
    return figures
  }

  /** Closes and removes the temporary file. No effect after publication. */
  async discard(): Promise<void> {
    await this.#close()
    await rm(this.temporaryPath, { force: true })
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#file === undefined) throw new Error(`${this.temporaryPath} is closed`)
    await writeFully(this.#file, bytes, this.#offset)
    this.#offset += bytes.length
  }

  async #close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.close()
  }
}
