// Reads a lob.v1 file of Bookcast's own back into the records that it was made of (lob-evidence.ts), so that more can be
// merged with them.

import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import type { FileMetaData } from 'hyparquet'
import { ROW_GROUP_BYTES_MAX } from '../../shared/limits.ts'
import { crc32Hex } from '../../shared/lob-checksum.ts'
import { EVENT_GAP, EVENT_SET, LOB_FOOTER_KEYS as KEYS } from '../../shared/lob-v1.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import type { FeedSpan } from './feed-strand.ts'
import { decodeEvidence, parsePlaces, parseStrands } from './lob-evidence.ts'
import type { CarriedMarket, EvidenceBlock, EvidencePlace } from './lob-evidence.ts'
import type { StatedStrand } from './lob-evidence.ts'
import { fillColumn, footerValue, readBytes, readLobFooter, readRowGroup } from './lob-file-reading.ts'
import { NO_SEQ } from './market-fold.ts'

/** One record of a file: a row that a message gave, or what was kept beside the rows. `strand` is the file's number. */
export interface LakeRecord {
  readonly market: string
  readonly strand: number
  readonly ts: bigint
  readonly recvTs: bigint
  readonly seq: bigint
  readonly event: number
  readonly side: number
  readonly price: number
  readonly qty: number
}

/** A file's strands, what it began with, and its markets. */
export interface LakeDateOutline {
  readonly strands: readonly (StatedStrand & FeedSpan)[]
  readonly carried: readonly CarriedMarket[]
  /** The books at midnight, as the keyframes state them, are only known when the rows are read. */
  readonly markets: readonly string[]
}

export class LobFileEvidence {
  readonly #path: string
  readonly #file: FileHandle
  readonly #sizeBytes: number
  readonly #metadata: FileMetaData
  readonly #places: readonly EvidencePlace[]
  readonly #strands: readonly StatedStrand[]

  private constructor(path: string, file: FileHandle, sizeBytes: number, metadata: FileMetaData) {
    this.#path = path
    this.#file = file
    this.#sizeBytes = sizeBytes
    this.#metadata = metadata
    this.#places = parsePlaces(footerValue(metadata, KEYS.evidence) ?? '[]')
    this.#strands = parseStrands(footerValue(metadata, KEYS.strands) ?? '[]')
  }

  /** Undefined for a file that keeps no evidence. Throws an error that names a file which cannot be read. */
  static async open(path: string): Promise<LobFileEvidence | undefined> {
    const file = await open(path)
    try {
      const { size } = await file.stat()
      const { metadata } = await readLobFooter(file, size)
      if (footerValue(metadata, KEYS.strands) === undefined) {
        await file.close()
        return undefined
      }
      return new LobFileEvidence(path, file, size, metadata)
    } catch (error) {
      await file.close()
      throw named(path, error)
    }
  }

  async close(): Promise<void> {
    await this.#file.close()
  }

  /** The strands without their anchors. */
  get strands(): readonly StatedStrand[] {
    return this.#strands
  }

  get markets(): readonly string[] {
    const list = JSON.parse(footerValue(this.#metadata, KEYS.markets) ?? '[]') as { id: string }[]
    return list.map(({ id }) => id)
  }

  async outline(): Promise<LakeDateOutline> {
    try {
      const [first, last] = [this.#places[0], this.#places.at(-1)]
      if (first === undefined || last === undefined) throw new Error('it has no evidence')
      const anchors = (await this.#readBlock(last)).anchors
      if (anchors?.length !== this.#strands.length) throw new Error('its strands have no anchors')
      return {
        strands: this.#strands.map((strand, number) => ({ ...strand, anchors: anchors[number]! })),
        carried: first === last ? [] : (await this.#readBlock(first)).carried,
        markets: this.markets,
      }
    } catch (error) {
      throw named(this.#path, error)
    }
  }

  /** Tells every record, in the order of the file, and the keyframes at its first midnight. */
  async read(
    onRecord: (record: LakeRecord) => void,
    onKeyframe: (market: string, side: number, price: number, qty: number) => void,
    dayStart: bigint,
    { isFirstHourOnly = false } = {},
  ): Promise<void> {
    try {
      let group = 0
      let row = 0
      for (const place of this.#places) {
        const block = await this.#readBlock(place)
        const runs = new RunReader(block)
        for (; group < this.#metadata.row_groups.length; group++) {
          const { num_rows: rows, columns } = this.#metadata.row_groups[group]!
          if (Number(columns[0]!.meta_data!.data_page_offset) > place.offset) break
          const end = row + Number(rows)
          const columnsRead = await this.#readRows(row, end)
          for (let index = 0; index < end - row; index++) {
            const record = recordAt(columnsRead, index)
            if (record.seq !== NO_SEQ && record.event !== EVENT_GAP) {
              onRecord({ ...record, strand: runs.next(record.market) })
            } else if (record.ts === dayStart && record.seq === NO_SEQ && record.event === EVENT_SET) {
              onKeyframe(record.market, record.side, record.price, record.qty)
            }
          }
          row = end
          if (isFirstHourOnly && columnsRead.ts.at(-1)! >= dayStart + NS_PER_HOUR) return
        }
        for (let kept = 0; kept < block.keptRecords; kept++) onRecord(keptRecord(block, kept))
      }
    } catch (error) {
      throw named(this.#path, error)
    }
  }

  async #readBlock({ offset, sizeBytes, crc32 }: EvidencePlace): Promise<EvidenceBlock> {
    const bytes = await readBytes(this.#file, offset, offset + sizeBytes)
    if (crc32Hex(bytes) !== crc32) throw new Error('its evidence has a wrong checksum')
    return decodeEvidence(bytes, ROW_GROUP_BYTES_MAX)
  }

  async #readRows(rowStart: number, rowEnd: number): Promise<ReadColumns> {
    const chunks = await readRowGroup(this.#file, this.#sizeBytes, this.#metadata, rowStart, rowEnd)
    const column = <T>(name: keyof ReadColumns): T[] => {
      const values: T[] = []
      fillColumn(values, chunks.get(name) ?? [])
      return values
    }
    return {
      ts: column('ts'),
      recv_ts: column('recv_ts'),
      seq: column('seq'),
      market_id: column('market_id'),
      event: column('event'),
      side: column('side'),
      price: column('price'),
      qty: column('qty'),
    }
  }
}

interface ReadColumns {
  readonly ts: readonly bigint[]
  readonly recv_ts: readonly bigint[]
  readonly seq: readonly bigint[]
  readonly market_id: readonly string[]
  readonly event: readonly number[]
  readonly side: readonly number[]
  readonly price: readonly number[]
  readonly qty: readonly bigint[]
}

function recordAt(columns: ReadColumns, row: number): Omit<LakeRecord, 'strand'> {
  return {
    market: columns.market_id[row]!,
    ts: columns.ts[row]!,
    recvTs: columns.recv_ts[row]!,
    seq: columns.seq[row]!,
    event: columns.event[row]!,
    side: columns.side[row]!,
    price: columns.price[row]!,
    qty: Number(columns.qty[row]!),
  }
}

function keptRecord({ kept, keptMarkets }: EvidenceBlock, record: number): LakeRecord {
  return {
    market: keptMarkets[kept.market(record)]!,
    strand: kept.span(record),
    ts: kept.ts(record),
    recvTs: kept.recvTs(record),
    seq: kept.seq(record),
    event: kept.event(record),
    side: kept.side(record),
    price: kept.price(record),
    qty: Number(kept.qty(record)),
  }
}

/** Which strand a market's next row is of. */
class RunReader {
  readonly #runs = new Map<string, { readonly list: readonly number[]; at: number; left: number }>()

  constructor({ runs }: EvidenceBlock) {
    for (const [market, list] of runs) this.#runs.set(market, { list, at: 0, left: list[1] ?? 0 })
  }

  next(market: string): number {
    const run = this.#runs.get(market)
    if (run !== undefined && run.left === 0) {
      run.at += 2
      run.left = run.list[run.at + 1] ?? 0
    }
    const strand = run?.list[run.at]
    if (run === undefined || strand === undefined) throw new Error('its evidence does not fit its rows')
    run.left--
    return strand
  }
}

function named(path: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error)
  return new Error(`${path} cannot be merged with: ${reason}`, { cause: error })
}
