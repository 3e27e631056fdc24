// The order-book delta file `lob.v1`: columns, event codes, units and footer keys (contract.md 33 to 35). Each column is declared
// only here.

export const LOB_SCHEMA = 'lob.v1'

/** Columns in file order, with the physical parquet type that readers require. */
export const LOB_COLUMNS = [
  { name: 'ts', type: 'INT64' },
  { name: 'recv_ts', type: 'INT64' },
  { name: 'seq', type: 'INT64' },
  { name: 'market_id', type: 'BYTE_ARRAY' },
  { name: 'event', type: 'INT32' },
  { name: 'side', type: 'INT32' },
  { name: 'price', type: 'INT32' },
  { name: 'qty', type: 'INT64' },
] as const

export const EVENT_CLEAR = 0
export const EVENT_SET = 1
export const EVENT_ADD = 2
export const EVENT_GAP = 3

export const SIDE_BID = 0
export const SIDE_ASK = 1

/** The unit of `price` is 1/10000 dollar: a cent is 100, a dollar 10,000. */
export const PRICE_UNITS_PER_CENT = 100
export const PRICE_UNITS_PER_DOLLAR = 10_000
/** The unit of `qty` is 1/1000000 contract. */
export const QTY_UNITS_PER_CONTRACT = 1_000_000

/**
 * Footer key-value metadata. `schema` … `markets`, except `hours`, are those of contract.md 35. `hours` has each market's figures
 * by hour (lob-hours.ts). `keyframes` is `hourly` if every book that is known at the start of a UTC hour has a keyframe there, so
 * that a reader may start at any hour. `sample` is `true` if the books are invented. With `column_crc32` and `footer_crc32` a
 * reader detects damage. Files of version 0.1 also have `strands`, which identifies them, and `evidence`; their values are unused.
 */
export const LOB_FOOTER_KEYS = {
  schema: 'schema',
  source: 'source',
  series: 'series',
  date: 'date',
  rows: 'rows',
  minTs: 'min_ts',
  maxTs: 'max_ts',
  coversFrom: 'covers_from',
  coversTo: 'covers_to',
  gaps: 'gaps',
  hours: 'hours',
  markets: 'markets',
  keyframes: 'keyframes',
  sample: 'sample',
  columnCrc32: 'column_crc32',
  footerCrc32: 'footer_crc32',
  strands: 'strands',
} as const

/** The value of `keyframes` that promises a keyframe of every known book at the start of every UTC hour. */
export const KEYFRAMES_HOURLY = 'hourly'

/**
 * One market of a file, as listed in the footer's `markets`. Instants are ns since the Unix epoch. `firstBookTs` is the first
 * `clear` (null: the book was never known from this file alone). `bookAtEnd` is whether the book is known after the last row
 * (null: the writer did not state it).
 */
export interface LobMarketSummary {
  readonly id: string
  readonly rows: number
  readonly firstTs: bigint
  readonly lastTs: bigint
  readonly firstBookTs: bigint | null
  readonly bookAtEnd: boolean | null
}
