// The markets of a series that is being recorded: what has come of them since the open hour began, and their books, by
// index.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { LobSource } from '../../shared/lob-sources.ts'
import { carriedMarkets } from '../lake/lob-evidence.ts'
import type { CarriedMarket } from '../lake/lob-evidence.ts'
import { MarketFold } from '../lake/market-fold.ts'
import type { MarketFoldState } from '../lake/market-fold.ts'
import { SeriesRecording } from '../lake/series-recording.ts'
import type { SeriesRecordingState } from '../lake/series-recording.ts'

/** Between two hours, as plain data. */
export interface LiveMarketsState {
  readonly recording: SeriesRecordingState
  /** The markets at the open hour's start, by index. */
  readonly folds: readonly MarketFoldState[]
  /** The books with which the date began. */
  readonly carried: readonly CarriedMarket[]
}

/** Where spilled events go. */
export interface LiveMarketsPlace {
  readonly workDirectory: string
  readonly source: LobSource
}

export class LiveMarkets {
  readonly #series: string
  readonly #spillDirectory: string
  #recording: SeriesRecording
  #carried: readonly CarriedMarket[]
  #startFolds: MarketFold[]
  #sliceFolds: MarketFold[]

  constructor(series: string, { workDirectory, source }: LiveMarketsPlace, state?: LiveMarketsState) {
    this.#series = series
    this.#spillDirectory = join(workDirectory, 'spill', source)
    this.#recording = this.#newRecording(state?.recording)
    this.#carried = state?.carried ?? []
    this.#startFolds = (state?.folds ?? []).map((fold) => new MarketFold(fold))
    this.#sliceFolds = this.#startFolds.map((fold) => fold.copy())
  }

  state(): LiveMarketsState {
    const folds = this.#startFolds.map((fold) => fold.state())
    return { recording: this.#recording.state(), folds, carried: this.#carried }
  }

  get recording(): SeriesRecording {
    return this.#recording
  }

  /** The books with which the date began. */
  get carried(): readonly CarriedMarket[] {
    return this.#carried
  }

  /** The markets at the open hour's start. */
  get startFolds(): readonly MarketFold[] {
    return this.#startFolds
  }

  /** The markets after the open hour's sealed slices. */
  get sliceFolds(): readonly MarketFold[] {
    return this.#sliceFolds
  }

  /** New markets begin with an unknown book. */
  grow(): void {
    const markets = this.#recording.marketIds().length
    while (this.#startFolds.length < markets) this.#startFolds.push(new MarketFold())
    while (this.#sliceFolds.length < markets) this.#sliceFolds.push(new MarketFold())
  }

  /** The markets that `startFolds` have become are those at the start of the next hour. */
  startHour(): void {
    this.#sliceFolds = this.#startFolds.map((fold) => fold.copy())
  }

  startDate(): void {
    this.#forgetMarkets()
    for (const fold of this.#startFolds) fold.startDate()
    this.startHour()
    this.#carried = this.carriedFrom(this.#startFolds)
  }

  /** The date is recorded anew, from what it begins with in `state` on. */
  readAgain(state: SeriesRecordingState): SeriesRecording {
    for (const hour of this.#recording.hours.values()) hour.drop()
    this.#recording = this.#newRecording(state)
    return this.#recording
  }

  /** The markets at the start of the date that is recorded anew. */
  beginWith(folds: MarketFold[]): void {
    this.#startFolds = folds
    this.#carried = this.carriedFrom(folds)
  }

  /** The books with which a date begins before which the markets are these. */
  carriedFrom(folds: readonly MarketFold[]): readonly CarriedMarket[] {
    return carriedMarkets(this.#recording.marketIds(), this.#recording.marketOrder(), folds)
  }

  /** Markets that are over: no book is known and nothing waits. Without this every market ever seen would stay. */
  #forgetMarkets(): void {
    const state = this.#recording.state()
    const waiting = new Set(state.events.map(({ marketId }) => marketId))
    const kept = state.markets.map(({ id }, index) => this.#startFolds[index]!.isKnown || waiting.has(id))
    this.readAgain({ ...state, markets: state.markets.filter((_, index) => kept[index]) })
    this.#startFolds = this.#startFolds.filter((_, index) => kept[index])
  }

  #newRecording(state: SeriesRecordingState | undefined): SeriesRecording {
    return new SeriesRecording(
      this.#series,
      (hour) => {
        mkdirSync(this.#spillDirectory, { recursive: true })
        return join(this.#spillDirectory, `${this.#series}-${hour}`)
      },
      state,
    )
  }
}
