// The receipts that are known, by the identity of the answer. The oldest ones go.

import type { LobReceipt } from '../../shared/lob-receipt.ts'

/** Blocks in all: about ten megabytes. */
const BLOCKS_MAX = 40_000

export class LobReceipts {
  readonly #known = new Map<string, LobReceipt>()
  readonly #blocksMax: number
  #blocks = 0

  constructor(blocksMax = BLOCKS_MAX) {
    this.#blocksMax = blocksMax
  }

  get(identity: string): LobReceipt | undefined {
    return this.#known.get(identity)
  }

  keep(identity: string, made: LobReceipt): void {
    if (this.#known.has(identity)) return
    this.#known.set(identity, made)
    this.#blocks += sizeOf(made)
    for (const [oldest, receipt] of this.#known) {
      if (this.#blocks <= this.#blocksMax) return
      this.#known.delete(oldest)
      this.#blocks -= sizeOf(receipt)
    }
  }
}

function sizeOf({ blocks }: LobReceipt): number {
  return 1 + blocks.length
}

/** The digest of a body as its header says it (RFC 9530). */
export function reprDigest({ sha256 }: LobReceipt): string {
  return `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`
}
