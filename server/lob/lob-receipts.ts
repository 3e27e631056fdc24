// The receipts that are known: of each question the one of its last answer. The oldest ones go.

import { BoundedMap } from '../../shared/bounded-map.ts'
import { canonicalParameters } from '../../shared/lob-canonical.ts'
import type { LobReceipt } from '../../shared/lob-receipt.ts'
import type { LobHead, LobQuery, LobTask } from '../../shared/lob-task.ts'
import { Rounds } from '../answers/rounds.ts'

/** Blocks in all: about ten megabytes. */
const BLOCKS_MAX = 40_000

export interface KnownReceipt {
  readonly identity: string
  readonly receipt: LobReceipt
}

/** Of the answer as it is now. */
export interface PresentReceipt extends KnownReceipt {
  readonly head: LobHead
}

export class LobReceipts {
  /** Requests that ask at the same time for a receipt that is not known. */
  readonly rounds = new Rounds<PresentReceipt | null>()
  readonly #known: BoundedMap<KnownReceipt>

  constructor(blocksMax = BLOCKS_MAX) {
    this.#known = new BoundedMap(blocksMax)
  }

  /** Of the answer when it was measured: it may be another one by now. */
  last(query: LobQuery, pin: LobTask['pin']): KnownReceipt | undefined {
    return this.#known.get(questionOf(query, pin))
  }

  keep(query: LobQuery, pin: LobTask['pin'], made: KnownReceipt): void {
    this.#known.set(questionOf(query, pin), made, 1 + made.receipt.blocks.length)
  }
}

/** What an answer is asked by; the same for the same rows of the same version. */
export function questionOf(query: LobQuery, pin: LobTask['pin']): string {
  return `${canonicalParameters(query)} ${pin?.version ?? ''}`
}

/** The digest of a body as its header says it (RFC 9530). */
export function reprDigest({ sha256 }: LobReceipt): string {
  return `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`
}
