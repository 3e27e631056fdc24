// Reads the raw pieces of one UTC date into chains, and the book events of their messages into recordings by series.

import { NS_PER_MS } from '../../shared/utc-date.ts'
import type { SeriesRecordings } from '../lake/series-recordings.ts'
import { DateChains } from './date-chains.ts'
import { outlineOf } from './chain-outline.ts'
import type { ChainOutline } from './chain-outline.ts'
import type { FoldTally } from './fold-tally.ts'
import { OwnConnections } from './own-connections.ts'
import { linesOfProcesses } from './own-process.ts'
import { NumberedChains } from './numbered-chains.ts'
import type { Piece } from './piece.ts'
import { UnnumberedChains } from './unnumbered-chains.ts'

export interface DateReadingOptions {
  readonly date: string
  /** Whether the exchange numbers its messages. */
  readonly isNumbered: boolean
  readonly tally: FoldTally
  readonly seriesOf: (marketId: string) => string
  readonly recordings: SeriesRecordings
}

export class DateReading extends DateChains {
  readonly #options: DateReadingOptions
  readonly #numbered: NumberedChains
  readonly #unnumbered: UnnumberedChains
  readonly #own: OwnConnections

  constructor(options: DateReadingOptions) {
    const { date, isNumbered, tally, seriesOf, recordings } = options
    super({
      dayStart: BigInt(Date.parse(`${date}T00:00:00Z`)) * NS_PER_MS,
      tally,
      seriesOf,
      recordingOf: (series) => recordings.of(series),
      onGrown: (bytes) => recordings.grow(bytes),
    })
    this.#options = options
    this.#numbered = new NumberedChains(this, tally)
    this.#unnumbered = new UnnumberedChains(this, tally)
    this.#own = new OwnConnections({ isNumbered, dateOf: () => this, isOneDate: true, tally })
  }

  /** Takes the pieces of an hour. Call it in the order of the hours. */
  readHour(pieces: readonly Piece[]): void {
    const { isNumbered } = this.#options
    const foreign = pieces.filter(({ connection }) => connection === undefined)
    const numbered = foreign.filter(({ sequence }) => isNumbered && sequence !== 'ignore')
    this.#numbered.read(numbered)
    this.#unnumbered.read(foreign.filter((piece) => !numbered.includes(piece)))
    // Recorders are independent of each other.
    for (const line of linesOfProcesses(pieces)) this.#own.take(line)
  }

  /** Call it after the last hour. */
  finish(): void {
    this.#numbered.finish()
    this.#own.finish()
  }

  get recordings(): SeriesRecordings {
    return this.#options.recordings
  }

  series(): Iterable<string> {
    return [...this.recordings].map(({ series }) => series)
  }

  outlines(): ChainOutline[] {
    return this.chains
      .filter(({ firstAt }) => firstAt !== undefined)
      .map((chain) => outlineOf(chain, this.connections.of(chain.connection)))
  }
}
