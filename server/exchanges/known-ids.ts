// Interns market ids: messages repeat the same ids, and without this, each message would build, hash and hold its own copies.

/** Ids to remember; when there are more, the map is cleared. */
const KNOWN_IDS_MAX = 100_000

interface KnownId {
  readonly market: string
  readonly id: string
}

/** Returns the id of a market's asset. `idOf` builds an id. */
export function knownIds(idOf: (market: string, asset: string) => string) {
  const known = new Map<string, KnownId>()
  return (market: string, asset: string): string => {
    const found = known.get(asset)
    if (found !== undefined && found.market === market) return found.id
    if (known.size >= KNOWN_IDS_MAX) known.clear()
    const own = { market: copyOf(market), asset: copyOf(asset) }
    const id = idOf(own.market, own.asset)
    known.set(own.asset, { market: own.market, id })
    return id
  }
}

/** A slice of a longer text would keep all of it in memory. */
function copyOf(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
