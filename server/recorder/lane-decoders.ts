// The decoders of a source's connections, each fed with what the log holds of its lane. Where a connection has ended
// unseen, its decoder is told.

import type { LobSource } from '../../shared/lob-sources.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import { BadLineError } from '../feed/bad-line.ts'
import type { FeedDecoderOptions, ResumableDecoder } from '../feed/feed-decoder.ts'
import { disconnectMark } from '../feed/wal-mark.ts'
import { ownTimeKeysOf, parseRecordedLine } from '../import/recorded-message.ts'
import { WAL_KIND } from './wal-record.ts'
import type { WalRecord } from './wal-record.ts'

export type LaneDecoderOptions = Pick<FeedDecoderOptions, 'sink' | 'spans' | 'tally' | 'seriesOf'>

/** A lane's decoder and what is known of its connection. */
export interface LaneState {
  readonly lane: number
  readonly epoch: number
  readonly lastTs: bigint
  readonly isConnected: boolean
  readonly decoder: unknown
}

interface Lane {
  readonly decoder: ResumableDecoder
  epoch: number
  lastTs: bigint
  isConnected: boolean
}

const NEW_LANE: Omit<LaneState, 'lane'> = {
  epoch: -1,
  lastTs: 0n,
  isConnected: false,
  decoder: undefined,
}

export class LaneDecoders {
  readonly #source: LobSource
  readonly #options: LaneDecoderOptions
  readonly #ownTimeKeys: ReadonlySet<string>
  readonly #lanes = new Map<number, Lane>()

  constructor(source: LobSource, options: LaneDecoderOptions, lanes: readonly LaneState[]) {
    this.#source = source
    this.#options = options
    this.#ownTimeKeys = ownTimeKeysOf(source)
    for (const lane of lanes) this.#add(lane)
  }

  state(): LaneState[] {
    return [...this.#lanes].map(([lane, { decoder, epoch, lastTs, isConnected }]) => {
      return { lane, epoch, lastTs, isConnected, decoder: decoder.state() }
    })
  }

  forgetMarkets(): void {
    for (const { decoder } of this.#lanes.values()) decoder.forgetMarkets()
  }

  /**
   * What ends a connection unseen: another recorder's start, a loss in the log, a time in which nobody wrote (the clock
   * does every few seconds), another connection in the lane.
   */
  noticeInterruption({ kind, lane: number, epoch }: WalRecord, isPause: boolean): void {
    if (kind === WAL_KIND.lost || kind === WAL_KIND.start || isPause) {
      for (const lane of this.#lanes.values()) disconnect(lane)
    } else if (kind <= WAL_KIND.mark) {
      const lane = this.#lanes.get(number)
      if (lane !== undefined && lane.epoch !== epoch) disconnect(lane)
    }
  }

  /** A message of a lane, or a mark. */
  take({ lane: number, epoch, recvTs, payload }: WalRecord): void {
    const lane = this.#lanes.get(number) ?? this.#add({ ...NEW_LANE, lane: number })
    lane.epoch = epoch
    lane.isConnected = true
    lane.lastTs = recvTs
    try {
      const message = parseRecordedLine(payload.toString('utf8'), this.#ownTimeKeys)
      if (message.frames.some((frame) => frame['type'] === 'disconnect')) lane.isConnected = false
      lane.decoder.decode({ ...message, recvTs: message.recvTs ?? recvTs })
    } catch (error) {
      if (!(error instanceof BadLineError)) throw error
      this.#options.tally.badLines++
      lane.decoder.skipBadLine()
    }
  }

  #add({ lane: number, epoch, lastTs, isConnected, decoder: state }: LaneState): Lane {
    // Lanes ask for prices of the yes leg, and the command may lie in a part of the log that is gone.
    const options = { ...this.#options, isLive: true, useYesPrice: true }
    const decoder = exchangeOf(this.#source).makeDecoder(options, state)
    if (state === undefined) decoder.startFile(`the recorder's connection ${number}`)
    const lane = { decoder, epoch, lastTs, isConnected }
    this.#lanes.set(number, lane)
    return lane
  }
}

// At the last time heard of it: what came after is not known.
function disconnect(lane: Lane): void {
  if (!lane.isConnected) return
  lane.isConnected = false
  lane.decoder.decode({ recvTs: lane.lastTs, frames: [disconnectMark()], isList: false })
}
