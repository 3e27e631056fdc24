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
  /** The recording ends. */
  finish(): void
}

export interface FeedDecoderOptions {
  readonly sink: BookEventSink
  readonly tally: ImportTally
  /** Files every market under this series instead of its own. */
  readonly series?: string | undefined
}
