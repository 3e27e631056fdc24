// What planning and replay need to know of an order-book file: its markets, the span it covers, what each row group
// spans, and whether replay may start at any hour. Bookcast's own footers say all of it; for any other file the rows
// are scanned once (three columns) and the result remembered.

import { EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'
import { MS_PER_HOUR } from '../../shared/utc-date.ts'
import { decodeInt32, decodeInt64, decodeStrings } from '../../shared/lob-file/decode-column.ts'
import type { ColumnChunk } from '../../shared/lob-file/column-pages.ts'
import type { FileFooter, RowGroup } from '../../shared/lob-file/file-footer.ts'

/** ns of an hour, the unit of seeking. */
export const HOUR_NS = MS_PER_HOUR * 1e6

/**
 * A market of a file. Instants are ns after the file's midnight. `bookAtEnd` after the last row: `inherited` when the
 * file neither clears nor interrupts the book, so that only the previous date can tell.
 */
export interface MarketIndex {
  readonly id: string
  readonly firstBook: number | null
  readonly last: number
  readonly bookAtEnd: 'known' | 'unknown' | 'inherited'
}

/** A row group and what it spans; `hour` is -1 where it does not lie within one UTC hour. */
export interface IndexedRowGroup extends RowGroup {
  readonly tsMin: number
  readonly hour: number
  /** Markets in it, when a scan found out; else the footer's bounds decide. */
  readonly marketIds: ReadonlySet<string> | undefined
}

/** Whether a row group may hold rows of a market, by what the index knows of it. */
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
  /** The coverage the footer states; undefined where it says nothing. */
  readonly statedCoverage: { readonly from: number; readonly to: number } | undefined
  /** Row groups are in hour order and every book known at the start of an hour has its keyframe there. */
  readonly isSeekable: boolean
  /** Books that are known at the file's midnight may have no row in it. */
  readonly mayLackBooks: boolean
  /** The writer promises a keyframe of every book that is known at the file's midnight: no other is. */
  readonly tellsMidnight: boolean
  /** Some book is lost in it. */
  readonly hasGaps: boolean
}

interface ChunkReader {
  /** Of its date's midnight. */
  readonly baseNs: bigint
  readChunk(chunk: ColumnChunk): Uint8Array
}

/** Builds the index, scanning the rows only when the footer does not say enough. */
export function indexFile(file: ChunkReader, footer: FileFooter): FileIndex {
  return indexFromFooter(footer) ?? new FileScan(file, footer).index()
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
    // Without a `clear` an unknown end may be a `gap` or inherited: only the rows tell.
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
  }
}

/** In code unit order of the ids. */
export function sortedById<Market>(markets: Iterable<readonly [string, Market]>): Map<string, Market> {
  return new Map([...markets].toSorted(([left], [right]) => (left < right ? -1 : 1)))
}

interface ScannedMarket {
  readonly id: string
  firstBook: number | null
  last: number
  bookAtEnd: MarketIndex['bookAtEnd']
  /** The hour up to which keyframes were found complete. */
  hour: number
}

/** One pass over ts, market_id and event of every row. */
class FileScan {
  readonly #file: ChunkReader
  readonly #footer: FileFooter
  readonly #markets: ScannedMarket[] = []
  readonly #numbers = new Map<string, number>()
  #isSeekable = true
  /** Rows of some market come before its first `clear`: the recording goes on with books that it did not begin. */
  #isContinued = false
  #hasGaps = false
  #coversTo = Number.NEGATIVE_INFINITY

  constructor(file: ChunkReader, footer: FileFooter) {
    this.#file = file
    this.#footer = footer
  }

  index(): FileIndex {
    const rowGroups = this.#footer.rowGroups.map((group) => this.#scanGroup(group))
    const lastHour = Math.floor(this.#coversTo / HOUR_NS)
    for (const market of this.#markets) this.#checkKeyframes(market, lastHour)
    for (const [position, group] of rowGroups.entries()) {
      if (group.hour === -1 || group.hour < (rowGroups[position - 1]?.hour ?? 0)) this.#isSeekable = false
    }
    const markets = new Map<string, MarketIndex>()
    for (const { id, firstBook, last, bookAtEnd } of this.#markets) {
      markets.set(id, { id, firstBook, last, bookAtEnd })
    }
    const statedCoverage = statedCoverageOf(this.#footer)
    const tellsMidnight = this.#footer.hasHourlyKeyframes
    const hasKeyframes = this.#isSeekable && this.#markets.some(({ firstBook }) => firstBook === 0)
    return {
      rowGroups,
      markets: sortedById(markets),
      coversTo: statedCoverage?.to ?? this.#coversTo,
      statedCoverage,
      isSeekable: this.#isSeekable,
      mayLackBooks: !tellsMidnight && (this.#isContinued || !hasKeyframes),
      tellsMidnight,
      hasGaps: this.#hasGaps,
    }
  }

  #scanGroup(group: RowGroup): IndexedRowGroup {
    const file = this.#file
    const { ts: tsChunk, market_id: marketChunk, event: eventChunk } = group.columns
    const ts = decodeInt64(file.readChunk(tsChunk), tsChunk, group.rows, file.baseNs)
    const market = decodeStrings(file.readChunk(marketChunk), marketChunk, group.rows, (id) =>
      this.#numberOf(id),
    )
    const event = decodeInt32(file.readChunk(eventChunk), eventChunk, group.rows, EVENT_GAP)
    const present = new Set<string>()
    let tsMin = Number.POSITIVE_INFINITY
    let tsMax = Number.NEGATIVE_INFINITY
    for (let row = 0; row < group.rows; row++) {
      const instant = ts[row]!
      if (instant < tsMin) tsMin = instant
      if (instant > tsMax) tsMax = instant
      const scanned = this.#markets[market[row]!]!
      present.add(scanned.id)
      this.#scanRow(scanned, instant, event[row]!)
    }
    if (tsMax > this.#coversTo) this.#coversTo = tsMax
    const hour = Math.floor(tsMin / HOUR_NS)
    const isWithinOneHour = group.rows > 0 && hour >= 0 && Math.floor(tsMax / HOUR_NS) === hour
    return { ...group, tsMin, tsMax, hour: isWithinOneHour ? hour : -1, marketIds: present }
  }

  #numberOf(id: string): number {
    let number = this.#numbers.get(id)
    if (number === undefined) {
      number = this.#markets.length
      this.#numbers.set(id, number)
      const none = Number.NEGATIVE_INFINITY
      this.#markets.push({ id, firstBook: null, last: none, bookAtEnd: 'inherited', hour: -1 })
    }
    return number
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
