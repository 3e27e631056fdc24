// The index of an order-book file for planning and replay: its markets, the span it covers, the span of each row group, and
// whether a replay may start at any hour. Bookcast's own footers state all of this. Other files are scanned once (three columns)
// and their index is cached.

import { EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'
import { MS_PER_HOUR } from '../../shared/utc-date.ts'
import { decodeInt32, decodeInt64, decodeStrings } from '../../shared/lob-file/decode-column.ts'
import type { ColumnChunk } from '../../shared/lob-file/column-pages.ts'
import type { FileFooter, RowGroup } from '../../shared/lob-file/file-footer.ts'

/** Nanoseconds of an hour, the unit of seeking. */
export const HOUR_NS = MS_PER_HOUR * 1e6

/**
 * A market of a file. Instants are ns after the file's midnight. `bookAtEnd` is the state after the last row; `inherited` if the
 * file neither clears nor interrupts the book, so that it depends on the previous date.
 */
export interface MarketIndex {
  readonly id: string
  readonly firstBook: number | null
  readonly last: number
  readonly bookAtEnd: 'known' | 'unknown' | 'inherited'
}

/** A row group with its span; `hour` is -1 if it is not within one UTC hour. */
export interface IndexedRowGroup extends RowGroup {
  readonly tsMin: number
  readonly hour: number
  /** The markets in it, if the file was scanned; else the footer's bounds decide. */
  readonly marketIds: ReadonlySet<string> | undefined
}

/** Whether a row group may have rows of a market, as far as the index tells. */
export function mayHoldMarket(group: IndexedRowGroup, id: string): boolean {
  if (group.marketIds !== undefined) return group.marketIds.has(id)
  const { marketMin, marketMax } = group
  return (marketMin === undefined || marketMin <= id) && (marketMax === undefined || id <= marketMax)
}

export interface FileIndex {
  readonly rowGroups: readonly IndexedRowGroup[]
  /** In code unit order of their ids. */
  readonly markets: ReadonlyMap<string, MarketIndex>
  readonly coversTo: number
  /** The coverage that the footer states; undefined if it states none. */
  readonly statedCoverage: { readonly from: number; readonly to: number } | undefined
  /** Row groups are in hour order, and every book that is known at the start of an hour has a keyframe there. */
  readonly isSeekable: boolean
  /** Books that are known at the file's midnight may have no row in it. */
  readonly mayLackBooks: boolean
  /** The writer promises a keyframe of every book that is known at the file's midnight; all other books are unknown then. */
  readonly tellsMidnight: boolean
  /** Some book has a gap in it. */
  readonly hasGaps: boolean
  /** Identifies the contents of the file (`FileFooter`); undefined if the footer cannot. */
  readonly contents: string | undefined
}

interface ChunkReader {
  /** The date's midnight UTC, ns since the epoch. */
  readonly baseNs: bigint
  readChunk(chunk: ColumnChunk): Uint8Array
}

/** Builds the index. Scans the rows only if the footer does not state enough. */
export function indexFile(file: ChunkReader, footer: FileFooter): FileIndex {
  return indexFromFooter(footer) ?? new FileScan(file).index(footer)
}

function statedCoverageOf(footer: FileFooter): FileIndex['statedCoverage'] {
  const { coversFrom, coversTo } = footer
  return coversFrom === undefined || coversTo === undefined ? undefined : { from: coversFrom, to: coversTo }
}

function indexFromFooter(footer: FileFooter): FileIndex | undefined {
  const statedCoverage = statedCoverageOf(footer)
  if (!footer.hasHourlyKeyframes || footer.markets === undefined || statedCoverage === undefined) {
    return undefined
  }
  const markets = new Map<string, MarketIndex>()
  for (const { id, first, firstBook, last, bookAtEnd } of footer.markets) {
    // Without a `clear`, an unknown end may come from a `gap` or be inherited; only a scan can tell.
    if (first === null || bookAtEnd === null || (firstBook === null && !bookAtEnd)) return undefined
    markets.set(id, { id, firstBook, last, bookAtEnd: bookAtEnd ? 'known' : 'unknown' })
  }
  const rowGroups: IndexedRowGroup[] = []
  for (const group of footer.rowGroups) {
    const { tsMin, tsMax } = group
    if (tsMin === undefined || tsMax === undefined) return undefined
    const hour = Math.floor(tsMin / HOUR_NS)
    if (Math.floor(tsMax / HOUR_NS) !== hour || hour < (rowGroups.at(-1)?.hour ?? 0)) return undefined
    rowGroups.push({ ...group, tsMin, hour, marketIds: undefined })
  }
  return {
    rowGroups,
    markets: sortedById(markets),
    coversTo: statedCoverage.to,
    statedCoverage,
    isSeekable: true,
    mayLackBooks: false,
    tellsMidnight: true,
    hasGaps: footer.gaps > 0,
    contents: footer.contents,
  }
}

/** In code unit order of the ids. */
export function sortedById<Market>(markets: Iterable<readonly [string, Market]>): Map<string, Market> {
  return new Map([...markets].toSorted(([left], [right]) => (left < right ? -1 : 1)))
}

/** Numbers ids in the order in which they are first asked for, and makes an entry for each. */
export function numbering<Entry>(make: (id: string) => Entry) {
  const entries: Entry[] = []
  const numbers = new Map<string, number>()
  const numberOf = (id: string): number => {
    let number = numbers.get(id)
    if (number === undefined) numbers.set(id, (number = entries.push(make(id)) - 1))
    return number
  }
  return { entries, numberOf }
}

interface ScannedMarket extends MarketIndex {
  firstBook: number | null
  last: number
  bookAtEnd: MarketIndex['bookAtEnd']
  /** The hour up to which keyframes are known to be complete. */
  hour: number
}

/** One pass over ts, market_id and event of every row. */
class FileScan {
  readonly #file: ChunkReader
  readonly #markets = numbering<ScannedMarket>((id) => {
    return { id, firstBook: null, last: Number.NEGATIVE_INFINITY, bookAtEnd: 'inherited', hour: -1 }
  })
  #isSeekable = true
  /** Some market has rows before its first `clear`: the recording continues books from before. */
  #isContinued = false
  #hasGaps = false
  #coversTo = Number.NEGATIVE_INFINITY

  constructor(file: ChunkReader) {
    this.#file = file
  }

  index(footer: FileFooter): FileIndex {
    const rowGroups = footer.rowGroups.map((group) => this.#scanGroup(group))
    const statedCoverage = statedCoverageOf(footer)
    // Coverage may end hours after the last row.
    const lastHour = Math.floor(Math.max(this.#coversTo, statedCoverage?.to ?? 0) / HOUR_NS)
    const markets = this.#markets.entries
    for (const market of markets) this.#checkKeyframes(market, lastHour)
    for (const [position, group] of rowGroups.entries()) {
      if (group.hour === -1 || group.hour < (rowGroups[position - 1]?.hour ?? 0)) this.#isSeekable = false
    }
    const tellsMidnight = footer.hasHourlyKeyframes
    const hasKeyframes = this.#isSeekable && markets.some(({ firstBook }) => firstBook === 0)
    return {
      rowGroups,
      markets: sortedById(markets.map((market) => [market.id, market])),
      coversTo: statedCoverage?.to ?? this.#coversTo,
      statedCoverage,
      isSeekable: this.#isSeekable,
      mayLackBooks: !tellsMidnight && (this.#isContinued || !hasKeyframes),
      tellsMidnight,
      hasGaps: this.#hasGaps,
      contents: footer.contents,
    }
  }

  #scanGroup(group: RowGroup): IndexedRowGroup {
    const file = this.#file
    const { ts: tsChunk, market_id: marketChunk, event: eventChunk } = group.columns
    const ts = decodeInt64(file.readChunk(tsChunk), tsChunk, group.rows, file.baseNs)
    const { entries, numberOf } = this.#markets
    const market = decodeStrings(file.readChunk(marketChunk), marketChunk, group.rows, numberOf)
    const event = decodeInt32(file.readChunk(eventChunk), eventChunk, group.rows, EVENT_GAP)
    const present = new Set<string>()
    let tsMin = Number.POSITIVE_INFINITY
    let tsMax = Number.NEGATIVE_INFINITY
    for (let row = 0; row < group.rows; row++) {
      const instant = ts[row]!
      if (instant < tsMin) tsMin = instant
      if (instant > tsMax) tsMax = instant
      const scanned = entries[market[row]!]!
      present.add(scanned.id)
      this.#scanRow(scanned, instant, event[row]!)
    }
    if (tsMax > this.#coversTo) this.#coversTo = tsMax
    const hour = Math.floor(tsMin / HOUR_NS)
    const isWithinOneHour = group.rows > 0 && hour >= 0 && Math.floor(tsMax / HOUR_NS) === hour
    return { ...group, tsMin, tsMax, hour: isWithinOneHour ? hour : -1, marketIds: present }
  }

  #scanRow(market: ScannedMarket, instant: number, event: number): void {
    if (instant < market.last) {
      throw new Error(`the times of market ${market.id} go backwards`)
    }
    if (market.firstBook === null && event !== EVENT_CLEAR) this.#isContinued = true
    const hour = Math.floor(instant / HOUR_NS)
    if (hour > market.hour) {
      const isKeyframe = event === EVENT_CLEAR && instant === hour * HOUR_NS
      this.#checkKeyframes(market, isKeyframe ? hour - 1 : hour)
      market.hour = hour
    }
    market.last = instant
    if (event === EVENT_CLEAR) {
      market.firstBook ??= instant
      market.bookAtEnd = 'known'
    } else if (event === EVENT_GAP) {
      market.bookAtEnd = 'unknown'
      this.#hasGaps = true
    }
  }

  /** A book known after `market.hour` must have had a keyframe in every later hour up to `hour`. */
  #checkKeyframes(market: ScannedMarket, hour: number): void {
    if (market.bookAtEnd === 'known' && market.hour < hour) this.#isSeekable = false
  }
}
