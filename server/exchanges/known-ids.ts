// Interns market ids: messages repeat the same ids, and without this, each message would build, hash and hold its own copies.

/** Ids to remember; when there are more, the map is cleared. */
const KNOWN_IDS_MAX = 100_000

interface KnownId {
  readonly market: string
  readonly id: string
}

export class KnownIds {
  readonly #idOf: (market: string, asset: string) => string
  readonly #known = new Map<string, KnownId>()

  /** `idOf` builds an id. */
  constructor(idOf: (market: string, asset: string) => string) {
    this.#idOf = idOf
  }

  /** The id of the market's asset. */
  of(market: string, asset: string): string {
    const found = this.#known.get(asset)
    if (found !== undefined && found.market === market) return found.id
    if (this.#known.size >= KNOWN_IDS_MAX) this.#known.clear()
    const own = { market: copyOf(market), asset: copyOf(asset) }
    const id = this.#idOf(own.market, own.asset)
    this.#known.set(own.asset, { market: own.market, id })
    return id
  }
}

/** A slice of a longer text would keep all of it in memory. */
function copyOf(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
