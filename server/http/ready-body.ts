// A body that is complete before it is sent, with the coded forms that clients have requested. Each form is made once.

import { type Compression, compressWhole } from './compression.ts'
import type { ContentCoding } from './content-coding.ts'
import type { ByteStream } from './byte-stream.ts'

/** A long body is sent in such pieces, so that other streams get their turns in between. */
const PIECE_BYTES = 256 * 1024

export class ReadyBody {
  readonly bytes: Uint8Array
  readonly #coded = new Map<Compression, Uint8Array | Promise<Uint8Array>>()
  readonly #keep: (bytes: number) => boolean

  /** @param keep reserves bytes for a coded form; false if there is no room */
  constructor(bytes: Uint8Array, keep: (bytes: number) => boolean) {
    this.bytes = bytes
    this.#keep = keep
  }

  /** Without a promise if the form exists already. */
  inCoding(coding: ContentCoding): Uint8Array | Promise<Uint8Array> {
    if (coding === 'identity') return this.bytes
    const known = this.#coded.get(coding)
    if (known !== undefined) return known
    const making = this.#compress(coding)
    this.#coded.set(coding, making)
    return making
  }

  async #compress(coding: Compression): Promise<Uint8Array> {
    try {
      const bytes = await compressWhole(coding, this.bytes)
      if (this.#keep(bytes.length)) this.#coded.set(coding, bytes)
      else this.#coded.delete(coding)
      return bytes
    } catch (error) {
      this.#coded.delete(coding)
      throw error
    }
  }
}

/** A ready body as a stream, at the pace of its client; `onClose` is called when it ends. */
export function readyStream(
  body: ReadyBody,
  rows: number,
  onClose: () => void,
  coding: ContentCoding = 'identity',
): ByteStream {
  let start = 0
  return {
    rows,
    inCoding: (other) => readyStream(body, rows, onClose, other),
    async next() {
      const ready = body.inCoding(coding)
      const bytes = ready instanceof Uint8Array ? ready : await ready
      if (start >= bytes.length) return null
      start += PIECE_BYTES
      return bytes.subarray(start - PIECE_BYTES, start)
    },
    async close() {
      onClose()
    },
  }
}
