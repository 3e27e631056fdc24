// The interface of an exchange, for code that is independent of the exchange: how to read its messages (import, fold, recorder),
// how to configure a recording (commands), and how a recorder connects. Names and market ids are in shared/lob-sources.ts, because
// threads that only read the lake need them too. registry.ts lists all exchanges.

import type { FeedLane, LaneLog } from '../feed/feed-lane.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import type { Frame } from '../feed/frame.ts'
import type { TradeMessage } from '../feed/trade-message.ts'
import type { MarketDirectory } from '../feed/market-directory.ts'
import type { OptionDeclaration, ParsedOptions } from '../options/options.ts'
import type { UpstreamHttp } from '../upstream/upstream-http.ts'

/** The configuration of a recording: series, addresses, keys. Plain data. */
export interface ExchangeRecording {
  readonly series: readonly string[]
  /** The exchange's REST API. */
  readonly restUrl: string
}

/** The parts that a recorder needs to connect. */
export interface ExchangeFeed {
  readonly directory: MarketDirectory
  readonly lanesMax: number
  readonly marketsPerLaneMax: number
  readonly makeLane: (log: LaneLog) => FeedLane
}

/** Both methods throw BadLineError for a malformed trade. */
export interface TradeReader {
  /** What the text of every frame with a trade contains. */
  readonly mark: string
  /** The trade in a frame; `undefined` for any other frame. */
  ofFrame(frame: Frame): TradeMessage | undefined
  /** The trade in a REST row. */
  ofRow(row: Frame): TradeMessage
}

/** How to configure a recording. */
export interface ExchangeConfiguration<Recording extends ExchangeRecording = ExchangeRecording> {
  /** The series to record. Without series, nothing is recorded. */
  readonly seriesOption: OptionDeclaration
  readonly addressOptions: readonly OptionDeclaration[]
  /** Address options that the collectors of markets and candles also use and declare themselves. */
  readonly sharedOptions: readonly OptionDeclaration[]
  /** The secrets taken from the environment, for users. Absent if none are needed. */
  readonly secretsHelp?: string
  /** @throws {UsageError} that names the wrong option or variable, and never repeats a secret */
  readRecording(series: readonly string[], options: ParsedOptions, env: NodeJS.ProcessEnv): Recording
  /** The recording without secrets, for users. */
  describe(recording: Recording): object
}

export interface Exchange<
  Recording extends ExchangeRecording = ExchangeRecording,
> extends ExchangeConfiguration<Recording> {
  // How to read its messages. These include the recorder's own frames (server/feed/wal-mark.ts).

  /** Whether a frame is typical: no other exchange has such frames. */
  readonly isTypical: (frame: Frame) => boolean
  /** Whether an object is a frame although it has no `type`, `event_type` or `cmd`. Absent if every frame has one. */
  readonly isUntyped?: (value: Frame) => boolean
  /**
   * The part of a frame that may be kept: the frame itself, a copy without its private parts, or `undefined` if all of it is
   * private. The exchange lists frames of public channels and commands without secrets; anything else is private.
   */
  readonly publicPart: (frame: Frame) => Frame | undefined
  /** Keys of the exchange's own times beside a frame's content, apart from `ts` and `ts_ms`; other times are receive times. */
  readonly timeKeys?: readonly string[]
  /** Throws BadLineError for a frame that does not match its type. */
  readFrame(frame: Frame): FeedMessage
  /**
   * Reads the JSON text of a frame of changes, faster than with JSON.parse. Returns what readFrame returns for it; `undefined` for any
   * other text, and for frames with a private part.
   */
  readonly readText?: (json: string) => FeedMessage | undefined
  /** How to read its trades. Absent if they are not kept. */
  readonly trades?: TradeReader
  /** Whether messages are numbered, so that a missing one is noticed. */
  readonly isNumbered: boolean
  /** Whether asks are bids of the `no` leg, unless the subscription requests yes prices. */
  readonly hasNoLeg: boolean
  /** The line that a recorder writes when it loses its connection, for users. */
  readonly disconnectLine: string

  // How to connect.

  /** `http` is a client of the REST API; the recorder closes it. Loads modules that only a recorder needs. */
  openFeed(recording: Recording, http: UpstreamHttp): Promise<ExchangeFeed>
}
