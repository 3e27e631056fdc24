// Where a decoder of Polymarket's messages stands between two of them, as plain data.

import type { FeedRunState } from '../../feed/feed-run.ts'
import type { MessageClockState } from '../../feed/message-clock-options.ts'
import type { TokenBooksState } from './token-books.ts'

export interface PolymarketDecoderState {
  readonly clock: MessageClockState
  readonly name: string
  readonly run: FeedRunState | undefined
  readonly tokens: TokenBooksState
  /** Older states do not say it. */
  readonly lagNs?: bigint | undefined
}
