// Reads lob.v1 files in the simplest way, and replays rows into books of plain Maps: the reference for tests of writers.

import { readFile } from 'node:fs/promises'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import type { FileMetaData } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

export interface LobRow {
  readonly ts: bigint
  readonly recv_ts: bigint
  readonly seq: bigint
  readonly market_id: string
  readonly event: number
  readonly side: number
  readonly price: number
  readonly qty: bigint
}

export async function readFooter(path: string): Promise<FileMetaData> {
  return parquetMetadata(new Uint8Array(await readFile(path)))
}

export async function readFooterValue(path: string, key: string): Promise<string | undefined> {
  return (await readFooter(path)).key_value_metadata?.find((pair) => pair.key === key)?.value
}

export async function readRows(path: string): Promise<LobRow[]> {
  const bytes = new Uint8Array(await readFile(path))
  const rows = await parquetReadObjects({ file: bytes.buffer, compressors })
  return rows.map((row) => {
    const { ts, recv_ts, seq, market_id, event, side, price, qty } = row
    return { ts, recv_ts, seq, market_id, event, side, price, qty }
  })
}

/** Both sides, `side:price` → quantity; `undefined` while the book is unknown. */
export type NaiveBook = Map<string, bigint> | undefined

/** The book after one more event. A known book is changed in place. */
export function applyNaively(
  book: NaiveBook,
  event: number,
  side: number,
  price: number,
  qty: bigint,
): NaiveBook {
  if (event === 0) return new Map()
  if (event === 3 || book === undefined) return undefined
  const key = `${side}:${price}`
  const level = event === 2 ? (book.get(key) ?? 0n) + qty : qty
  if (level === 0n) book.delete(key)
  else book.set(key, level)
  return book
}

/** A text of a book, for comparison: `unknown`, or its levels in order. */
export function bookText(book: NaiveBook): string {
  if (book === undefined) return 'unknown'
  return [...book]
    .map(([level, qty]) => `${level}=${qty}`)
    .toSorted((a, b) => (a < b ? -1 : 1))
    .join(' ')
}

/** The books of all markets after the rows, in file order. */
export function replayRows(rows: readonly LobRow[]): Map<string, NaiveBook> {
  const books = new Map<string, NaiveBook>()
  for (const row of rows) {
    const book = books.get(row.market_id)
    books.set(row.market_id, applyNaively(book, row.event, row.side, row.price, row.qty))
  }
  return books
}
