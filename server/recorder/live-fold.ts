// From the write-ahead log to the lake: reads records, keeps their lines in raw segments, folds them, and keeps the files of the
// open date up to date. Every finished file depends on the lines alone, never on the time at which they are read; so reading the
// log again gives the same bytes.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { LobSource } from '../../shared/lob-sources.ts'
import { SPILL_BUFFER_BYTES_MAX } from '../../shared/limits.ts'
import {
  HOURS_PER_DAY,
  MS_PER_HOUR,
  NS_PER_HOUR,
  NS_PER_MS,
  addDays,
  utcDateOf,
} from '../../shared/utc-date.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import type { Folding } from '../fold/fold-order.ts'
import { FOLD_VERSION } from '../fold/fold-raw-dates.ts'
import { FoldTally } from '../fold/fold-tally.ts'
import { datesWithSegments, keepOldFiles } from '../fold/kept-rows.ts'
import { OwnConnections } from '../fold/own-connections.ts'
import { GRACE_NS, dayOf } from '../fold/own-times.ts'
import { BUSY_WAIT_MS_MAX } from '../fold/series-lock.ts'
import { LobRowGroup } from '../lake/lob-row-group.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import { readManifest } from '../raw/date-manifest.ts'
import { seriesText } from '../raw/segment-lines.ts'
import { checkpointPath, readCheckpoint, writeCheckpoint } from './checkpoint.ts'
import type { LiveFoldState } from './checkpoint.ts'
import { LiveClock, dayEndOf } from './live-clock.ts'
import { LiveDate } from './live-date.ts'
import type { LiveDateState } from './live-date.ts'
import { LiveTrades } from './live-trades.ts'
import { LiveSeries } from './live-series.ts'
import type { LiveSeriesOptions, LiveSeriesState } from './live-series.ts'
import { MarketSeries } from './market-series.ts'
import { OwnLines } from './own-lines.ts'
import { RawHours } from './raw-hours.ts'
import { recorderName } from './recorder-name.ts'
import { SharedDates } from './shared-dates.ts'
import { WalReader } from './wal-reader.ts'
import { WAL_KIND } from './wal-record.ts'
import type { WalRecord } from './wal-record.ts'
import { endOfLog, listWalSegments, placeInLog } from './wal-segment.ts'
import type { WalPosition } from './wal-segment.ts'

/** Rows of a portion, which is encoded once. Each publication encodes the rows after the last portion again. */
const RECORDER_PORTION_ROWS = 40_960

export interface LiveFoldOptions {
  readonly lake: string
  readonly source: LobSource
  /** The recorder's own files: log, parts, checkpoints. */
  readonly workDirectory: string
  readonly onWarning?: (text: string) => void
  /** Folds dates from their raw segments. Default: in a thread. */
  readonly folding?: Folding
  /** Smaller bounds than the usual ones, for tests. */
  readonly bounds?: Partial<Readonly<Record<'portionRows' | 'spillBytes' | 'groupRows', number>>>
}

export type LiveFoldFigures = LiveFold['figures']

/** The initial state of a fold. */
interface Beginning {
  readonly recorder: string
  readonly state: LiveFoldState
  readonly logEnd: WalPosition | undefined
  /** Dates that have raw segments when the fold is opened. */
  readonly rawDates: readonly string[]
}

/** The directory of a source's log. */
export function walDirectory(workDirectory: string, source: LobSource): string {
  return join(workDirectory, 'wal', source)
}

export class LiveFold {
  readonly #options: LiveFoldOptions
  readonly #seriesOptions: LiveSeriesOptions
  readonly #directory: string
  readonly #recorder: string
  readonly #reader: WalReader
  readonly #lines: OwnLines
  readonly #raw: RawHours
  readonly #trades: LiveTrades
  readonly #connections: OwnConnections
  readonly #dates = new Map<string, LiveDate>()
  readonly #series = new Map<string, LiveSeries>()
  readonly #seriesByMarket: MarketSeries
  readonly #tally = new FoldTally()
  readonly #shared: SharedDates
  /** Shared dates of which this state lacks messages that this recorder has received. */
  readonly #partialDates: Set<string>
  /** Dates whose files are derived from raw segments. */
  readonly #hadRaw: Set<string>
  /** Dates of which all rows are in raw segments. */
  readonly #kept = new Set<string>()
  #hour: number | undefined
  readonly #clock: LiveClock
  #heldBytes = 0
  #lostParts = 0
  #closedHours = 0
  /** Where the log ended when reading began; undefined when that has been reached. */
  #logEnd: WalPosition | undefined
  /** The times between two processes of the log, for the part that was on disk when reading began. */
  readonly #stops: { readonly from: bigint; readonly to: bigint }[] = []
  /** A date was replaced: its raw segments no longer show the books that this state knows. */
  #lacksBooks = false
  /** Position of a new checkpoint, until the log before it is removed. */
  #saved: WalPosition | undefined

  private constructor(options: LiveFoldOptions, { recorder, state, logEnd, rawDates: dates }: Beginning) {
    this.#options = options
    const { lake, source, workDirectory, bounds } = options
    const onWarning = (text: string): void => options.onWarning?.(text)
    this.#directory = walDirectory(workDirectory, source)
    this.#recorder = recorder
    this.#hadRaw = new Set(dates)
    this.#partialDates = new Set(state.partialDates)
    this.#shared = new SharedDates({
      lake,
      source,
      recorder,
      bounds,
      onWarning,
      folding: options.folding,
      onFold: (date) => this.#keepOldFiles(date),
    })
    for (const date of state.partialDates) this.#shared.add(date)
    this.#reader = new WalReader(this.#directory, state.position)
    this.#lines = new OwnLines(source, recorder, state.counts)
    this.#trades = new LiveTrades({ lake, source, shared: this.#shared, onWarning })
    this.#raw = new RawHours({
      lake,
      source,
      recorder,
      isShared: (date) => this.#shared.has(date),
      hasRaw: (date) => this.#hadRaw.has(date),
      onDate: (date) => this.#keepOldFiles(date),
      onUnited: async (hour) => {
        const isNeeded = hour + 1 === this.#hour || hour % HOURS_PER_DAY === 0
        if (isNeeded && !this.#shared.isFolded(utcDateOf(hour * MS_PER_HOUR)))
          await this.#trades.publish(hour)
      },
      onWarning,
    })
    this.#logEnd = logEnd
    this.#hour = state.hour
    this.#seriesByMarket = new MarketSeries(source, state.seriesByMarket)
    this.#seriesOptions = {
      lake,
      source,
      workDirectory,
      group: new LobRowGroup(bounds?.groupRows),
      portionRows: bounds?.portionRows ?? RECORDER_PORTION_ROWS,
      dateOf: (date) => this.#dateOf(BigInt(Date.parse(`${date}T00:00:00Z`)) * NS_PER_MS),
      isShared: (date) => this.#shared.has(date),
      hasRaw: (date) => this.#hadRaw.has(date),
      isBehind: () => this.#logEnd !== undefined,
      onWarning,
    }
    for (const date of state.dates) this.#dateOf(date.dayStart, date)
    for (const series of state.series) this.#addSeries(series.series, series)
    const { isNumbered } = exchangeOf(source)
    this.#connections = new OwnConnections(
      {
        isNumbered,
        dateOf: (dayStart) => this.#dateOf(dayStart),
        onGap: (cause, count) => this.#tally.countGap(cause, count),
        onLink: (from, to, date) => this.#linksBefore(date)?.set(from.id, to.id),
      },
      state.connections,
    )
    this.#clock = new LiveClock(recorder, this.#connections, state)
  }

  /**
   * Continues from the checkpoint if it fits its part files. Otherwise starts at the beginning of the log; dates with raw segments
   * are then folded from those.
   */
  static async open(options: LiveFoldOptions): Promise<LiveFold> {
    const { lake, workDirectory, source, onWarning } = options
    await rm(join(workDirectory, 'spill', source), { recursive: true, force: true })
    const recorder = await recorderName(workDirectory)
    const segments = await listWalSegments(walDirectory(workDirectory, source))
    const logEnd = await endOfLog(segments)
    const begun = { recorder, logEnd, rawDates: await datesWithSegments(lake, source) }
    const saved = await readCheckpoint(checkpointPath(options))
    if (saved !== undefined) {
      const state = { ...saved, position: placeInLog(saved.position, segments, onWarning) }
      const fold = new LiveFold(options, { ...begun, state })
      if ([...fold.#series.values()].every((series) => series.restorePart())) {
        if (state.hour !== undefined) await fold.#resume(state.hour)
        // A recorder that was killed may have left the log before its checkpoint.
        fold.#saved = state.position
        return fold
      }
      onWarning?.(
        'The checkpoint does not fit its part files. Closed hours are folded from the raw segments.',
      )
    }
    const position = { segment: segments[0]?.number ?? 1, offset: 0 }
    const nothing = { connections: undefined, counts: [], dates: [], series: [], seriesByMarket: [] }
    const state = { position, hour: undefined, now: 0n, ...nothing, partialDates: begun.rawDates }
    return new LiveFold(options, { ...begun, state })
  }

  async #resume(hour: number): Promise<void> {
    await this.#raw.resume(hour)
    await this.#shared.resume(addDays(utcDateOf(hour * MS_PER_HOUR), -1))
  }

  get figures() {
    return {
      /** Messages and book events, and gaps by reason, since this process started. */
      tally: this.#tally,
      /** Lines that came too late for their hour. Their events are placed in the open hour. */
      movedLines: this.#connections.movedLines,
      badLines: this.#lines.badLines,
      /** Frames of private channels, which are not kept, by type. */
      privateFrames: this.#lines.privateFrames,
      lostParts: this.#lostParts,
      closedHours: this.#closedHours,
      position: this.#reader.position,
      /** The latest receive time read, ms since the epoch. */
      heardMs: Number(this.#clock.now / NS_PER_MS),
      /** The smallest receive time less exchange time of the open connections, ms; 0 where none states a time. */
      lagMs: Number((this.#connections.lagOf(this.#recorder) ?? 0n) / NS_PER_MS),
    }
  }

  /** Markets whose book is unknown since a gap, until the next snapshot. */
  gappedMarkets(): string[] {
    const isAll = this.#lacksBooks
    this.#lacksBooks = false
    return [...this.#series.values()].flatMap(({ gappedMarkets, recording }) =>
      isAll ? recording.marketIds() : gappedMarkets,
    )
  }

  /** Reads the next batch of the log before `limit`. False if there is none. */
  async advance(limit: WalPosition): Promise<boolean> {
    const batch = await this.#reader.next(limit)
    if (batch === undefined) {
      if (this.#isLogEnd(limit)) await this.#reachLogEnd()
      return false
    }
    const { position } = this.#reader
    for (const [index, record] of batch.records.entries()) {
      this.#take(record)
      if (record.kind === WAL_KIND.lost || !this.#clock.isHourOver(this.#hour)) continue
      const next = batch.records[index + 1]
      await this.#closeHours(next === undefined ? position : { segment: batch.segment, offset: next.offset })
    }
    if (this.#raw.isDue) await this.#raw.flush()
    if (this.#isLogEnd(position)) await this.#reachLogEnd()
    return true
  }

  /** This recorder's segments of a time without a log come from a newer copy of the work directory. This state lacks them. */
  async #reachLogEnd(): Promise<void> {
    if (this.#logEnd === undefined) return
    this.#logEnd = undefined
    const { lake, source } = this.#options
    if (this.#stops.length === 0) return
    for (const date of this.#dates.keys()) {
      const listed = (await readManifest(lake, source, date))?.segments ?? []
      const isLacking = listed.some(
        ({ name, lastTs = 0n }) =>
          this.#shared.isOwn(name) && this.#stops.some(({ from, to }) => lastTs > from && lastTs < to),
      )
      if (!isLacking) continue
      this.#partialDates.add(date)
      this.#shared.add(date)
      // The checkpoint states that nothing is missing.
      await rm(checkpointPath(this.#options), { force: true })
    }
  }

  #isLogEnd({ segment, offset }: WalPosition): boolean {
    const end = this.#logEnd
    return end === undefined || segment > end.segment || (segment === end.segment && offset >= end.offset)
  }

  /**
   * Writes the raw segments that are due and the files of the open date to the lake. `isLast`: nothing
   * follows but `close`.
   */
  async publish(isLast = false): Promise<void> {
    if (isLast || this.#raw.isDue) await this.#raw.flush()
    await this.#removeLog()
    for (const date of this.#dates.keys()) {
      if (!this.#dates.has(addDays(date, -1))) await this.#shared.keepOver(addDays(date, -1))
      if (this.#hadRaw.has(date)) await this.#keepOldFiles(date)
      await this.#shared.notice(date)
      if (await this.#shared.isReplaced(date)) this.#lacksBooks = true
    }
    for (const series of this.#series.values()) await series.publish()
    if (isLast) await this.#raw.settled()
    if (this.#logEnd === undefined) {
      // A date that is over keeps its manifest: a fold has written it.
      for (const date of this.#dates.keys()) await this.#listSegments(date)
      if (!isLast) this.#shared.foldInBackground([...this.#dates.keys()], this.#clock.now)
    }
    this.#raw.uniteInBackground()
  }

  /** Resolves when no slices are being united, and nothing is being folded. */
  async settled(): Promise<void> {
    await this.#raw.settled()
    await this.#shared.settled()
  }

  /** Writes the lines that are in no raw segment yet. */
  async close(): Promise<void> {
    await this.#raw.flush()
    this.#raw.uniteInBackground()
    await this.#raw.settled()
    await this.#removeLog()
    // A synchronization may have brought the segments of another recorder since the last publication.
    for (const date of this.#dates.keys()) {
      await this.#shared.notice(date)
      if (this.#logEnd === undefined) await this.#listSegments(date, BUSY_WAIT_MS_MAX)
    }
    await this.#shared.close([...this.#dates.keys()])
    await this.#reader.close()
  }

  #take(record: WalRecord): void {
    const { kind, recvTs, payload } = record
    if (kind === WAL_KIND.lost) {
      this.#lostParts++
      return
    }
    // A message of the hour before may still come.
    this.#hour ??= Number((recvTs - GRACE_NS) / NS_PER_HOUR)
    if (kind <= WAL_KIND.mark) this.#takeLine(record)
    if (kind === WAL_KIND.start) this.#clock.startProcess(this.#hour)
    if (kind === WAL_KIND.start && this.#clock.now > 0n && this.#logEnd !== undefined)
      this.#stops.push({ from: this.#clock.now, to: recvTs })
    if (recvTs > this.#clock.now) this.#clock.now = recvTs
    if (kind === WAL_KIND.series) this.#takeSeries(recvTs, payload)
    else if (kind === WAL_KIND.clock || kind === WAL_KIND.start) {
      // Publish coverage that grew without an event, too.
      for (const series of this.#series.values()) series.noticeCoverage()
    }
  }

  #takeLine(record: WalRecord): void {
    const { text, line, frames } = this.#lines.read(record, this.#clock.receivedAt(record))
    const hourBefore = this.#connections.hourOf(this.#recorder)
    const hour = this.#connections.take(line)
    if (hour === undefined) return
    // A fold of this date alone needs the series. The recorder states them again only when its clock reaches the date.
    if (dayOf(hourBefore) < dayOf(hour)) this.#fileSeries(hour, line.recvTs, this.#seriesByMarket.all())
    this.#raw.add(hour, text, line.recvTs)
    this.#trades.take(hour, line, frames)
  }

  #takeSeries(recvTs: bigint, payload: Buffer): void {
    const open = this.#hour!
    const stated = this.#seriesByMarket.take(payload, open)
    // If the clock is off, the first message of a market may belong to either hour.
    const last = Math.max(open, Number(recvTs / NS_PER_HOUR), this.#connections.hourOf(this.#recorder))
    for (const hour of new Set([open, last])) this.#fileSeries(hour, recvTs, stated)
  }

  #fileSeries(hour: number, recvTs: bigint, stated: ReadonlyMap<string, string>): void {
    if (stated.size === 0) return
    this.#raw.add(hour, seriesText(recvTs, stated), recvTs)
    this.#trades.takeSeries(hour, stated)
  }

  #dateOf(dayStart: bigint, state?: LiveDateState): LiveDate {
    const name = utcDateOf(Number(dayStart / NS_PER_MS))
    const known = this.#dates.get(name)
    if (known !== undefined) return known
    const { source } = this.#options
    const date = new LiveDate(
      dayStart,
      {
        hasNoLeg: exchangeOf(source).hasNoLeg,
        tally: this.#tally,
        seriesOf: (id) => this.#seriesByMarket.of(id),
        recordingOf: (series) => this.#recordingOf(series),
        onGrown: (bytes) => this.#grow(bytes),
        series: () => this.#series.keys(),
        openFrom: () => BigInt(this.#hour ?? 0) * NS_PER_HOUR,
      },
      state,
    )
    this.#dates.set(name, date)
    return date
  }

  /** The chains of the date before that continue in `date`. */
  #linksBefore({ dayStart }: { readonly dayStart: bigint }): Map<number, number> | undefined {
    return this.#dates.get(addDays(utcDateOf(Number(dayStart / NS_PER_MS)), -1))?.links
  }

  #recordingOf(name: string): SeriesRecording {
    const series = this.#series.get(name) ?? this.#addSeries(name)
    series.markChanged()
    return series.recording
  }

  #addSeries(name: string, state?: LiveSeriesState): LiveSeries {
    const series = new LiveSeries(name, this.#hour ?? 0, this.#seriesOptions, state)
    this.#series.set(name, series)
    return series
  }

  #grow(bytes: number): void {
    this.#heldBytes += bytes
    if (this.#heldBytes <= (this.#options.bounds?.spillBytes ?? SPILL_BUFFER_BYTES_MAX)) return
    for (const { recording } of this.#series.values())
      for (const hour of recording.hours.values()) hour.spill()
    this.#heldBytes = 0
  }

  /** Keeps rows of files that are in no raw segments, before this recorder writes its first segment or a file of the date. */
  async #keepOldFiles(date: string): Promise<void> {
    if (this.#kept.has(date)) return
    if (await keepOldFiles({ ...this.#options, date })) this.#shared.add(date)
    this.#hadRaw.add(date)
    this.#kept.add(date)
  }

  /** Lists the segments of a date that only this recorder has. A fold lists those of a shared date. */
  async #listSegments(date: string, waitMs = 0): Promise<void> {
    if (!this.#shared.has(date)) await this.#raw.listSegments(date, FOLD_VERSION, waitMs)
  }

  /** Closes every hour that is over. `position` is the first record that is not in the state. */
  async #closeHours(position: WalPosition): Promise<void> {
    for (const series of this.#series.values()) series.noticeCoverage()
    await this.#raw.flush()
    const finishedParts: string[] = []
    while (this.#clock.isHourOver(this.#hour)) {
      const hour = this.#hour!
      const date = utcDateOf(hour * MS_PER_HOUR)
      const isDateEnd = date !== utcDateOf((hour + 1) * MS_PER_HOUR)
      await this.#shared.notice(date)
      this.#finishDate(hour)
      for (const live of this.#series.values()) {
        const { finishedPart } = await live.closeHour()
        if (finishedPart !== undefined) finishedParts.push(finishedPart)
      }
      this.#raw.unite(hour)
      this.#hour = hour + 1
      this.#closedHours++
      if (isDateEnd) await this.#endDate(date)
      if (!this.#clock.isHourOver(this.#hour) || isDateEnd) await this.#save(position)
      for (const part of finishedParts.splice(0)) await rm(part, { force: true })
    }
    this.#heldBytes = 0
    for (const { recording } of this.#series.values()) {
      for (const spill of recording.hours.values()) this.#heldBytes += spill.heldBytes
    }
  }

  /** Ends the chains of a date that is over, before its last hours are closed. */
  #finishDate(hour: number): void {
    const date = this.#dates.get(utcDateOf(hour * MS_PER_HOUR))
    if (date?.isFinished !== false || !this.#clock.isDateOver(hour)) return
    this.#connections.enterDate(this.#dateOf(dayEndOf(hour)))
    date.finish()
  }

  /** Removes dates, series and markets that are over, so that the state does not grow without bound. */
  async #endDate(date: string): Promise<void> {
    await this.#raw.settled()
    await this.#listSegments(date)
    // Connections that continue have books that this state lacks.
    const isPartial = this.#partialDates.delete(date) && (this.#dates.get(date)?.links.size ?? 0) > 0
    const next = utcDateOf(this.#hour! * MS_PER_HOUR)
    if (isPartial) {
      this.#partialDates.add(next)
      this.#shared.add(next)
    }
    this.#shared.end(date)
    this.#dates.delete(date)
    // Not `date` itself: its last hour may still wait for its segment.
    this.#raw.forgetDate(addDays(date, -1))
    for (const [name, series] of this.#series) {
      if (series.recording.marketIds().length === 0) this.#series.delete(name)
    }
    this.#seriesByMarket.forgetOld(this.#hour!)
  }

  /** Saves the state before `position`. Raw segments and part files have everything that the log has before it. */
  async #save(position: WalPosition): Promise<void> {
    const state: LiveFoldState = {
      position,
      hour: this.#hour,
      ...this.#clock.state(),
      connections: this.#connections.state(),
      counts: this.#lines.state(),
      dates: [...this.#dates.values()].map((date) => date.state()),
      series: [...this.#series.values()].map((series) => series.state()),
      seriesByMarket: this.#seriesByMarket.state(),
      partialDates: [...this.#partialDates],
    }
    await writeCheckpoint(checkpointPath(this.#options), state)
    this.#saved = position
  }

  /** Removes the log before the checkpoint: the raw segments have its lines. */
  async #removeLog(): Promise<void> {
    const saved = this.#saved
    if (saved === undefined) return
    this.#saved = undefined
    for (const { number, path } of await listWalSegments(this.#directory)) {
      if (number < saved.segment) await rm(path, { force: true })
    }
  }
}
