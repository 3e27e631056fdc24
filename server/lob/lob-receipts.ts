// The receipts that are known: of each question the one of its last answer. The oldest ones go.

import { canonicalParameters } from '../../shared/lob-canonical.ts'
import type { LobReceipt } from '../../shared/lob-receipt.ts'
import type { LobHead, LobQuery, LobTask } from '../../shared/lob-task.ts'
import { Rounds } from '../answers/rounds.ts'

/** Blocks in all: about ten megabytes. */
const BLOCKS_MAX = 40_000

export interface KnownReceipt {
  /** Of the answer that it is of. */
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
  readonly #known = new Map<string, KnownReceipt>()
  readonly #blocksMax: number
  #blocks = 0

  constructor(blocksMax = BLOCKS_MAX) {
    this.#blocksMax = blocksMax
  }

  /** Of the answer when it was measured: it may be another one by now. */
  last(query: LobQuery, pin: LobTask['pin']): KnownReceipt | undefined {
    return this.#known.get(questionOf(query, pin))
  }

  keep(query: LobQuery, pin: LobTask['pin'], made: KnownReceipt): void {
    const question = questionOf(query, pin)
    this.#forget(question)
    this.#known.set(question, made)
    this.#blocks += sizeOf(made)
    for (const oldest of this.#known.keys()) {
      if (this.#blocks <= this.#blocksMax) return
      this.#forget(oldest)
    }
  }

  #forget(question: string): void {
    const known = this.#known.get(question)
    if (known === undefined) return
    this.#known.delete(question)
    this.#blocks -= sizeOf(known)
  }
}

function questionOf(query: LobQuery, pin: LobTask['pin']): string {
  return `${canonicalParameters(query)} ${pin?.version ?? ''}`
}

function sizeOf({ receipt }: KnownReceipt): number {
  return 1 + receipt.blocks.length
}

/** The digest of a body as its header says it (RFC 9530). */
export function reprDigest({ sha256 }: LobReceipt): string {
  return `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`
}
