// What the server asks of an order-book worker, and what the head of the answer says besides the protocol of
// stream-task.ts.

import type { FormatName } from './formats.ts'
import type { LakePin } from './lake-pin.ts'
import type { ReceiptPlan } from './lob-receipt.ts'
import type { LobSource } from './lob-sources.ts'
import type { StreamHead } from './stream-task.ts'

/** The columns of a snapshot row in the order of contract.md 25. */
export const SNAPSHOT_COLUMNS = [
  'ts',
  'market_id',
  'best_bid',
  'best_ask',
  'spread',
  'mid',
  'bids',
  'asks',
] as const
/** These and what is there on request alone. */
export const ALL_SNAPSHOT_COLUMNS = [...SNAPSHOT_COLUMNS, 'book_state'] as const
export type SnapshotColumn = (typeof ALL_SNAPSHOT_COLUMNS)[number]

/** What `book_state` says of a row's book, by number. */
export const BOOK_STATES = ['known', 'gap', 'held', 'carried', 'crossed'] as const
export type BookState = (typeof BOOK_STATES)[number]

/** What becomes of rows whose book is lost; `empty`, the default, is left out of queries. */
export const ON_GAP = ['empty', 'skip', 'hold', 'fail'] as const

/** A place in the order of rows: behind the row of the market at this tick, or behind all of its rows. */
export interface RowPlace {
  /** Seconds since the Unix epoch. */
  readonly seconds: number
  /** Null: all markets. */
  readonly marketId: string | null
}

/** An instant whose books are asked for, instead of the rows of ticks. */
export interface LobInstant {
  /** ns since the Unix epoch, in decimal digits. */
  readonly ns: string
  /** Which events count: those that happened by then, or those that were received by then. */
  readonly by: 'exchange' | 'received'
}

/**
 * What is known of a book at an instant: `gap` nothing since a loss, `carried` the book of an earlier date's file,
 * `crossed` a bid at or above an ask, `closed` its book when the market closed, `not_recorded` its last book before the
 * recording ends.
 */
export const INSTANT_STATES = ['known', 'gap', 'carried', 'crossed', 'closed', 'not_recorded'] as const
export type InstantState = (typeof INSTANT_STATES)[number]

/** A validated order-book request. Exactly one of `market` and `series` is set; `dates` are ascending UTC dates. */
export interface LobQuery {
  readonly source: LobSource
  readonly market: string | null
  /** A series, or an event of one (`KXHIGHNY-26MAR04`). */
  readonly series: string | null
  readonly dates: readonly string[]
  readonly intervalS: number
  readonly levels: number
  readonly hour: number | null
  readonly format: FormatName
  readonly columns: readonly SnapshotColumn[]
  /** Whether what a quote does not have is null, not 0 or -1. */
  readonly nulls: boolean
  readonly onGap?: 'skip' | 'hold' | 'fail' | undefined
  /** Only rows behind this place; null for all. */
  readonly after: RowPlace | null
  /** Rows of the answer at most, the first ones; null for all, which then must not be more than the format's limit. */
  readonly limit: number | null
  /** The one date is that of the instant, and `intervalS` is 1. */
  readonly at?: LobInstant
}

/** What of a query says whose files answer it. */
export type MarketsAsked = Pick<LobQuery, 'source' | 'market' | 'series' | 'dates'>

/** What the catalogue knows of the markets that a request is about. */
export interface LobCatalogueEntry {
  /** The series whose files hold them; null when the request itself names it or nobody knows. */
  readonly series: string | null
  /** The market ids of the event that the request names; null for other requests. */
  readonly markets: readonly string[] | null
  /** Close times, ms since the epoch, by market id: of those that close before the requested range is over. */
  readonly closesAtMs: Readonly<Record<string, number>>
}

/** What decides whether a client holds the answer already. */
export interface LobValidation {
  /** Goes into the identity of every answer: the version of the program. */
  readonly seed: string
  /** Identities of answers that the client holds; `*` stands for any. */
  readonly held: readonly string[]
}

/**
 * How the sections of one answer (its hours) are shared out among threads: whoever is free takes the next one from a
 * counter in shared memory. Sections are made by any thread and sent in order.
 */
export interface LobSections {
  readonly count: number
  /** One 32-bit integer: the next section to take. */
  readonly next: SharedArrayBuffer
}

/** Takes the next section; `count` or more when there is none left. */
export function takeSection({ next }: LobSections): number {
  return Atomics.add(new Int32Array(next), 0, 1)
}

/** What a thread is told that makes sections of an answer which another thread leads. */
export interface LobAssistance {
  /** The answer's identity: with other files than the leader has opened, no section may be made. */
  readonly identity: string
  readonly sections: LobSections
}

/** How an answer is made where it is not just sent: with the plan of its receipt, or from a block of the receipt on. */
export type LobPart = 'receipt' | { readonly fromBlock: number }

/** The Piscina task. `port` is transferred. With `headOnly` the answer is planned and checked but no chunk is sent. */
export interface LobTask {
  readonly lake: string
  readonly query: LobQuery
  readonly headOnly: boolean
  /** Null when there is no catalogue or it knows nothing of them. */
  readonly catalogue: LobCatalogueEntry | null
  readonly validation: LobValidation
  /** Left out: the whole answer. */
  readonly part?: LobPart | undefined
  /** The version of the lake whose files alone are read; left out: those that there are. */
  readonly pin?: LakePin | undefined
  /** The rows of exports and estimates are not limited. */
  readonly isUnlimited?: boolean
  /** Null for the thread that leads the answer. */
  readonly assistance: LobAssistance | null
  /** Where the thread says which file it waits for (file-watch.ts). */
  readonly watch: SharedArrayBuffer
  /** Files for which threads wait that were given up. */
  readonly silentFiles: readonly string[]
  readonly port: import('node:worker_threads').MessagePort
}

/** The Piscina task that makes a thread compile and load what a request needs, so that the first one is fast. */
export interface LobWarmTask {
  readonly warm: true
}

/** What an answer costs besides its rows. */
export interface LobOutline {
  /** Row groups that it may decode. */
  readonly rowGroups: number
  /** Rows of the date that has most. */
  readonly dateRowsMax: number
}

/** The head of an order-book answer. */
export interface LobHead extends StreamHead {
  /** The last row of the answer where its `limit` leaves out rows behind it. */
  readonly lastRow: RowPlace | null
  /** Requested dates that have no file, ascending. */
  readonly missingDates: readonly string[]
  /** Requested dates that are not wholly known as far as the rows of the answer go. */
  readonly partialDates: readonly string[]
  /** The files that it was looked for in, below the lake's root. */
  readonly files: readonly string[]
  /** `identityOf` each of the files; empty for one that the lake does not have. */
  readonly stamps: readonly string[]
  /** Names the query, the files and whatever else the bytes of the answer depend on. */
  readonly identity: string
  /** When the newest of its files was written, ms since the epoch. */
  readonly writtenAtMs: number
  /** The client holds this very answer: no chunk follows. */
  readonly isHeld: boolean
  /** Only where it was asked for, and the client does not hold the answer. */
  readonly receiptPlan?: ReceiptPlan
  /** Of an answer whose rows are not limited. */
  readonly outline?: LobOutline | undefined
  /** Null when the answer is not worth sharing out, or its format cannot be. */
  readonly sections: LobSections | null
}
