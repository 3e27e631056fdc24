// The order-book delta file `lob.v1`: columns, event codes, units and footer keys (contract.md 33 to 35). Each column is
// declared here and nowhere else.

export const LOB_SCHEMA = 'lob.v1'

/** Columns in file order, with the physical parquet type a reader insists on. */
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

/** `price` counts 1/10000 dollar: a cent is 100 of them, a dollar 10,000. */
export const PRICE_UNITS_PER_CENT = 100
export const PRICE_UNITS_PER_DOLLAR = 10_000
/** `qty` counts 1/1000000 contract. */
export const QTY_UNITS_PER_CONTRACT = 1_000_000

/**
 * Footer key-value metadata. `schema` … `markets` are those of contract.md 35. Bookcast writes the others too: `keyframes` is
 * `hourly` when every book known at the start of a UTC hour has its keyframe there, so that a reader may start at any hour;
 * `hours` is what lob-hours.ts says of each market's hours;
 * `sample` is `true` where the books are invented; `column_crc32` and `footer_crc32` let a reader tell a damaged file from a
 * whole one. Files of version 0.1 also have `strands` and `evidence`: the first tells such a file, nothing reads what they say.
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
 * One market of a file, as the footer's `markets` lists it. Instants are ns since the Unix epoch. `firstBookTs` is the
 * first `clear` (null: the book was never known from this file alone); `bookAtEnd` whether it is known after the last
 * row (null: the writer did not say).
 */
export interface LobMarketSummary {
  readonly id: string
  readonly rows: number
  readonly firstTs: bigint
  readonly lastTs: bigint
  readonly firstBookTs: bigint | null
  readonly bookAtEnd: boolean | null
}
