// An open order-book file. The request reads only from its descriptor, so replacing the file by a rename does not disturb it. A
// file that is changed in place is detected by its checksums, or by its size and time, and never served as if it were whole.
// Parsed footers are cached until the file's path, size, time or inode changes.

import { closeSync, constants, fstatSync, openSync, readSync, type BigIntStats } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { ApiError } from '../../shared/errors.ts'
import { FileFacts } from '../../shared/file-facts.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { lobKey } from '../../shared/lake-layout.ts'
import { type LobSource } from '../../shared/lob-sources.ts'
import { FOOTER_BYTES_MAX, ROW_GROUP_BYTES_MAX } from '../../shared/limits.ts'
import { NS_PER_MS, utcDateStartMs } from '../../shared/utc-date.ts'
import type { ColumnChunk } from '../../shared/lob-file/column-pages.ts'
import { parseFooter } from '../../shared/lob-file/file-footer.ts'
import { footerTexts, textAt } from '../../shared/lob-file/footer-texts.ts'
import { indexFile, type FileIndex } from './file-index.ts'
import { lakeFileError, namingFile } from '../lake/lake-file-error.ts'
import type { PinnedFile, PinnedFiles } from '../lake/pinned-files.ts'
import { watched } from '../lake/watched-files.ts'

const FOOTER_CACHE_ENTRIES_MAX = 1024

const TAIL_BYTES = 64 * 1024
const LIST_TAIL_BYTES = 16 * 1024
const MAGIC = 'PAR1'
// The text in Thrift: its length, then its bytes.
const MARKETS_KEY = '\u0007markets'

const cache = new FileFacts<FileIndex>(FOOTER_CACHE_ENTRIES_MAX)
// One buffer per thread for the bytes of a column chunk or a footer; decoders copy the values that they keep.
let scratch = new Uint8Array(1 << 20)

export class LakeFile {
  /** The file's name below the lake's root. */
  readonly name: string
  /** The name for messages; for a kept file of a version, where it is kept. */
  readonly place: string
  readonly date: string
  /** The date's midnight UTC, ns since the epoch. */
  readonly baseNs: bigint
  readonly #fd: number
  readonly #stat: BigIntStats
  readonly #pinned: PinnedFile | undefined
  #index: FileIndex | undefined

  private constructor(
    name: string,
    date: string,
    fd: number,
    stat: BigIntStats,
    pinned: PinnedFile | undefined,
  ) {
    this.name = name
    this.place = pinned?.place ?? name
    this.date = date
    this.baseNs = BigInt(utcDateStartMs(date)!) * NS_PER_MS
    this.#fd = fd
    this.#stat = stat
    this.#pinned = pinned
  }

  /** Opens the file of a series and date, as of `version` if the request is pinned. Undefined if there is none. */
  static open(
    lake: string,
    source: LobSource,
    series: string,
    date: string,
    version?: PinnedFiles,
  ): LakeFile | undefined {
    const name = lobKey(source, series, date)
    const pinned = version?.find(name)
    if (version !== undefined && pinned === undefined) return undefined
    const path = pinned?.path ?? join(lake, ...name.split('/'))
    const place = pinned?.place ?? name
    let fd: number
    try {
      // Without O_NONBLOCK, opening a pipe would wait for a writer, and the thread could not be ended.
      fd = watched(name, () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK))
    } catch (error) {
      if (error instanceof ApiError) throw error
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
        if (pinned !== undefined) throw version!.gone(name)
        return undefined
      }
      throw lakeFileError(place, (error as NodeJS.ErrnoException).code ?? 'it cannot be opened', error)
    }
    try {
      const stat = watched(name, () => fstatSync(fd, { bigint: true }))
      if (!stat.isFile()) throw new Error('it is no regular file')
      if (pinned !== undefined && identityOf(stat) !== identityOf(pinned.stat)) throw version!.gone(name)
      return new LakeFile(name, date, fd, stat, pinned)
    } catch (error) {
      closeSync(fd)
      if (error instanceof ApiError) throw error
      throw lakeFileError(place, (error as Error).message, error)
    }
  }

  /** Changes whenever the file does. A pinned file is identified by its digest, because its place may change. */
  get identity(): string {
    return this.#pinned?.sha256 ?? identityOf(this.#stat)
  }

  /** The same for all copies of a file if its footer has checksums of its contents; else as `identity`. */
  get contents(): string {
    return this.index.contents ?? this.identity
  }

  get stamp(): string {
    return identityOf(this.#stat)
  }

  get sizeBytes(): number {
    return Number(this.#stat.size)
  }

  /** When the file was last written, ms since the epoch. */
  get writtenAtMs(): number {
    return Number(this.#stat.mtimeMs)
  }

  close(): void {
    closeSync(this.#fd)
  }

  /** The file's index: from the cache, from the footer, or from one scan of the rows. */
  get index(): FileIndex {
    if (this.#index !== undefined) return this.#index
    const { identity } = this
    const cacheKey = this.#pinned?.sha256 ?? this.name
    let index = cache.of(cacheKey, identity)
    if (index === undefined) {
      index = namingFile(this.place, () =>
        indexFile(this, parseFooter(this.#readFooterBytes(), this.sizeBytes, this.date, this.baseNs)),
      )
      this.assertUnchanged()
      cache.add(cacheKey, identity, index)
    }
    this.#index = index
    return index
  }

  /**
   * The market ids in the last bytes of the footer; undefined if they do not contain the whole list. This takes one small read
   * and no other decoding, so that files which a request does not need are cheap. No checksum covers the list: a caller that
   * finds a market there must verify it in the index.
   */
  listedMarkets(): readonly string[] | undefined {
    const length = Math.min(this.sizeBytes, LIST_TAIL_BYTES)
    const offset = this.sizeBytes - length
    const tail = Buffer.from(
      namingFile(this.place, () => this.#readExactly(offset, length)).buffer,
      0,
      length,
    )
    const list = tail.toString('latin1', length - MAGIC.length) === MAGIC ? tail.indexOf(MARKETS_KEY) : -1
    return list === -1 ? undefined : idsOfList(tail.subarray(list + MARKETS_KEY.length))
  }

  /** Single values of the footer (footer-texts.ts). */
  footerTexts<Key extends string>(keys: readonly Key[]): Readonly<Partial<Record<Key, string>>> | undefined {
    return namingFile(this.place, () => {
      const tail = this.#readFooterBytes()
      const bytes = Buffer.from(tail.buffer, tail.byteOffset, tail.byteLength)
      const length = bytes.readUInt32LE(bytes.length - 8)
      return footerTexts(bytes.subarray(bytes.length - 8 - length, bytes.length - 8), keys)
    })
  }

  /** The end of the file with the whole footer, its length and the magic. Valid until the next call on this thread. */
  #readFooterBytes(): Uint8Array {
    const fileBytes = this.sizeBytes
    if (fileBytes < 12) throw new Error('it is truncated')
    const length = Math.min(fileBytes, TAIL_BYTES)
    const tail = this.#readExactly(fileBytes - length, length)
    if (Buffer.from(tail.subarray(-4)).toString('latin1') !== MAGIC) {
      throw new Error('it is truncated or no parquet file')
    }
    const footerBytes =
      new DataView(tail.buffer, tail.byteOffset, tail.byteLength).getUint32(tail.length - 8, true) + 8
    if (footerBytes + 4 > fileBytes || footerBytes > FOOTER_BYTES_MAX)
      throw new Error('its footer is damaged')
    return footerBytes > tail.length ? this.#readExactly(fileBytes - footerBytes, footerBytes) : tail
  }

  /** Valid until the next call on this thread. */
  #readExactly(offset: number, length: number): Uint8Array {
    if (scratch.length < length) scratch = new Uint8Array(length * 2)
    const bytes = scratch.subarray(0, length)
    for (let done = 0; done < length;) {
      const from = done
      const count = watched(this.name, () => readSync(this.#fd, bytes, from, length - from, offset + from))
      if (count === 0) throw new Error('it is truncated')
      done += count
    }
    return bytes
  }

  /**
   * The bytes of a column chunk, verified by the footer's checksum if there is one. Valid until the next call on this thread.
   */
  readChunk(chunk: ColumnChunk): Uint8Array {
    if (chunk.sizeBytes > ROW_GROUP_BYTES_MAX) {
      throw new Error(`column ${chunk.name} has ${chunk.sizeBytes} bytes in one row group`)
    }
    const bytes = this.#readExactly(chunk.offset, chunk.sizeBytes)
    if (chunk.crc32 !== undefined && crc32(bytes) !== chunk.crc32) {
      throw new Error(`column ${chunk.name} has a wrong checksum`)
    }
    return bytes
  }

  /** Throws if the file has been written to since it was opened. */
  assertUnchanged(): void {
    const now = watched(this.name, () => fstatSync(this.#fd, { bigint: true }))
    if (now.size !== this.#stat.size || now.mtimeNs !== this.#stat.mtimeNs) {
      throw new ApiError('lake_file_changed', `The lake file ${this.place} was changed while it was read.`)
    }
  }
}

/** The ids of the list of markets in the footer. `bytes` begin after the key: a field header, the length, and the JSON. */
function idsOfList(bytes: Buffer): readonly string[] | undefined {
  const text = textAt(bytes, 1)
  try {
    const list = JSON.parse(text ?? '') as readonly { readonly id: unknown }[]
    const ids = list.map(({ id }) => id)
    return ids.every((id) => typeof id === 'string') ? ids : undefined
  } catch {
    return undefined
  }
}

/** Returns the open file of a date, or undefined if there is none. */
export type FileOfDate = (date: string) => LakeFile | undefined
