// The markets of a series that is being recorded: their events since the start of the open hour, and their books, by index.

import { join } from 'node:path'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MarketFold } from '../lake/market-fold.ts'
import { SeriesRecording } from '../lake/series-recording.ts'
import type { SeriesRecordingState } from '../lake/series-recording.ts'

/** Between two hours, as plain data. */
type LiveMarketsState = ReturnType<LiveMarkets['state']>

/** Where spilled events go. */
export interface LiveMarketsPlace {
  readonly workDirectory: string
  readonly source: LobSource
}

export class LiveMarkets {
  readonly #series: string
  readonly #spillDirectory: string
  #recording: SeriesRecording
  #startFolds: MarketFold[]
  #portionFolds: MarketFold[]

  constructor(series: string, { workDirectory, source }: LiveMarketsPlace, state?: LiveMarketsState) {
    this.#series = series
    this.#spillDirectory = join(workDirectory, 'spill', source)
    this.#recording = this.#newRecording(state?.recording)
    this.#startFolds = (state?.folds ?? []).map((fold) => new MarketFold(fold))
    this.#portionFolds = this.#startFolds.map((fold) => fold.copy())
  }

  state() {
    return { recording: this.#recording.state(), folds: this.#startFolds.map((fold) => fold.state()) }
  }

  get recording(): SeriesRecording {
    return this.#recording
  }

  /** The markets at the open hour's start. */
  get startFolds(): readonly MarketFold[] {
    return this.#startFolds
  }

  /** The markets after the open hour's encoded portions. */
  get portionFolds(): readonly MarketFold[] {
    return this.#portionFolds
  }

  /** New markets begin with an unknown book. */
  grow(): void {
    const markets = this.#recording.marketIds().length
    while (this.#startFolds.length < markets) this.#startFolds.push(new MarketFold())
    while (this.#portionFolds.length < markets) this.#portionFolds.push(new MarketFold())
  }

  /** Call it when the open hour is folded into `startFolds`: they are now those at the start of the next hour. */
  startHour(): void {
    this.#portionFolds = this.#startFolds.map((fold) => fold.copy())
  }

  /** `links` are the chains that continue in the date that begins, with their numbers there. */
  startDate(links: ReadonlyMap<number, number>): void {
    this.#startFolds = this.#startFolds.map((fold) => inNextDate(fold, links))
    this.#forgetMarkets()
    this.startHour()
  }

  /** Forgets markets without a known book and without waiting events. Otherwise, every market ever seen would stay. */
  #forgetMarkets(): void {
    const state = this.#recording.state()
    const waiting = new Set(state.events.map(({ marketId }) => marketId))
    const kept = state.markets.map(({ id }, index) => this.#startFolds[index]!.isKnown || waiting.has(id))
    for (const hour of this.#recording.hours.values()) hour.drop()
    this.#recording = this.#newRecording({
      ...state,
      markets: state.markets.filter((_, index) => kept[index]),
    })
    this.#startFolds = this.#startFolds.filter((_, index) => kept[index])
  }

  #newRecording(state: SeriesRecordingState | undefined): SeriesRecording {
    return new SeriesRecording(
      this.#series,
      (hour) => join(this.#spillDirectory, `${this.#series}-${hour}`),
      state,
    )
  }
}

/** A market at the beginning of the next date: the books of chains that continue there. */
export function inNextDate(fold: MarketFold, links: ReadonlyMap<number, number>): MarketFold {
  const state = fold.state()
  const known = state.known.flatMap(({ chain, levels }) => {
    const next = links.get(chain)
    return next === undefined ? [] : [{ chain: next, levels }]
  })
  return new MarketFold({ ...state, known, serving: known[0]?.chain, rows: 0 })
}
