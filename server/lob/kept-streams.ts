// The bodies of order-book answers that are kept, or are to be: one that passes on what a stream gives and takes a copy for
// the disk, and one that gives what lies there.

import { ApiError } from '../../shared/errors.ts'
import type { ByteStream, StreamReader } from '../http/byte-stream.ts'
import { CompressedStream } from '../http/compression.ts'
import type { ContentCoding } from '../http/content-coding.ts'
import type { KeptCoding } from './block-cache.ts'
import type { BlockWriter } from './block-writer.ts'
import type { KeptBody } from './kept-body.ts'
import { BlockDamaged } from './block-file.ts'

/** A place to keep an answer in a coding; undefined where it is not to be kept. */
export type KeeperOf = (coding: KeptCoding) => BlockWriter | undefined

/** A stream in coded form that is kept in that form, where it is one that is kept. */
function codedAndKept(source: ByteStream, coding: ContentCoding, keeperOf: KeeperOf): ByteStream {
  if (coding === 'identity') return source
  const coded = new CompressedStream(source, coding)
  return coding === 'zstd' ? new KeepingStream(coded, keeperOf, 'zstd') : coded
}

/** Gives what its source gives, and keeps it. */
export class KeepingStream implements ByteStream {
  readonly #source: ByteStream
  readonly #keeperOf: KeeperOf
  readonly #coding: KeptCoding
  #writer: BlockWriter | undefined
  #hasBegun = false

  constructor(source: ByteStream, keeperOf: KeeperOf, coding: KeptCoding = 'identity') {
    this.#source = source
    this.#keeperOf = keeperOf
    this.#coding = coding
  }

  get rows(): number | null {
    return this.#source.rows
  }

  attach(reader: StreamReader): void {
    this.#source.attach?.(reader)
  }

  inCoding(coding: ContentCoding): ByteStream {
    return codedAndKept(this.#source, coding, this.#keeperOf)
  }

  async next(): Promise<Uint8Array | null> {
    if (!this.#hasBegun) this.#writer = this.#keeperOf(this.#coding)
    this.#hasBegun = true
    await this.#writer?.settle()
    const chunk = await this.#source.next()
    if (chunk === null) {
      // Who asks next, asks when it is there.
      await this.#writer?.finish()
      this.#writer = undefined
    } else this.#writer?.take(chunk)
    return chunk
  }

  async close(): Promise<void> {
    await this.#source.close()
    await this.#writer?.abandon()
  }
}

export interface KeptStreamOptions {
  readonly rows: number
  /** The kept forms of the answer; at least one. */
  readonly bodies: ReadonlyMap<KeptCoding, KeptBody>
  /** Makes the same answer again, as it is; rejects where it is another by now. */
  readonly remake: () => Promise<ByteStream>
  readonly keeperOf: KeeperOf
}

/** Gives an answer as it lies on disk. Where its bytes turn out damaged it is made again and goes on from there. */
export class KeptStream implements ByteStream {
  readonly #options: KeptStreamOptions
  #body: KeptBody | undefined
  /** In place of the kept body. */
  #remade: ByteStream | undefined
  #reader: StreamReader | undefined
  #givenBytes = 0
  #isWhole = false

  constructor(options: KeptStreamOptions) {
    this.#options = options
    this.#body = options.bodies.get('identity')
  }

  get rows(): number | null {
    return this.#isWhole ? this.#options.rows : null
  }

  /** Also of an answer that is made again: its bytes are the same. */
  get sizeBytes(): number | undefined {
    return this.#body?.sizeBytes
  }

  attach(reader: StreamReader): void {
    this.#reader = reader
    this.#remade?.attach?.(reader)
  }

  inCoding(coding: ContentCoding): ByteStream {
    const { bodies, keeperOf, rows } = this.#options
    const body = coding === 'zstd' ? bodies.get('zstd') : undefined
    const code = (): ByteStream => codedAndKept(this, coding, keeperOf)
    return body === undefined ? code() : new KeptCodedStream(body, rows, this, code)
  }

  async next(): Promise<Uint8Array | null> {
    const bytes = this.#remade === undefined ? await this.#nextKept() : await this.#remade.next()
    if (bytes === null) this.#isWhole = true
    else this.#givenBytes += bytes.length
    return bytes
  }

  async close(): Promise<void> {
    for (const body of this.#options.bodies.values()) body.close()
    await this.#remade?.close()
  }

  async #nextKept(): Promise<Uint8Array | null> {
    try {
      if (this.#givenBytes === 0) this.#body?.use()
      if (this.#body !== undefined) return await this.#body.next()
    } catch (error) {
      if (!(error instanceof BlockDamaged)) throw error
    }
    return this.#nextRemade()
  }

  /** The same bytes from a thread, behind those that were given already; they are kept anew where none were. */
  async #nextRemade(): Promise<Uint8Array | null> {
    const source = await this.#options.remake()
    this.#remade = new KeepingStream(source, this.#options.keeperOf)
    if (this.#reader !== undefined) this.#remade.attach?.(this.#reader)
    for (let toSkip = this.#givenBytes; ;) {
      const bytes = await this.#remade.next()
      if (bytes === null && toSkip > 0)
        throw new ApiError('lake_file_changed', 'An answer made again is shorter than what was kept of it.')
      if (bytes === null || bytes.length > toSkip) return bytes === null ? null : bytes.subarray(toSkip)
      toSkip -= bytes.length
    }
  }
}

/** Gives the coded form that lies on disk. It is short and is checked as a whole before its first byte is given. */
class KeptCodedStream implements ByteStream {
  readonly #body: KeptBody
  readonly #rows: number
  readonly #plain: ByteStream
  readonly #code: () => ByteStream
  #reader: StreamReader | undefined
  /** What is given instead when the file is damaged. */
  #coded: ByteStream | undefined
  #isChecked = false
  #isWhole = false

  /** `code` makes the coded form of `plain` anew. */
  constructor(body: KeptBody, rows: number, plain: ByteStream, code: () => ByteStream) {
    this.#body = body
    this.#rows = rows
    this.#plain = plain
    this.#code = code
  }

  get rows(): number | null {
    if (this.#coded !== undefined) return this.#coded.rows
    return this.#isWhole ? this.#rows : null
  }

  get sizeBytes(): number | undefined {
    return this.#coded === undefined ? this.#body.sizeBytes : undefined
  }

  attach(reader: StreamReader): void {
    this.#reader = reader
    this.#coded?.attach?.(reader)
  }

  async next(): Promise<Uint8Array | null> {
    if (!this.#isChecked) {
      this.#isChecked = true
      if (await this.#body.isWhole()) this.#body.use()
      else {
        this.#coded = this.#code()
        if (this.#reader !== undefined) this.#coded.attach?.(this.#reader)
      }
    }
    if (this.#coded !== undefined) return this.#coded.next()
    const bytes = await this.#body.next()
    this.#isWhole = bytes === null
    return bytes
  }

  async close(): Promise<void> {
    await (this.#coded ?? this.#plain).close()
  }
}
