// Known receipts: for each question the one of its last answer. The oldest ones are evicted.

import { BoundedMap } from '../../shared/bounded-map.ts'
import { canonicalParameters } from '../../shared/lob-canonical.ts'
import type { LobReceipt } from '../../shared/lob-receipt.ts'
import type { LobHead, LobQuery, LobTask } from '../../shared/lob-task.ts'
import { Rounds } from '../answers/rounds.ts'

/** The limit on blocks in total: about ten megabytes. */
const BLOCKS_MAX = 40_000

export interface KnownReceipt {
  readonly identity: string
  readonly receipt: LobReceipt
}

/** The receipt of the current answer. */
export interface PresentReceipt extends KnownReceipt {
  readonly head: LobHead
}

export class LobReceipts {
  /** Concurrent requests for a receipt that is not known share a round. */
  readonly rounds = new Rounds<PresentReceipt | null>()
  readonly #known: BoundedMap<KnownReceipt>

  constructor(blocksMax = BLOCKS_MAX) {
    this.#known = new BoundedMap(blocksMax)
  }

  /** The receipt of the last measured answer; the current answer may be another one. */
  last(query: LobQuery, pin: LobTask['pin']): KnownReceipt | undefined {
    return this.#known.get(questionOf(query, pin))
  }

  keep(query: LobQuery, pin: LobTask['pin'], made: KnownReceipt): void {
    this.#known.set(questionOf(query, pin), made, 1 + made.receipt.blocks.length)
  }
}

/** The key of an answer: the same for the same rows of the same version. */
export function questionOf(query: LobQuery, pin: LobTask['pin']): string {
  return `${canonicalParameters(query)} ${pin?.version ?? ''}`
}

/** The digest of a body as a header value (RFC 9530). */
export function reprDigest({ sha256 }: LobReceipt): string {
  return `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`
}
