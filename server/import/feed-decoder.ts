// What the import needs of an exchange's decoder: frames in, book events out to the sink it was made with.

import type { BookEventSink } from './market-books.ts'
import type { ImportTally } from './import-tally.ts'
import type { Frame } from './recorded-message.ts'

export interface FeedDecoder {
  /** A new file begins: it may continue the connection of the file before or be another one. */
  startFile(): void
  /** One frame in order of arrival. Throws BadLineError, and then has changed nothing. */
  decode(frame: Frame, recvTs: bigint | undefined): void
  /** A message could not be read and is skipped: what it would have changed is unknown. */
  skipBadLine(): void
  /**
   * The recording ends, or is looked at while it goes on: the sink is told how far it covers. Where every message has
   * a receive time it may be called at any time and changes nothing.
   */
  finish(): void
}

/** A decoder that can be put away and go on later as if nothing had been. */
export interface ResumableDecoder extends FeedDecoder {
  /** Plain data for the constructor's option `state`. Throws while messages wait for a time. */
  state(): unknown
  /** Markets whose book is unknown since a gap. */
  gappedMarkets(): string[]
  /** Forgets the markets whose book is unknown since a gap; they are new if they come back. */
  forgetGapped(): void
}

export interface FeedDecoderOptions {
  readonly sink: BookEventSink
  readonly tally: ImportTally
  /** Files every market under this series instead of its own. */
  readonly series?: string | undefined
  /** The series of single markets, where the recorder knows it; before `series`. */
  readonly seriesOf?: ((marketId: string) => string | undefined) | undefined
}
