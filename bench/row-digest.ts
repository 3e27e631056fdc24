// A running digest of snapshot rows as ndjson, to compare the outputs of different programs.

import { createHash } from 'node:crypto'

const LF = 10

export class RowDigest {
  readonly #hash = createHash('sha256')
  rows = 0
  sizeBytes = 0

  /** Bytes of ndjson, split anywhere. */
  addBytes(bytes: Uint8Array): void {
    this.#hash.update(bytes)
    this.sizeBytes += bytes.length
    for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) this.rows += 1
  }

  /** One row without its line feed. */
  addRow(json: string): void {
    this.addBytes(Buffer.from(`${json}\n`))
  }

  hex(): string {
    return this.#hash.copy().digest('hex')
  }
}
