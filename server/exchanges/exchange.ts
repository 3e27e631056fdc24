// The definition of an exchange, for code that names none: how its messages are read (import, fold, recorder), what configures
// its recording (commands), and how a recorder listens to it. Its name and market ids are in shared/lob-sources.ts, because
// threads that only read the lake need them too. registry.ts lists all exchanges.

import type { FeedLane, LaneLog } from '../feed/feed-lane.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import type { Frame } from '../feed/frame.ts'
import type { TradeMessage } from '../feed/trade-message.ts'
import type { MarketDirectory } from '../feed/market-directory.ts'
import type { OptionDeclaration, ParsedOptions } from '../options/options.ts'
import type { UpstreamHttp } from '../upstream/upstream-http.ts'

/** What is recorded of an exchange, and how it is reached: plain data and keys. */
export interface ExchangeRecording {
  readonly series: readonly string[]
  /** Its REST API. */
  readonly restUrl: string
}

/** What a recorder needs to listen. */
export interface ExchangeFeed {
  readonly directory: MarketDirectory
  readonly lanesMax: number
  readonly marketsPerLaneMax: number
  readonly makeLane: (log: LaneLog) => FeedLane
}

/** Both throw BadLineError for a trade that is not what it promises. */
export interface TradeReader {
  /** What the text of every frame with a trade contains. */
  readonly mark: string
  /** The trade that a frame states; `undefined` for any other frame. */
  ofFrame(frame: Frame): TradeMessage | undefined
  /** The trade of a row that REST gives. */
  ofRow(row: Frame): TradeMessage
}

export interface Exchange<Recording extends ExchangeRecording = ExchangeRecording> {
  // How its messages are read. The recorder's own words are among them (server/feed/wal-mark.ts).

  /** Whether a frame is typical: no other exchange has its like. */
  readonly isTypical: (frame: Frame) => boolean
  /** Whether an object is a frame although it has no `type`, `event_type` or `cmd`. Absent where all have one. */
  readonly isUntyped?: (value: Frame) => boolean
  /**
   * What may be kept of a frame: the frame itself, a copy without its private parts, or `undefined` where it is private as a
   * whole. Frames of public channels and commands without secrets are listed; what is not listed is private.
   */
  readonly publicPart: (frame: Frame) => Frame | undefined
  /** Times of its own that a frame has beside its content, apart from `ts` and `ts_ms`; others are receive times. */
  readonly timeKeys?: readonly string[]
  /** Throws BadLineError where the frame is not what its type promises. */
  readFrame(frame: Frame): FeedMessage
  /** How its trades are read. Absent where they are not kept. */
  readonly trades?: TradeReader
  /** Whether messages have numbers, in which a missing one shows. */
  readonly isNumbered: boolean
  /** Whether asks are given as bids of the `no` leg, unless the subscription asks for prices of the yes leg. */
  readonly hasNoLeg: boolean
  /** The line that a recorder writes when it loses its connection, for people. */
  readonly disconnectLine: string

  // What configures its recording.

  /** The series to record; a recording without any is none. */
  readonly seriesOption: OptionDeclaration
  readonly addressOptions: readonly OptionDeclaration[]
  /** Addresses that the collectors of markets and candles ask too, and declare themselves. */
  readonly sharedOptions: readonly OptionDeclaration[]
  /** Which secrets are taken from the environment, for people. Absent where none are needed. */
  readonly secretsHelp?: string
  /** @throws {UsageError} that names the wrong option or variable, and never repeats a secret */
  readRecording(series: readonly string[], options: ParsedOptions, env: NodeJS.ProcessEnv): Recording
  /** The recording as people may see it: without secrets. */
  describe(recording: Recording): object

  // How it is listened to.

  /** `http` is a client of the REST API, which the recorder closes. Loads what only a recorder needs. */
  openFeed(recording: Recording, http: UpstreamHttp): Promise<ExchangeFeed>
}
