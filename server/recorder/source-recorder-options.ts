// The options of the recorder of one exchange.

import type { LobSource } from '../../shared/lob-sources.ts'
import type { FeedLane, LaneLog } from '../feed/feed-lane.ts'
import type { MarketDirectory } from '../feed/market-directory.ts'
import type { ReceiveClock } from '../feed/receive-clock.ts'
import type { TaskLog } from '../tasks/task-log.ts'
import type { OnListed } from './market-discovery.ts'

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
  readonly onListed?: OnListed | undefined
  readonly publishIntervalMs?: number
  readonly discoveryIntervalMs?: number
  readonly clockMs?: number
  /** Default: a new one that follows the machine's clock. */
  readonly receiveClock?: ReceiveClock
  /** False: frames are only logged, for tests. Default: true. */
  readonly isFolding?: boolean
}
