// One text for each market id: messages name the same ids again and again, and equal texts would be built, hashed and held once a
// message.

/** Ids that are remembered; further ones begin anew. */
const KNOWN_IDS_MAX = 100_000

interface KnownId {
  readonly market: string
  readonly id: string
}

export class KnownIds {
  readonly #idOf: (market: string, asset: string) => string
  readonly #known = new Map<string, KnownId>()

  /** `idOf` puts an id together. */
  constructor(idOf: (market: string, asset: string) => string) {
    this.#idOf = idOf
  }

  /** The id of the market's asset. */
  of(market: string, asset: string): string {
    const found = this.#known.get(asset)
    if (found !== undefined && found.market === market) return found.id
    if (this.#known.size >= KNOWN_IDS_MAX) this.#known.clear()
    const id = this.#idOf(market, asset)
    this.#known.set(asset, { market, id })
    return id
  }
}
