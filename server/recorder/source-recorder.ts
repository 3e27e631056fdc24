// The recorder of one exchange: its connections, its log and its fold thread. It receives messages and writes them to
// the log. The fold interprets them, and reports which books need a snapshot.

import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import type { DataDirectoryLock } from '../storage/data-directory-lock.ts'
import type { ExchangeFeed } from '../exchanges/exchange.ts'
import type { TaskLog } from '../tasks/task-log.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { RECORDER_PUBLISH_INTERVAL_MS } from '../../shared/limits.ts'
import { MS_PER_HOUR, NS_PER_MS } from '../../shared/utc-date.ts'
import type { LiveFoldReport } from './live-fold-loop.ts'
import { LiveFoldWorker } from './live-fold-worker.ts'
import type { FeedLane } from '../feed/feed-lane.ts'
import type { DirectoryMarket } from '../feed/market-directory.ts'
import { LanePlaces } from './lane-places.ts'
import type { LanePlace } from './lane-places.ts'
import { MarketDiscovery } from './market-discovery.ts'
import type { OnListed } from './market-discovery.ts'
import { lockRecorder } from './recorder-lock.ts'
import { FrameRate } from './recorder-metrics.ts'
import type { RecorderMetrics } from './recorder-metrics.ts'
import { writeRecorderStatus } from './recorder-status.ts'
import type { Frame } from '../feed/frame.ts'
import { PAUSE_NS_MAX } from '../fold/own-connections.ts'
import { ReceiveClock } from '../feed/receive-clock.ts'
import { aliveMark, closeMark, lostMark, openMark } from '../feed/wal-mark.ts'
import { lastStart } from './wal-reader.ts'
import { WAL_KIND } from './wal-record.ts'
import type { WalKind } from './wal-record.ts'
import { WriteAheadLog } from './write-ahead-log.ts'

/** Interval of the log's clock records. */
const RECORDER_CLOCK_MS = 1_000
/** Interval at which the open markets are listed. */
const DISCOVERY_INTERVAL_MS = 60_000

const NOTHING = Buffer.alloc(0)
/** An `alive` line states a time this long before the last receipt: an older message may still arrive. */
const HEARD_MARGIN_MS = 1_000
/** A connection without a line for this long gets an `alive` line. */
const ALIVE_MS = 10_000
/** The same for one with few lines: its first books wait for this line if no message with a time comes. */
const YOUNG_ALIVE_MS = 3_000
const YOUNG_LINES = 20
const STATUS_INTERVAL_MS = 5_000
/** A process that has no line this long after its start writes `close`, which ends the connections of the process before. */
const FIRST_LINE_MS_MAX = 60_000

export interface SourceRecorderOptions extends ExchangeFeed {
  readonly source: LobSource
  readonly lake: string
  /** The recorder's own files. */
  readonly workDirectory: string
  readonly logger: TaskLog
  /** The log cannot be written: recording is over. */
  readonly onFailed: (error: Error) => void
  readonly onListed?: OnListed | undefined
  readonly publishIntervalMs?: number
  readonly discoveryIntervalMs?: number
  readonly clockMs?: number
  /** Default: a new one that follows the machine's clock. */
  readonly receiveClock?: ReceiveClock
  /** False: frames are only logged, for tests. Default: true. */
  readonly isFolding?: boolean
}

export class SourceRecorder {
  readonly #options: SourceRecorderOptions
  readonly #log: WriteAheadLog
  readonly #lock: DataDirectoryLock
  readonly #places: LanePlaces
  readonly #rate = new FrameRate()
  readonly #discovery: MarketDiscovery
  #isRunning = true
  #markets = new Map<string, DirectoryMarket>()
  #worker: LiveFoldWorker | undefined
  #report: LiveFoldReport | undefined
  #clock: NodeJS.Timeout | undefined
  readonly #receiveClock: ReceiveClock
  #warnedStepMs = 0
  #statedHour = -1
  #hasLine = false
  #lastTs = 0n
  #lastBegunMs = 0
  #synced = 0
  #syncDelayMs = 0
  readonly #startedAtMs = Date.now()
  /** Identifies this run in the log. Always higher than that of the run before, because lines of a lower one count as read. */
  readonly #start: number
  #statusMs = 0
  #writingStatus: Promise<void> | undefined
  #isCongested = false
  #congestions = 0

  private constructor(
    options: SourceRecorderOptions,
    log: WriteAheadLog,
    lock: DataDirectoryLock,
    startBefore: number,
  ) {
    this.#start = Math.max(this.#startedAtMs, startBefore + 1)
    this.#options = options
    this.#log = log
    this.#lock = lock
    this.#receiveClock = options.receiveClock ?? new ReceiveClock()
    this.#places = new LanePlaces({ ...options, makeLane: (place) => this.#makeLane(place) })
    this.#discovery = new MarketDiscovery({
      source: options.source,
      directory: options.directory,
      logger: options.logger,
      intervalMs: options.discoveryIntervalMs ?? DISCOVERY_INTERVAL_MS,
      onMarkets: (markets) => this.#follow(markets),
      onListed: options.onListed,
    })
  }

  /** Rejects when another recorder of the exchange uses the work directory. */
  static async start(options: SourceRecorderOptions): Promise<SourceRecorder> {
    const directory = join(options.workDirectory, 'wal', options.source)
    const lock = await lockRecorder(directory, options.onFailed)
    try {
      const startBefore = await lastStart(directory)
      // Nothing is appended before the recorder begins.
      const log = await WriteAheadLog.open({
        directory,
        onSynced: (position, records, delayMs) => {
          recorder.#synced += records
          recorder.#syncDelayMs = delayMs
          recorder.#worker?.advanceTo(position)
        },
        onCongestion: (isCongested) => recorder.#congested(isCongested),
        onFailed: options.onFailed,
      })
      const recorder: SourceRecorder = new SourceRecorder(options, log, lock, startBefore)
      recorder.#begin()
      return recorder
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  /**
   * Closes the connections, writes and publishes the received messages, and releases the lock last, even after a failure. The log
   * has everything that was not published.
   */
  async stop(): Promise<void> {
    this.#isRunning = false
    clearInterval(this.#clock)
    try {
      await this.#discovery.close()
      this.#places.stop()
      await this.#log.close()
    } finally {
      this.#worker?.advanceTo(this.#log.position)
      await this.#worker?.stop()
      await this.#writingStatus
      await writeRecorderStatus(this.#options.workDirectory, this.metrics)
      await this.#lock.release()
    }
  }

  get metrics(): RecorderMetrics {
    const { listedAtMs, failures } = this.#discovery.figures
    return {
      source: this.#options.source,
      isRunning: this.#isRunning,
      startedAtMs: this.#startedAtMs,
      ...this.#rate.figures(Date.now()),
      markets: this.#markets.size,
      unplacedMarkets: this.#places.unplaced,
      lanes: [...this.#places].map(({ lane }) => lane.figures),
      syncedRecords: this.#synced,
      syncDelayMs: this.#syncDelayMs,
      queuedBytes: this.#log.queuedBytes,
      isCongested: this.#isCongested,
      congestions: this.#congestions,
      discoveredAtMs: listedAtMs,
      discoveryFailures: failures,
      foldFailures: this.#worker?.failures ?? 0,
      logPosition: this.#log.position,
      fold: this.#report,
    }
  }

  #begin(): void {
    const { source, lake, workDirectory, logger, publishIntervalMs, isFolding = true } = this.#options
    this.#append(WAL_KIND.start, NOTHING)
    if (isFolding) {
      this.#worker = new LiveFoldWorker(
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
    void this.#discovery.start()
  }

  #follow(markets: readonly DirectoryMarket[]): void {
    const before = this.#markets
    this.#markets = new Map(markets.map((market) => [market.id, market]))
    const added = markets.filter(({ id }) => !before.has(id))
    if (added.length > 0) this.#stateSeries(added)
    this.#places.assign(this.#markets)
    const { source, logger } = this.#options
    if (added.length > 0)
      logger.info({ source, markets: this.#markets.size, added: added.length }, 'following markets')
    const { unplaced } = this.#places
    if (unplaced > 0) logger.warn({ source, markets: unplaced }, 'more markets than connections can carry')
    this.#places.follow()
  }

  #makeLane(place: Omit<LanePlace, 'lane'>): FeedLane {
    const { number } = place
    const { source, logger, makeLane } = this.#options
    return makeLane({
      frame: (data) => {
        this.#rate.count(data, Date.now())
        this.#receiveClock.heard(data)
        this.#append(WAL_KIND.frame, data, place)
      },
      command: (text) => this.#append(WAL_KIND.command, Buffer.from(text), place),
      opened: () => {
        this.#receiveClock.reconnected()
        this.#lastBegunMs = Math.max(this.#lastBegunMs + 1, Date.now())
        place.begunMs = this.#lastBegunMs
        place.n = 0
        this.#mark(place, openMark())
        logger.info({ source, lane: number }, 'connected')
      },
      closed: (lastHeardMs) => {
        this.#mark(place, aliveMark(lastHeardMs))
        this.#mark(place, closeMark())
      },
      announced: (id) => this.#discovery.announce(id),
      nowMs: () => this.#receiveClock.nowMs(),
      trouble: (reason) => logger.warn({ source, lane: number, reason }, 'feed connection problem'),
    })
  }

  #mark(place: Omit<LanePlace, 'lane'>, frame: Frame): void {
    this.#append(WAL_KIND.mark, Buffer.from(JSON.stringify(frame)), place)
  }

  /** Appends a line of the connection of `place`, or, without one, a record about the log. */
  #append(kind: WalKind, payload: Uint8Array, place?: Omit<LanePlace, 'lane'>): void {
    const nowMs = this.#receiveClock.nowMs()
    const ts = BigInt(nowMs) * NS_PER_MS
    // Time does not go back within the log.
    if (ts > this.#lastTs) this.#lastTs = ts
    const { number: lane = 0, begunMs = 0, n = 0 } = place ?? {}
    try {
      this.#log.append({ kind, lane, begunMs, start: this.#start, n, recvTs: this.#lastTs, payload })
      if (place === undefined) return
      this.#hasLine = true
      place.n++
      place.lastLineMs = nowMs
    } catch {
      // The log has failed or is closed, and `onFailed` has been called.
    }
  }

  #tick(): void {
    const nowMs = Date.now()
    const isPause = BigInt(this.#receiveClock.nowMs()) * NS_PER_MS > this.#lastTs + PAUSE_NS_MAX
    for (const place of this.#places) {
      const { isConnected, lastHeardMs } = place.lane.figures
      const quietMs = place.n < YOUNG_LINES ? YOUNG_ALIVE_MS : ALIVE_MS
      const heardMs = lastHeardMs - HEARD_MARGIN_MS
      if (isPause && isConnected) this.#mark(place, lostMark())
      if (isConnected && lastHeardMs >= place.lastLineMs + quietMs) this.#mark(place, aliveMark(heardMs))
    }
    // While connections of the process before are open, only a line closes an hour: it shows when they ended.
    if (!this.#hasLine && this.#receiveClock.nowMs() > this.#startedAtMs + FIRST_LINE_MS_MAX)
      this.#mark({ number: 0, ids: new Set(), lastLineMs: 0, begunMs: 0, n: 0 }, closeMark())
    this.#append(WAL_KIND.clock, NOTHING)
    const hour = Math.floor(this.#receiveClock.nowMs() / MS_PER_HOUR)
    if (hour !== this.#statedHour && this.#markets.size > 0) this.#stateSeries([...this.#markets.values()])
    this.#statedHour = hour
    if (Math.abs(nowMs - this.#statusMs) > STATUS_INTERVAL_MS) this.#writeStatus(nowMs)
    this.#warnOfStep()
  }

  #warnOfStep(): void {
    const { steppedByMs } = this.#receiveClock
    if (steppedByMs !== 0 && this.#warnedStepMs === 0) {
      const { source, logger } = this.#options
      const way = steppedByMs > 0 ? 'forward' : 'back'
      const seconds = Math.round(Math.abs(steppedByMs) / 1000)
      const text = `the clock was set ${way} by ${seconds} s; receive times follow it when the exchange's times agree`
      logger.warn({ source }, text)
    }
    this.#warnedStepMs = steppedByMs
  }

  #writeStatus(nowMs: number): void {
    this.#statusMs = nowMs
    this.#writingStatus ??= writeRecorderStatus(this.#options.workDirectory, this.metrics).finally(() => {
      this.#writingStatus = undefined
    })
  }

  #stateSeries(markets: readonly DirectoryMarket[]): void {
    const entries = Object.fromEntries(markets.map(({ marketId, series }) => [marketId, series]))
    this.#append(WAL_KIND.series, Buffer.from(JSON.stringify(entries)))
  }

  #congested(isCongested: boolean): void {
    this.#isCongested = isCongested
    if (isCongested) this.#congestions++
    const { source, logger } = this.#options
    const text = isCongested
      ? 'the disk is slower than the feed: reading pauses'
      : 'the disk keeps up: reading resumes'
    logger.warn({ source, isCongested }, text)
    this.#places.setPaused(isCongested)
  }

  #takeReport(report: LiveFoldReport): void {
    this.#report = report
    if (report.gappedMarkets.length === 0) return
    const gapped = new Set(report.gappedMarkets)
    const ids = [...this.#markets.values()].filter(({ marketId }) => gapped.has(marketId)).map(({ id }) => id)
    this.#places.repair(ids, report.gappedAtMs)
  }
}
