// Assigns markets to connections. Connections are opened as markets are added, and stay open.

import type { ExchangeFeed } from '../exchanges/exchange.ts'
import type { FeedLane } from '../feed/feed-lane.ts'

export interface LanePlace {
  readonly number: number
  readonly lane: FeedLane
  readonly ids: Set<string>
  /** When the lane's last line was logged, and how many lines of its connection the log has. */
  lastLineMs: number
  n: number
  /** Distinguishes the connections of a lane. */
  begunMs: number
}

export interface LanePlacesOptions extends Pick<ExchangeFeed, 'lanesMax' | 'marketsPerLaneMax'> {
  /** `place` is the one that the lane is made for. */
  readonly makeLane: (place: Omit<LanePlace, 'lane'>) => FeedLane
}

export class LanePlaces {
  readonly #options: LanePlacesOptions
  readonly #places: LanePlace[] = []
  readonly #placeById = new Map<string, LanePlace>()
  #unplaced = 0
  #isPaused = false

  constructor(options: LanePlacesOptions) {
    this.#options = options
  }

  [Symbol.iterator](): Iterator<LanePlace> {
    return this.#places.values()
  }

  /** Markets for which the connections have no room. */
  get unplaced(): number {
    return this.#unplaced
  }

  /** Places new markets and removes those that are no longer wanted. The lanes are updated afterwards. */
  assign(wanted: Pick<ReadonlyMap<string, unknown>, 'has' | 'keys'>): void {
    for (const [id, place] of this.#placeById) {
      if (wanted.has(id)) continue
      place.ids.delete(id)
      this.#placeById.delete(id)
    }
    this.#unplaced = 0
    for (const id of wanted.keys()) if (!this.#placeById.has(id)) this.#place(id)
  }

  follow(): void {
    for (const { lane, ids } of this.#places) lane.follow(ids)
  }

  /** Requests the books of these markets, which were unknown at `atMs`. */
  repair(ids: readonly string[], atMs: number): void {
    for (const { lane, ids: placed } of this.#places) {
      const broken = ids.filter((id) => placed.has(id))
      if (broken.length > 0) lane.repair(broken, atMs)
    }
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused
    for (const { lane } of this.#places) lane.setPaused(isPaused)
  }

  stop(): void {
    for (const { lane } of this.#places) lane.stop()
  }

  #place(id: string): void {
    const { lanesMax, marketsPerLaneMax } = this.#options
    let place = this.#places.find(({ ids }) => ids.size < marketsPerLaneMax)
    if (place === undefined && this.#places.length < lanesMax) place = this.#add()
    if (place === undefined) {
      this.#unplaced++
      return
    }
    place.ids.add(id)
    this.#placeById.set(id, place)
  }

  #add(): LanePlace {
    const begun = { number: this.#places.length, ids: new Set<string>(), lastLineMs: 0, n: 0, begunMs: 0 }
    const place = Object.assign(begun, { lane: this.#options.makeLane(begun) })
    if (this.#isPaused) place.lane.setPaused(true)
    this.#places.push(place)
    return place
  }
}
