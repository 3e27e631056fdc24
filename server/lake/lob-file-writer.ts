// Writes one lob.v1 file, row group by row group, to a temporary name beside its final one. The file is closed, synced
// and read back before it may be published; until then nobody sees it, and `discard` leaves nothing of it.

import { mkdirSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { RowGroup } from 'hyparquet'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import { crc32Hex } from '../../shared/lob-checksum.ts'
import { verifyLobFile } from './lob-file-verify.ts'
import { PARQUET_MAGIC, encodeLobFooter } from './lob-footer.ts'
import type { LobFileLabels } from './lob-footer.ts'
import { chunkRange, encodeLobPages, metaOf } from './lob-parquet-pages.ts'
import type { LobRowGroup } from './lob-row-group.ts'
import { LobFigures, compareIds } from './lob-summary.ts'
import type { LobRowFigures } from './lob-summary.ts'
import { temporaryPath } from './temporary-file.ts'

export class LobFileWriter {
  /** Where the file will stand once published. */
  readonly path: string
  readonly temporaryPath: string
  #file: FileHandle | undefined
  #offset = 0
  #lastHour = -1n
  #lastMarket = ''
  readonly #figures = new LobFigures()
  readonly #rowGroups: RowGroup[] = []
  readonly #columnCrc32: string[][] = []

  private constructor(path: string, temporary: string, file: FileHandle) {
    this.path = path
    this.temporaryPath = temporary
    this.#file = file
  }

  /** Creates the directory if needed and opens the temporary file. */
  static async open(path: string): Promise<LobFileWriter> {
    mkdirSync(dirname(path), { recursive: true })
    const temporary = temporaryPath(path)
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
   * Appends the rows of `group` (at least one) as one row group; the group can be reused when the promise is fulfilled.
   * Throws when the rows break lob.v1: more than one UTC hour, markets out of order, a market's time going back.
   */
  async writeRowGroup(group: LobRowGroup): Promise<void> {
    this.#check(group)
    const { bytes, rowGroup } = encodeLobPages(group)
    const checksums: string[] = []
    for (const column of rowGroup.columns) {
      const meta = metaOf(column)
      const { start, end } = chunkRange(meta)
      checksums.push(crc32Hex(bytes.subarray(start, end)))
      meta.data_page_offset += BigInt(this.#offset)
      if (meta.dictionary_page_offset !== undefined) meta.dictionary_page_offset += BigInt(this.#offset)
    }
    rowGroup.file_offset = BigInt(this.#offset)
    this.#rowGroups.push(rowGroup)
    this.#columnCrc32.push(checksums)
    await this.#write(bytes)
  }

  /** Writes the footer, syncs, closes and reads the file back. The file still has its temporary name. */
  async finish(labels: LobFileLabels): Promise<LobRowFigures> {
    const figures = this.#figures.result()
    await this.#write(encodeLobFooter(labels, figures, this.#rowGroups, this.#columnCrc32))
    await this.#file?.sync()
    await this.#close()
    await verifyLobFile(this.temporaryPath)
    return figures
  }

  /** Closes and removes the temporary file. Harmless after publication. */
  async discard(): Promise<void> {
    await this.#close()
    await rm(this.temporaryPath, { force: true })
  }

  #check(group: LobRowGroup): void {
    if (group.rows === 0) throw new Error('a row group needs at least one row')
    const hour = group.ts[0]! / NS_PER_HOUR
    if (hour < this.#lastHour) throw this.#broken('its hours do not ascend')
    if (hour > this.#lastHour) this.#lastMarket = ''
    this.#lastHour = hour
    const [start, end] = [hour * NS_PER_HOUR, (hour + 1n) * NS_PER_HOUR]
    let from = 0
    for (let row = 1; row <= group.rows; row++) {
      if (row < group.rows && group.market[row] === group.market[from]) continue
      const market = group.markets[group.market[from]!]!
      if (compareIds(market, this.#lastMarket) < 0) throw this.#broken('its markets do not ascend')
      this.#lastMarket = market
      // Within a run time never goes back (addRun sees to that), so its ends tell whether it leaves the hour.
      this.#figures.addRun(market, group.ts, group.event, from, row)
      if (group.ts[from]! < start || group.ts[row - 1]! >= end)
        throw this.#broken('a row group spans an hour')
      from = row
    }
  }

  #broken(reason: string): Error {
    return new Error(`${basename(this.path)}: ${reason}`)
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#file === undefined) throw new Error(`${this.temporaryPath} is closed`)
    let done = 0
    while (done < bytes.length) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, this.#offset + done)
      done += bytesWritten
    }
    this.#offset += bytes.length
  }

  async #close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.close()
  }
}
