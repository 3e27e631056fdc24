// A message on its way from its line to the run: how it came, which tells what it means.

import type { LoneBooks } from './lone-books.ts'
import { LOST_MESSAGE } from './frame.ts'
import type { PolymarketMessage } from './frame.ts'
import type { TokenBooks } from './token-books.ts'

export interface Arrival {
  readonly message: PolymarketMessage
  /** The tokens of the list of books that it came with: a connection's first ones. */
  readonly dump?: readonly string[] | undefined
  /** The books that it came with, each in a line of its own. */
  readonly lone?: LoneBooks | undefined
  /** The exchange's time; of a list of books that of the book that changed last: then all of them were as they are. */
  readonly ts: bigint | undefined
  /** When it was sent at the latest, as the message after it shows by the exchange's clock; undefined where none does. */
  readonly sentTs?: bigint | undefined
  /** The recording says when it was received. */
  readonly isReceived: boolean
}

/** The place of a line that could not be read. */
export const LOST: Arrival = { message: LOST_MESSAGE, ts: undefined, isReceived: false }

/** The tokens whose first books of a connection it brings, after one whose books are `tokens`; undefined where it does not. */
export function firstBooksOf(
  { message: { body }, dump, lone }: Arrival,
  tokens: TokenBooks,
): readonly string[] | undefined {
  return body.kind === 'book' && lone?.isBeginning(tokens) === true ? [body.marketId] : dump
}
