// The recorder of one exchange: keeps its connections, its log and its consolidation thread together. It listens and
// writes; what the messages mean is the consolidation's affair, which also tells it which books need a snapshot.

import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import type { LobSource } from '../../shared/lob-sources.ts'
import type { TaskLog } from '../tasks/task-log.ts'
import type { DataDirectoryLock } from '../storage/data-directory-lock.ts'
import {
  DISCOVERY_INTERVAL_MS,
  RECORDER_CLOCK_MS,
  RECORDER_PUBLISH_INTERVAL_MS,
} from '../../shared/limits.ts'
import { MS_PER_HOUR, NS_PER_MS } from '../../shared/utc-date.ts'
import type { ConsolidationReport } from './consolidation-thread.ts'
import { ConsolidationWorker } from './consolidation-worker.ts'
import type { FeedLane, LaneLog } from '../feed/feed-lane.ts'
import type { DirectoryMarket, MarketDirectory } from '../feed/market-directory.ts'
import { lockRecorder } from './recorder-lock.ts'
import { FrameRate } from './recorder-metrics.ts'
import type { RecorderMetrics } from './recorder-metrics.ts'
import { writeRecorderStatus } from './recorder-status.ts'
import { disconnectMark, heardMark } from '../feed/wal-mark.ts'
import { WAL_KIND } from './wal-record.ts'
import type { WalKind } from './wal-record.ts'
import { WriteAheadLog } from './write-ahead-log.ts'

export interface SourceRecorderOptions {
  readonly source: LobSource
  readonly lake: string
  /** The recorder's own files. */
  readonly workDirectory: string
  readonly directory: MarketDirectory
  readonly lanesMax: number
  readonly marketsPerLaneMax: number
  readonly makeLane: (log: LaneLog) => FeedLane
  readonly logger: TaskLog
  /** The log cannot be written: recording is over. */
  readonly onFailed: (error: Error) => void
  readonly publishIntervalMs?: number
  readonly discoveryIntervalMs?: number
  readonly clockMs?: number
  /** Without it frames are only kept, for tests and for consolidating elsewhere. */
  readonly isConsolidating?: boolean
}

interface Place {
  readonly lane: FeedLane
  readonly ids: Set<string>
  heardMs: number
  epoch: number
}

const NOTHING = Buffer.alloc(0)
// What was heard may be overtaken by an older message that is still on its way.
const HEARD_MARGIN_MS = 1_000
const STATUS_INTERVAL_MS = 5_000
// Markets that the feed has announced are followed together, and for so long although the directory does not list them
// yet: its answers are some seconds old.
const ANNOUNCED_TOGETHER_MS = 200
const ANNOUNCED_MS = 5 * 60_000
const ANNOUNCED_MAX = 10_000

export class SourceRecorder {
  readonly #options: SourceRecorderOptions
  readonly #log: WriteAheadLog
  readonly #lock: DataDirectoryLock
  readonly #places: Place[] = []
  readonly #rate = new FrameRate()
  readonly #abort = new AbortController()
  #markets = new Map<string, DirectoryMarket>()
  #placeById = new Map<string, Place>()
  #worker: ConsolidationWorker | undefined
  #report: ConsolidationReport | undefined
  /** By id: markets that the feed has named, until when they need no directory. */
  readonly #announced = new Map<string, { readonly market: DirectoryMarket; readonly untilMs: number }>()
  #listed: readonly DirectoryMarket[] = []
  #announcement: NodeJS.Timeout | undefined
  #clock: NodeJS.Timeout | undefined
  #discovery: NodeJS.Timeout | undefined
  #discovering: Promise<void> | undefined
  #statedHour = -1
  #lastTs = 0n
  #lastEpoch = 0
  #unplaced = 0
  #discoveredAtMs = 0
  #discoveryFailures = 0
  #synced = 0
  #syncDelayMs = 0
  readonly #startedAtMs = Date.now()
  #statedMs = 0
  #stating: Promise<void> | undefined
  #isCongested = false
  #congestions = 0

  private constructor(options: SourceRecorderOptions, log: WriteAheadLog, lock: DataDirectoryLock) {
    this.#options = options
    this.#log = log
    this.#lock = lock
  }

  /** Rejects when another recorder of the exchange uses the work directory. */
  static async start(options: SourceRecorderOptions): Promise<SourceRecorder> {
    const directory = join(options.workDirectory, 'wal', options.source)
    const lock = await lockRecorder(directory, options.onFailed)
    try {
      return await SourceRecorder.#startLocked(options, directory, lock)
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  static async #startLocked(
    options: SourceRecorderOptions,
    directory: string,
    lock: DataDirectoryLock,
  ): Promise<SourceRecorder> {
    let recorder: SourceRecorder | undefined
    const log = await WriteAheadLog.open({
      directory,
      onSynced: (position, records, delayMs) => {
        if (recorder === undefined) return
        recorder.#synced += records
        recorder.#syncDelayMs = delayMs
        recorder.#worker?.advanceTo(position)
      },
      onCongestion: (isCongested) => {
        if (recorder !== undefined) recorder.#congested(isCongested)
      },
      onFailed: (error) => options.onFailed(error),
    })
    recorder = new SourceRecorder(options, log, lock)
    recorder.#begin()
    return recorder
  }

  /**
   * Closes the connections, writes and publishes what was heard, and leaves the directory to others: last, and whatever
   * became of the rest. What was not published is in the log.
   */
  async stop(): Promise<void> {
    this.#abort.abort()
    clearInterval(this.#clock)
    clearTimeout(this.#discovery)
    clearTimeout(this.#announcement)
    try {
      await this.#discovering
      for (const { lane } of this.#places) lane.stop()
      await this.#log.close()
    } finally {
      this.#worker?.advanceTo(this.#log.position)
      await this.#worker?.stop()
      await this.#stating
      await writeRecorderStatus(this.#options.workDirectory, this.metrics)
      await this.#lock.release()
    }
  }

  get metrics(): RecorderMetrics {
    const { frames, framesPerSecond, lastFrameMs, bytes, lagMs } = this.#rate.figures(Date.now())
    return {
      source: this.#options.source,
      isRunning: !this.#abort.signal.aborted,
      startedAtMs: this.#startedAtMs,
      frames,
      bytes,
      framesPerSecond,
      lastFrameMs,
      lagMs,
      markets: this.#markets.size,
      unplacedMarkets: this.#unplaced,
      lanes: this.#places.map(({ lane }) => lane.figures),
      syncedRecords: this.#synced,
      syncDelayMs: this.#syncDelayMs,
      queuedBytes: this.#log.queuedBytes,
      isCongested: this.#isCongested,
      congestions: this.#congestions,
      discoveredAtMs: this.#discoveredAtMs,
      discoveryFailures: this.#discoveryFailures,
      consolidationFailures: this.#worker?.failures ?? 0,
      logPosition: this.#log.position,
      consolidation: this.#report,
    }
  }

  #begin(): void {
    const { source, lake, workDirectory, logger, publishIntervalMs, isConsolidating = true } = this.#options
    this.#append(WAL_KIND.start, 0, 0, NOTHING)
    if (isConsolidating) {
      this.#worker = new ConsolidationWorker(
        {
          source,
          lake,
          workDirectory,
          publishIntervalMs: publishIntervalMs ?? RECORDER_PUBLISH_INTERVAL_MS,
          onReport: (report) => this.#takeReport(report),
          onWarning: (text) => logger.warn({ source }, text),
        },
        this.#log.position,
      )
    }
    this.#clock = setInterval(() => this.#tick(), this.#options.clockMs ?? RECORDER_CLOCK_MS)
    this.#discover()
  }

  // Discovery. A failure leaves everything as it is.

  #discover(): void {
    const { directory, source, logger, discoveryIntervalMs = DISCOVERY_INTERVAL_MS } = this.#options
    this.#discovering = directory.list(this.#abort.signal).then(
      (markets) => this.#take(markets),
      (error: unknown) => {
        if (this.#abort.signal.aborted) return
        this.#discoveryFailures++
        const reason = error instanceof Error ? error.message : String(error)
        logger.warn({ source, reason }, 'the open markets could not be listed; the same ones are followed on')
      },
    )
    void this.#discovering.finally(() => {
      if (this.#abort.signal.aborted) return
      this.#discovery = setTimeout(() => this.#discover(), discoveryIntervalMs)
    })
  }

  #take(markets: readonly DirectoryMarket[]): void {
    this.#discoveredAtMs = Date.now()
    this.#listed = markets
    this.#follow()
  }

  // A new market is followed as soon as the feed says that it is there, not only at the next look into the directory.
  #announce(id: string): void {
    const market = this.#options.directory.announced?.(id)
    if (market === undefined || this.#announced.size >= ANNOUNCED_MAX) return
    this.#announced.set(id, { market, untilMs: Date.now() + ANNOUNCED_MS })
    this.#announcement ??= setTimeout(() => {
      this.#announcement = undefined
      this.#follow()
    }, ANNOUNCED_TOGETHER_MS)
  }

  #follow(): void {
    if (this.#abort.signal.aborted) return
    const before = this.#markets
    const nowMs = Date.now()
    for (const [id, { untilMs }] of this.#announced) if (untilMs < nowMs) this.#announced.delete(id)
    const announced = [...this.#announced.values()].map(({ market }) => market)
    const list = [...announced, ...this.#listed]
    this.#markets = new Map(list.map((market) => [market.id, market]))
    const added = list.filter(({ id }) => !before.has(id))
    if (added.length > 0) this.#stateSeries(added)
    for (const [id, place] of this.#placeById) {
      if (this.#markets.has(id)) continue
      place.ids.delete(id)
      this.#placeById.delete(id)
    }
    this.#unplaced = 0
    for (const id of this.#markets.keys()) if (!this.#placeById.has(id)) this.#place(id)
    const { source, logger } = this.#options
    if (added.length > 0)
      logger.info({ source, markets: this.#markets.size, added: added.length }, 'following markets')
    if (this.#unplaced > 0)
      logger.warn({ source, markets: this.#unplaced }, 'more markets than connections can carry')
    for (const { lane, ids } of this.#places) lane.follow(ids)
  }

  #place(id: string): void {
    const { lanesMax, marketsPerLaneMax } = this.#options
    let place = this.#places.find(({ ids }) => ids.size < marketsPerLaneMax)
    if (place === undefined && this.#places.length < lanesMax) place = this.#addPlace()
    if (place === undefined) {
      this.#unplaced++
      return
    }
    place.ids.add(id)
    this.#placeById.set(id, place)
  }

  #addPlace(): Place {
    const number = this.#places.length
    const { source, logger, makeLane } = this.#options
    const place: Place = {
      ids: new Set(),
      heardMs: 0,
      epoch: 0,
      lane: makeLane({
        frame: (data) => {
          this.#rate.count(data, Date.now())
          this.#append(WAL_KIND.frame, number, place.epoch, data)
        },
        command: (text) => this.#append(WAL_KIND.command, number, place.epoch, Buffer.from(text)),
        opened: () => {
          this.#lastEpoch = Math.max(this.#lastEpoch + 1, Date.now())
          place.epoch = this.#lastEpoch
          logger.info({ source, lane: number }, 'connected')
        },
        closed: (lastHeardMs) => {
          const mark = Buffer.from(JSON.stringify(disconnectMark()))
          this.#append(WAL_KIND.mark, number, place.epoch, mark, lastHeardMs)
        },
        announced: (id) => this.#announce(id),
        trouble: (reason) => logger.warn({ source, lane: number, reason }, 'trouble with the feed'),
      }),
    }
    if (this.#isCongested) place.lane.setPaused(true)
    this.#places.push(place)
    return place
  }

  // The log.

  #append(kind: WalKind, lane: number, epoch: number, payload: Uint8Array, atMs = Date.now()): void {
    const ts = BigInt(atMs) * NS_PER_MS
    // Time does not go back within the log, except for words about an earlier time.
    if (kind !== WAL_KIND.mark && ts > this.#lastTs) this.#lastTs = ts
    const recvTs = kind === WAL_KIND.mark ? ts : this.#lastTs
    try {
      this.#log.append({ kind, lane, epoch, recvTs, payload })
    } catch {
      // The log has failed or is closed; whoever runs the recorder has been told.
    }
  }

  #tick(): void {
    const nowMs = Date.now()
    for (const [number, place] of this.#places.entries()) {
      const { isConnected, lastHeardMs } = place.lane.figures
      if (!isConnected || lastHeardMs === place.heardMs) continue
      place.heardMs = lastHeardMs
      const mark = Buffer.from(JSON.stringify(heardMark(lastHeardMs - HEARD_MARGIN_MS)))
      this.#append(WAL_KIND.mark, number, place.epoch, mark, lastHeardMs)
    }
    this.#append(WAL_KIND.clock, 0, 0, NOTHING)
    const hour = Math.floor(nowMs / MS_PER_HOUR)
    if (hour !== this.#statedHour && this.#markets.size > 0) this.#stateSeries([...this.#markets.values()])
    this.#statedHour = hour
    if (nowMs - this.#statedMs > STATUS_INTERVAL_MS) this.#writeStatus(nowMs)
  }

  #writeStatus(nowMs: number): void {
    this.#statedMs = nowMs
    this.#stating ??= writeRecorderStatus(this.#options.workDirectory, this.metrics).finally(() => {
      this.#stating = undefined
    })
  }

  #stateSeries(markets: readonly DirectoryMarket[]): void {
    const entries = Object.fromEntries(markets.map(({ marketId, series }) => [marketId, series]))
    this.#append(WAL_KIND.series, 0, 0, Buffer.from(JSON.stringify(entries)))
  }

  #congested(isCongested: boolean): void {
    this.#isCongested = isCongested
    if (isCongested) this.#congestions++
    const { source, logger } = this.#options
    logger.warn({ source, isCongested }, 'the disk is slower than the feed')
    for (const { lane } of this.#places) lane.setPaused(isCongested)
  }

  // The consolidation knows which books are broken, whatever broke them.
  #takeReport(report: ConsolidationReport): void {
    this.#report = report
    if (report.gappedMarkets.length === 0) return
    const gapped = new Set(report.gappedMarkets)
    const ids = [...this.#markets.values()].filter(({ marketId }) => gapped.has(marketId)).map(({ id }) => id)
    for (const { lane, ids: placed } of this.#places) {
      const broken = ids.filter((id) => placed.has(id))
      if (broken.length > 0) lane.repair(broken)
    }
  }
}
