// A lob.v1 file while it grows: checks every row group, assigns its offset, and collects the figures for the footer. It writes
// nothing itself, so that a file can also be continued later, or continued twice from one point.

import type { RowGroup } from 'hyparquet'
import { crc32Hex } from '../../shared/lob-checksum.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import { PARQUET_MAGIC, encodeLobFooter } from './lob-footer.ts'
import type { LobFileLabels } from './lob-footer.ts'
import { chunkRange, encodeLobPages, metaOf } from './lob-parquet-pages.ts'
import type { LobRowGroup } from './lob-row-group.ts'
import { LobFigures, compareIds } from './lob-summary.ts'
import type { LobRowFigures } from './lob-summary.ts'

/** The state of the contents as plain data. */
export type LobFileContentsState = ReturnType<LobFileContents['state']>

export class LobFileContents {
  #sizeBytes: number
  #lastHour: bigint
  #lastMarket: string
  readonly #figures: LobFigures
  readonly #rowGroups: RowGroup[]
  readonly #columnCrc32: (readonly string[])[]

  constructor(state?: LobFileContentsState) {
    this.#sizeBytes = state?.sizeBytes ?? PARQUET_MAGIC.length
    this.#lastHour = state?.lastHour ?? -1n
    this.#lastMarket = state?.lastMarket ?? ''
    this.#figures = new LobFigures(state?.figures)
    this.#rowGroups = [...(state?.rowGroups ?? [])]
    this.#columnCrc32 = [...(state?.columnCrc32 ?? [])]
  }

  /** The offset of the next row group: the bytes of the magic and of all row groups so far. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  get hasRows(): boolean {
    return this.#rowGroups.length > 0
  }

  /**
   * Encodes the rows of `group` (at least one) as the next row group and returns its bytes. Throws when the rows violate
   * lob.v1: more than one UTC hour, markets out of order, a market's time going back.
   */
  add(group: LobRowGroup): Uint8Array {
    this.#check(group)
    const { bytes, rowGroup } = encodeLobPages(group)
    const checksums: string[] = []
    for (const column of rowGroup.columns) {
      const meta = metaOf(column)
      const { start, end } = chunkRange(meta)
      checksums.push(crc32Hex(bytes.subarray(start, end)))
      meta.data_page_offset += BigInt(this.#sizeBytes)
      if (meta.dictionary_page_offset !== undefined) meta.dictionary_page_offset += BigInt(this.#sizeBytes)
    }
    rowGroup.file_offset = BigInt(this.#sizeBytes)
    this.#rowGroups.push(rowGroup)
    this.#columnCrc32.push(checksums)
    this.#sizeBytes += bytes.length
    return bytes
  }

  /**
   * Allows the next rows to start with the first market again within the same hour. Readers accept that, but a final file has
   * each market of an hour in one run.
   */
  startPortion(): void {
    this.#lastMarket = ''
  }

  /** The footer with its length and magic, and the figures in it. Throws for a file without rows. */
  footer(labels: LobFileLabels): { readonly bytes: Uint8Array; readonly figures: LobRowFigures } {
    const figures = this.#figures.result()
    const parts = { rowGroups: this.#rowGroups, columnCrc32: this.#columnCrc32 }
    return { bytes: encodeLobFooter(labels, figures, parts), figures }
  }

  state() {
    return {
      sizeBytes: this.#sizeBytes,
      lastHour: this.#lastHour,
      lastMarket: this.#lastMarket,
      figures: this.#figures.state(),
      rowGroups: [...this.#rowGroups],
      columnCrc32: [...this.#columnCrc32],
    }
  }

  #check(group: LobRowGroup): void {
    if (group.rows === 0) throw new Error('a row group needs at least one row')
    const { midnight, ts, lag } = group.times()
    const hour = group.ts[0]! / NS_PER_HOUR
    if (hour < this.#lastHour) throw new Error('its hours do not ascend')
    if (hour > this.#lastHour) this.#lastMarket = ''
    this.#lastHour = hour
    const start = Number(hour * NS_PER_HOUR - midnight)
    const end = start + Number(NS_PER_HOUR)
    let from = 0
    for (let row = 1; row <= group.rows; row++) {
      if (row < group.rows && group.market[row] === group.market[from]) continue
      const market = group.markets[group.market[from]!]!
      if (compareIds(market, this.#lastMarket) < 0) throw new Error('its markets do not ascend')
      this.#lastMarket = market
      // Times of one market ascend (addRun checks it), so the first and the last show whether they leave the hour.
      this.#figures.addRun(market, midnight, { ts, lag, event: group.event }, from, row)
      if (ts[from]! < start || ts[row - 1]! >= end) throw new Error('a row group spans an hour')
      from = row
    }
  }
}
