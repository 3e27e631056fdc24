// The peer that a Node programmer would write with published packages: hyparquet reads objects, tardis-dev's OrderBook keeps the
// book, JSON.stringify writes each row. It reads one hour at a time, so as not to hold the day. Its file must have whole cents,
// whole contracts, hour blocks with keyframes and no gaps, like benchmark files.

import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { OrderBook } from 'tardis-dev'
import type { BookPriceLevel } from 'tardis-dev'
import {
  EVENT_ADD,
  EVENT_CLEAR,
  PRICE_UNITS_PER_CENT,
  QTY_UNITS_PER_CONTRACT,
  SIDE_BID,
} from '../shared/lob-v1.ts'
import { MS_PER_HOUR, NS_PER_MS, SECONDS_PER_HOUR } from '../shared/utc-date.ts'

export interface PeerOptions {
  readonly path: string
  /** Midnight UTC of the file's date. */
  readonly dateStartMs: number
  readonly intervalS: number
  readonly levels: number
}

interface FileRow {
  readonly ts: bigint
  readonly market_id: string
  readonly event: number
  readonly side: number
  readonly price: number
  readonly qty: bigint
}

const COLUMNS = ['ts', 'market_id', 'event', 'side', 'price', 'qty']

/** Calls `onRow` with the JSON of each snapshot row of the day. */
export async function runTardisPeer(options: PeerOptions, onRow: (json: string) => void): Promise<void> {
  const file = await asyncBufferFromFile(options.path)
  const metadata = await parquetMetadataAsync(file)
  const books = new Map<string, PeerBook>()
  let hour = 0
  let pending = new Map<string, FileRow[]>()
  let rowStart = 0
  for (const group of metadata.row_groups) {
    const rowEnd = rowStart + Number(group.num_rows)
    const objects = await parquetReadObjects({
      file,
      metadata,
      compressors,
      columns: COLUMNS,
      rowStart,
      rowEnd,
    })
    rowStart = rowEnd
    for (const { ts, market_id, event, side, price, qty } of objects) {
      const row: FileRow = { ts, market_id, event, side, price, qty }
      const rowHour = Number((row.ts / NS_PER_MS - BigInt(options.dateStartMs)) / BigInt(MS_PER_HOUR))
      while (hour < rowHour) {
        writeHour(books, pending, hour, options, onRow)
        pending = new Map()
        hour += 1
      }
      const rows = pending.get(row.market_id)
      if (rows === undefined) pending.set(row.market_id, [row])
      else rows.push(row)
    }
  }
  for (; hour < 24; hour += 1) {
    writeHour(books, pending, hour, options, onRow)
    pending = new Map()
  }
}

function writeHour(
  books: Map<string, PeerBook>,
  pending: ReadonlyMap<string, readonly FileRow[]>,
  hour: number,
  options: PeerOptions,
  onRow: (json: string) => void,
): void {
  for (const id of pending.keys()) if (!books.has(id)) books.set(id, new PeerBook(id))
  const ordered = [...books.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const next = ordered.map(() => 0)
  const firstSecond = hour * SECONDS_PER_HOUR
  const aligned = Math.ceil(firstSecond / options.intervalS) * options.intervalS
  for (let second = aligned; second < firstSecond + SECONDS_PER_HOUR; second += options.intervalS) {
    const tickTs = BigInt(options.dateStartMs + second * 1000) * NS_PER_MS
    for (const [index, book] of ordered.entries()) {
      const rows = pending.get(book.id) ?? []
      let at = next[index]!
      for (let row = rows[at]; row !== undefined && row.ts <= tickTs; row = rows[at]) {
        book.apply(row)
        at += 1
      }
      next[index] = at
      onRow(book.snapshot(Number(tickTs), options.levels))
    }
  }
  // Events after the hour's last tick.
  for (const [index, book] of ordered.entries()) {
    for (const row of (pending.get(book.id) ?? []).slice(next[index])) book.apply(row)
  }
}

/** OrderBook needs absolute amounts, so the sums are stored beside it. */
class PeerBook {
  readonly id: string
  readonly #book = new OrderBook()
  readonly #amounts: readonly [Map<number, number>, Map<number, number>] = [new Map(), new Map()]
  readonly #time = new Date(0)

  constructor(id: string) {
    this.id = id
  }

  apply({ event, side, price, qty }: FileRow): void {
    if (event === EVENT_CLEAR) {
      for (const amounts of this.#amounts) amounts.clear()
      this.#update(true, [], [])
      return
    }
    const amounts = side === SIDE_BID ? this.#amounts[0] : this.#amounts[1]
    const amount = (event === EVENT_ADD ? (amounts.get(price) ?? 0) : 0) + Number(qty)
    amounts.set(price, amount)
    const changed = [{ price, amount }]
    this.#update(false, side === SIDE_BID ? changed : [], side === SIDE_BID ? [] : changed)
  }

  snapshot(ts: number, levels: number): string {
    const bids = topLevels(this.#book.bids(), levels)
    const asks = topLevels(this.#book.asks(), levels)
    const [bid, ask] = [bids[0]?.price, asks[0]?.price]
    const isTwoSided = bid !== undefined && ask !== undefined
    return JSON.stringify({
      ts,
      market_id: this.id,
      best_bid: bid ?? 0,
      best_ask: ask ?? 0,
      spread: isTwoSided ? Math.max(ask - bid, 0) : -1,
      mid: isTwoSided ? (bid + ask) / 2 : 0,
      bids,
      asks,
    })
  }

  #update(isSnapshot: boolean, bids: BookPriceLevel[], asks: BookPriceLevel[]): void {
    this.#book.update({
      type: 'book_change',
      symbol: this.id,
      exchange: 'binance',
      isSnapshot,
      bids,
      asks,
      timestamp: this.#time,
      localTimestamp: this.#time,
    })
  }
}

function topLevels(levels: Iterable<BookPriceLevel>, count: number): { price: number; qty: number }[] {
  const top: { price: number; qty: number }[] = []
  for (const { price, amount } of levels) {
    top.push({ price: price / PRICE_UNITS_PER_CENT, qty: Math.floor(amount / QTY_UNITS_PER_CONTRACT) })
    if (top.length === count) break
  }
  return top
}
