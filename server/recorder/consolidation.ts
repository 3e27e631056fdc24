// From the write-ahead log to the lake: reads records, decodes them as an import does, and keeps the files of the open
// date up to date. Everything that ends in a finished file depends on the log alone, never on the time at which it is
// read; so reading the log again gives the same bytes.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { LobSource } from '../../shared/lob-sources.ts'
import { SPILL_BUFFER_BYTES_MAX } from '../../shared/limits.ts'
import { MS_PER_HOUR, NS_PER_HOUR, NS_PER_MS, utcDateOf } from '../../shared/utc-date.ts'
import type { BookEventSink } from '../feed/feed-decoder.ts'
import { FeedSpans } from '../feed/feed-spans.ts'
import { AHEAD_NS_MAX } from '../feed/recorder-clock.ts'
import { ImportTally } from '../feed/import-tally.ts'
import { LobRowGroup } from '../lake/lob-row-group.ts'
import type { BookEvent } from '../lake/series-recording.ts'
import { checkpointPath, readCheckpoint, writeCheckpoint } from './checkpoint.ts'
import type { ConsolidationState, StatedSeries } from './checkpoint.ts'
import { LaneDecoders } from './lane-decoders.ts'
import { LiveSeries, type LiveSeriesOptions, type LiveSeriesState } from './live-series.ts'
import { WalReader } from './wal-reader.ts'
import { WAL_KIND } from './wal-record.ts'
import type { WalRecord } from './wal-record.ts'
import { endOfLog, listWalSegments, placeInLog } from './wal-segment.ts'
import type { WalPosition } from './wal-segment.ts'

/** Rows of the open hour that are encoded again at each publication; from so many on they are kept encoded. */
const RECORDER_SLICE_ROWS = 40_960
/** A market's series is forgotten so long after the log last stated it; the recorder states it every hour. */
const RECORDER_SERIES_HOURS_MAX = 48
/** A time (ns) without any record after which the recorder is taken to have stood still, and every connection for lost. */
const PAUSE_NS_MAX = 60_000_000_000n
/** A message may come so much (ns) after its UTC hour; later ones are placed at the start of the open hour. */
const GRACE_NS = 15_000_000_000n
const HOURS_REMEMBERED = 24

export interface ConsolidationOptions {
  readonly lake: string
  readonly source: LobSource
  /** The recorder's own files: log, parts, checkpoints. */
  readonly workDirectory: string
  readonly onWarning?: (text: string) => void
  /** Smaller bounds than the usual ones, for tests. */
  readonly bounds?: { readonly sliceRows?: number; readonly spillBytes?: number; readonly groupRows?: number }
}

export interface ConsolidationFigures {
  /** Messages and book events, what was passed over, and gaps by reason, since this process started. */
  readonly tally: ImportTally
  /** Events whose time was no time near their arrival. */
  readonly movedEvents: number
  readonly lostStretches: number
  readonly closedHours: number
  readonly position: WalPosition
  /** The latest receive time of what was read, ms since the epoch. */
  readonly heardMs: number
}

/** The directory of a source's log. */
export function walDirectory(workDirectory: string, source: LobSource): string {
  return join(workDirectory, 'wal', source)
}

export class Consolidation implements BookEventSink {
  readonly #options: ConsolidationOptions
  readonly #seriesOptions: LiveSeriesOptions
  readonly #directory: string
  readonly #reader: WalReader
  readonly #lanes: LaneDecoders
  readonly #series = new Map<string, LiveSeries>()
  readonly #seriesByMarket: Map<string, StatedSeries>
  readonly #spans: FeedSpans
  readonly #tally = new ImportTally()
  #hour: number | undefined
  /** Receive time of the record being taken. */
  #now = 0n
  #heldBytes = 0
  #movedEvents = 0
  #lostStretches = 0
  #closedHours = 0
  /** Where the log ended when reading began; undefined when that has been reached. */
  #logEnd: WalPosition | undefined

  private constructor(
    options: ConsolidationOptions,
    state: ConsolidationState,
    logEnd: WalPosition | undefined,
  ) {
    this.#options = options
    const { lake, source, workDirectory, bounds } = options
    this.#directory = walDirectory(workDirectory, source)
    this.#reader = new WalReader(this.#directory, state.position)
    this.#spans = new FeedSpans({ state: state.spans, partsAtSilence: false })
    this.#seriesOptions = {
      spans: this.#spans,
      lake,
      source,
      workDirectory,
      group: new LobRowGroup(bounds?.groupRows),
      sliceRows: bounds?.sliceRows ?? RECORDER_SLICE_ROWS,
      isBehind: () => this.#logEnd !== undefined,
      onWarning: (text) => options.onWarning?.(text),
      onRestart: async () => await rm(checkpointPath(options), { force: true }),
    }
    this.#logEnd = logEnd
    this.#hour = state.hour
    this.#now = state.now ?? 0n
    this.#seriesByMarket = new Map(state.seriesByMarket)
    const seriesOf = (id: string): string | undefined => this.#seriesByMarket.get(id)?.series
    const lanes = { sink: this, spans: this.#spans, tally: this.#tally, seriesOf }
    this.#lanes = new LaneDecoders(source, lanes, state.lanes)
    for (const series of state.series) this.#addSeries(series.series, series)
  }

  /**
   * Goes on from the checkpoint where it fits the part files beside it, else from the beginning of what there is of the log:
   * closed hours are then merged with as the lake has them.
   */
  static async open(options: ConsolidationOptions): Promise<Consolidation> {
    const { workDirectory, source } = options
    await rm(join(workDirectory, 'spill', source), { recursive: true, force: true })
    const segments = await listWalSegments(walDirectory(workDirectory, source))
    const logEnd = await endOfLog(segments)
    const saved = await readCheckpoint(checkpointPath(options))
    if (saved !== undefined) {
      const state = { ...saved, position: placeInLog(saved.position, segments, options.onWarning) }
      const consolidation = new Consolidation(options, state, logEnd)
      if ([...consolidation.#series.values()].every((series) => series.restorePart())) return consolidation
      options.onWarning?.('the checkpoint does not fit its part files; closed hours are taken from the lake')
    }
    const position = { segment: segments[0]?.number ?? 1, offset: 0 }
    const state = { hour: undefined, spans: undefined, lanes: [], series: [], seriesByMarket: [] }
    return new Consolidation(options, { position, ...state }, logEnd)
  }

  get figures(): ConsolidationFigures {
    return {
      tally: this.#tally,
      movedEvents: this.#movedEvents,
      lostStretches: this.#lostStretches,
      closedHours: this.#closedHours,
      position: this.#reader.position,
      heardMs: Number(this.#now / NS_PER_MS),
    }
  }

  /** Markets whose book is unknown since a gap: a snapshot would make it known again. */
  gappedMarkets(): string[] {
    return [...this.#series.values()].flatMap((series) => series.gappedMarkets)
  }

  /** Takes the next piece of the log before `limit`. False when there is none. */
  async advance(limit: WalPosition): Promise<boolean> {
    const piece = await this.#reader.next(limit)
    if (piece === undefined) {
      if (this.#isLogEnd(limit)) this.#logEnd = undefined
      return false
    }
    for (const record of piece.records) {
      // Before hours are closed: the books are unknown since the last word of the lane, not since now.
      this.#lanes.noticeInterruption(record, this.#now !== 0n && record.recvTs > this.#now + PAUSE_NS_MAX)
      if (record.kind !== WAL_KIND.lost && this.#isHourOver(record.recvTs)) {
        await this.#closeHours(record.recvTs, { segment: piece.segment, offset: record.offset })
      }
      this.#take(record)
    }
    if (this.#isLogEnd(this.#reader.position)) this.#logEnd = undefined
    return true
  }

  #isLogEnd({ segment, offset }: WalPosition): boolean {
    const end = this.#logEnd
    return end === undefined || segment > end.segment || (segment === end.segment && offset >= end.offset)
  }

  /** Brings what has been taken into the lake's files of the open date. */
  async publish(): Promise<void> {
    for (const series of this.#series.values()) await series.publish()
  }

  async close(): Promise<void> {
    await this.#reader.close()
  }

  // What the decoders say.

  append(series: string, event: BookEvent): void {
    const live = this.#liveSeries(series)
    const ts = this.#placed(event.ts)
    if (ts !== event.ts) this.#movedEvents++
    this.#heldBytes += live.recording.append(ts === event.ts ? event : { ...event, ts })
    live.markChanged()
    if (this.#heldBytes > (this.#options.bounds?.spillBytes ?? SPILL_BUFFER_BYTES_MAX)) this.#spill()
  }

  /** An event's time within what is still open: not in a finished hour, not ahead of its arrival. */
  #placed(ts: bigint): bigint {
    const start = BigInt(this.#hour ?? 0) * NS_PER_HOUR
    if (ts < start) return start
    return ts > this.#now + AHEAD_NS_MAX ? this.#now : ts
  }

  #isHourOver(recvTs: bigint): boolean {
    return this.#hour !== undefined && recvTs >= BigInt(this.#hour + 1) * NS_PER_HOUR + GRACE_NS
  }

  #take(record: WalRecord): void {
    if (record.kind === WAL_KIND.lost) {
      this.#lostStretches++
      return
    }
    if (record.recvTs > this.#now) this.#now = record.recvTs
    this.#hour ??= Number(record.recvTs / NS_PER_HOUR)
    if (record.kind === WAL_KIND.series) this.#takeSeries(record.payload)
    else if (record.kind === WAL_KIND.clock) this.#cover()
    else if (record.kind <= WAL_KIND.mark) this.#lanes.take(record)
  }

  // Told by the log's own clock: what was heard of without an event is news too.
  #cover(): void {
    for (const series of this.#series.values()) series.noticeCoverage()
  }

  #takeSeries(payload: Buffer): void {
    const entries: Record<string, unknown> = JSON.parse(payload.toString('utf8'))
    for (const [id, series] of Object.entries(entries)) {
      if (typeof series === 'string') this.#seriesByMarket.set(id, { series, hour: this.#hour! })
    }
  }

  #liveSeries(name: string): LiveSeries {
    return this.#series.get(name) ?? this.#addSeries(name)
  }

  #addSeries(name: string, state?: LiveSeriesState): LiveSeries {
    const series = new LiveSeries(name, this.#hour ?? 0, this.#seriesOptions, state)
    this.#series.set(name, series)
    return series
  }

  #spill(): void {
    for (const { recording } of this.#series.values()) {
      for (const hour of recording.hours.values()) hour.spill()
    }
    this.#heldBytes = 0
  }

  /** Closes every hour that is over at `recvTs`. `position` is the record that says so, the first one not taken. */
  async #closeHours(recvTs: bigint, position: WalPosition): Promise<void> {
    this.#cover()
    const finishedParts: string[] = []
    while (this.#isHourOver(recvTs)) {
      const hour = this.#hour!
      const isDateEnd = utcDateOf(hour * MS_PER_HOUR) !== utcDateOf((hour + 1) * MS_PER_HOUR)
      for (const live of this.#series.values()) {
        const { finishedPart } = await live.closeHour()
        if (finishedPart !== undefined) finishedParts.push(finishedPart)
      }
      this.#hour = hour + 1
      this.#closedHours++
      if (isDateEnd) this.#forgetSeries()
      if (!this.#isHourOver(recvTs) || isDateEnd) await this.#save(position)
      for (const part of finishedParts.splice(0)) await rm(part, { force: true })
    }
    this.#heldBytes = 0
    for (const { recording } of this.#series.values()) {
      for (const spill of recording.hours.values()) this.#heldBytes += spill.heldBytes
    }
  }

  /** Series and markets that are over leave the state, or it would grow for ever. */
  #forgetSeries(): void {
    this.#lanes.forgetMarkets()
    // What the date before holds may still be asked about.
    this.#spans.forgetBefore(BigInt(this.#hour! - HOURS_REMEMBERED) * NS_PER_HOUR)
    for (const [name, series] of this.#series) {
      if (series.recording.marketIds().length === 0) this.#series.delete(name)
    }
    for (const [id, { hour }] of this.#seriesByMarket) {
      if (hour < this.#hour! - RECORDER_SERIES_HOURS_MAX) this.#seriesByMarket.delete(id)
    }
  }

  /** The state before `position`. The log before it is needed no more: its hours are in the part files and in the lake. */
  async #save(position: WalPosition): Promise<void> {
    const state: ConsolidationState = {
      position,
      hour: this.#hour,
      now: this.#now,
      spans: this.#spans.state(),
      lanes: this.#lanes.state(),
      series: [...this.#series.values()].map((series) => series.state()),
      seriesByMarket: [...this.#seriesByMarket],
    }
    await writeCheckpoint(checkpointPath(this.#options), state)
    for (const { number, path } of await listWalSegments(this.#directory)) {
      if (number < position.segment) await rm(path, { force: true })
    }
  }
}
