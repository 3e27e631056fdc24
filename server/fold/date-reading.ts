// Reads the raw pieces of one UTC date into chains, and the book events of their messages into recordings by series.

import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import { SPILL_BUFFER_BYTES_MAX } from '../../shared/limits.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'
import { SeriesRecording } from '../lake/series-recording.ts'
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
  /** Directory for events that do not fit into memory. It is created when needed; the caller removes it. */
  readonly spillDirectory: string
  readonly spillBytes?: number | undefined
}

export class DateReading extends DateChains {
  readonly recordings = new Map<string, SeriesRecording>()
  readonly #options: DateReadingOptions
  readonly #numbered: NumberedChains
  readonly #unnumbered: UnnumberedChains
  readonly #own: OwnConnections
  #heldBytes = 0

  constructor(options: DateReadingOptions) {
    const { date, isNumbered, tally, seriesOf } = options
    super({
      dayStart: BigInt(Date.parse(`${date}T00:00:00Z`)) * NS_PER_MS,
      tally,
      seriesOf,
      recordingOf: (series) => this.recordingOf(series),
      onGrown: (bytes) => this.#grow(bytes),
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

  series(): Iterable<string> {
    return this.recordings.keys()
  }

  outlines(): ChainOutline[] {
    return this.chains
      .filter(({ firstAt }) => firstAt !== undefined)
      .map((chain) => outlineOf(chain, this.connections.of(chain.connection)))
  }

  recordingOf(series: string): SeriesRecording {
    let recording = this.recordings.get(series)
    if (recording === undefined) {
      const prefix = join(this.#options.spillDirectory, `${this.date}-${this.recordings.size}`)
      recording = new SeriesRecording(series, (hour) => `${prefix}-${hour}`)
      this.recordings.set(series, recording)
    }
    return recording
  }

  #grow(bytes: number): void {
    this.#heldBytes += bytes
    if (this.#heldBytes <= (this.#options.spillBytes ?? SPILL_BUFFER_BYTES_MAX)) return
    mkdirSync(this.#options.spillDirectory, { recursive: true })
    for (const recording of this.recordings.values())
      for (const hour of recording.hours.values()) hour.spill()
    this.#heldBytes = 0
  }
}
