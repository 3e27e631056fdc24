// Reads the raw pieces of one UTC date into chains, and the book events of their messages into recordings by series.

import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import { SPILL_BUFFER_BYTES_MAX } from '../../shared/limits.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'
import { SeriesRecording } from '../lake/series-recording.ts'
import { Chain, Connections } from './chain.ts'
import type { TimedMessage } from './chain.ts'
import { ChainEvents } from './chain-events.ts'
import { outlineOf } from './chain-outline.ts'
import type { ChainOutline } from './chain-outline.ts'
import type { EndingDate } from './date-ends.ts'
import type { FoldTally } from './fold-tally.ts'
import { OwnConnections } from './own-connections.ts'
import type { OwnDate } from './own-connections.ts'
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

export class DateReading implements OwnDate, EndingDate {
  readonly date: string
  readonly dayStart: bigint
  readonly chains: Chain[] = []
  readonly recordings = new Map<string, SeriesRecording>()
  readonly connections = new Connections()
  readonly #options: DateReadingOptions
  readonly #events: ChainEvents
  readonly #numbered: NumberedChains
  readonly #unnumbered: UnnumberedChains
  readonly #own: OwnConnections
  #heldBytes = 0

  constructor(options: DateReadingOptions) {
    this.#options = options
    this.date = options.date
    this.dayStart = BigInt(Date.parse(`${options.date}T00:00:00Z`)) * NS_PER_MS
    this.#events = new ChainEvents({
      dayStart: this.dayStart,
      tally: options.tally,
      seriesOf: options.seriesOf,
      recordingOf: (series) => this.recordingOf(series),
      onGrown: (bytes) => this.#grow(bytes),
    })
    const { connections } = this
    const { tally } = options
    this.#numbered = new NumberedChains(
      { connections, sink: this.#events, tally },
      (sid, connection, isBegun, isTurned) => this.addChain(sid, connection, isBegun, isTurned),
    )
    this.#unnumbered = new UnnumberedChains(
      { connections, sink: this.#events, tally },
      (connection, isBegun, isTurned) => this.addChain(null, connection, isBegun, isTurned),
    )
    this.#own = new OwnConnections({
      isNumbered: options.isNumbered,
      dateOf: () => this,
      isOneDate: true,
      tally: options.tally,
    })
  }

  /** Takes the pieces of an hour. Call it in the order of the hours. */
  readHour(pieces: readonly Piece[]): void {
    const { isNumbered } = this.#options
    const foreign = pieces.filter(({ connection }) => connection === undefined)
    const numbered = foreign.filter(({ sequence }) => isNumbered && sequence !== 'ignore')
    this.#numbered.read(numbered)
    this.#unnumbered.read(foreign.filter((piece) => !numbered.includes(piece)))
    this.#own.takeHour(pieces)
  }

  /** Call it after the last hour. */
  finish(): void {
    this.#numbered.finish()
    this.#own.finish()
  }

  take(chain: Chain, message: TimedMessage): void {
    this.#events.take(chain, message)
  }

  leave(chain: Chain, id: string, ts: bigint): void {
    this.#events.leave(chain, id, ts)
  }

  series(): Iterable<string> {
    return this.recordings.keys()
  }

  chainOf(id: number): Chain {
    return this.chains[id]!
  }

  outlines(): ChainOutline[] {
    return this.chains
      .filter(({ firstAt }) => firstAt !== undefined)
      .map((chain) => outlineOf(chain, this.connections.of(chain.connection)))
  }

  /** See ChainEvents. */
  end(chain: Chain, ts: bigint, isLast: (series: string) => boolean): void {
    this.#events.end(chain, ts, isLast)
  }

  /** Adds a chain that continues from the date before and has no message in this date. */
  addSilent(connection: number, sid: number | null, isTurned: boolean | null): Chain {
    return this.addChain(sid, connection, false, isTurned)
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

  /** Adds a chain. */
  addChain(sid: number | null, connection: number, isBegun: boolean, isTurned: boolean | null): Chain {
    const chain = new Chain(this.chains.length, sid, connection, isBegun, isTurned)
    this.chains.push(chain)
    return chain
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
