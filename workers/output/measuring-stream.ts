// Takes the body of an answer as a chunk stream does, and sends nothing: it keeps the size and the digest of the body and of
// its blocks.

import { createHash } from 'node:crypto'
import { CHUNK_BYTES } from '../../shared/limits.ts'
import type { RowOutput } from './chunk-stream.ts'

export interface Measured {
  readonly bytes: number
  /** Lower-case hex digits. */
  readonly sha256: string
}

export class MeasuringStream implements RowOutput {
  /** No early rows: nobody waits for them. */
  readonly hasSent = true
  readonly #checkpoint: () => void
  readonly #buffer: Uint8Array
  readonly #hash = createHash('sha256')
  readonly #blocks: Measured[] = []
  #blockHash = createHash('sha256')
  #position = 0
  #blockBytes = 0
  #bytes = 0

  /** `reserveBytes` is what one indivisible write may need; `checkpoint` throws when nobody wants the figures any more. */
  constructor(reserveBytes: number, checkpoint: () => void) {
    this.#buffer = new Uint8Array(Math.max(CHUNK_BYTES, reserveBytes))
    this.#checkpoint = checkpoint
  }

  lacks(bytes: number): boolean {
    return this.#position + bytes > this.#buffer.length
  }

  put(bytes: Uint8Array): void {
    this.#buffer.set(bytes, this.#position)
    this.#position += bytes.length
  }

  async nextChunk(): Promise<void> {
    this.#flush()
    this.#checkpoint()
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#flush()
    this.#digest(bytes)
    this.#checkpoint()
  }

  /** What comes before the first section belongs to it, and what comes behind the last one. */
  async beginSection(section: number): Promise<void> {
    if (section > 0) this.#endBlock()
  }

  endSection(): void {
    this.#flush()
  }

  /** The figures of the whole body and of one block for each section. */
  finish(): Measured & { readonly blocks: readonly Measured[] } {
    this.#endBlock()
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex'), blocks: this.#blocks }
  }

  #endBlock(): void {
    this.#flush()
    this.#blocks.push({ bytes: this.#blockBytes, sha256: this.#blockHash.digest('hex') })
    this.#blockHash = createHash('sha256')
    this.#blockBytes = 0
  }

  #flush(): void {
    this.#digest(this.#buffer.subarray(0, this.#position))
    this.#position = 0
  }

  #digest(bytes: Uint8Array): void {
    this.#hash.update(bytes)
    this.#blockHash.update(bytes)
    this.#bytes += bytes.length
    this.#blockBytes += bytes.length
  }
}
