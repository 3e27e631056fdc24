// The task of an order-book worker, and the head of its answer. The protocol is in stream-task.ts.

import type { FormatName } from './formats.ts'
import type { BookTimes, ReceiptPlan } from './lob-receipt.ts'
import type { LobSource } from './lob-sources.ts'
import type { StreamHead, StreamTask } from './stream-task.ts'

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
/** These, and the columns that are served only on request. */
export const ALL_SNAPSHOT_COLUMNS = [...SNAPSHOT_COLUMNS, 'book_state'] as const
export type SnapshotColumn = (typeof ALL_SNAPSHOT_COLUMNS)[number]

/** The values of `book_state`, by number. */
export const BOOK_STATES = ['known', 'gap', 'held', 'carried', 'crossed'] as const
export type BookState = (typeof BOOK_STATES)[number]

/** The treatment of rows whose book is lost. Queries omit the default `empty`. */
export const ON_GAP = ['empty', 'skip', 'hold', 'fail'] as const

/** A place in the order of rows: after the market's row at this tick, or after all rows of the tick. */
export interface RowPlace {
  /** Seconds since the Unix epoch. */
  readonly seconds: number
  /** Null: all markets. */
  readonly marketId: string | null
}

/** The instant of a request for the books at one instant, instead of the rows of ticks. */
export interface LobInstant {
  /** ns since the Unix epoch, in decimal digits. */
  readonly ns: string
  /** Which events are included: those that happened by the instant, or those that were received by then. */
  readonly by: 'exchange' | 'received'
}

/**
 * The state of a book at an instant. `gap`: unknown since a loss. `carried`: the book of an earlier date's file. `crossed`: a bid
 * is at or above an ask. `closed`: the book when the market closed. `not_recorded`: the last book before the recording ends.
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
  /** Whether a missing value of a quote is null instead of 0 or -1. */
  readonly nulls: boolean
  readonly onGap?: 'skip' | 'hold' | 'fail' | undefined
  /** Only rows after this place; null for all. */
  readonly after: RowPlace | null
  /** The maximum of rows, which are the first ones. Null for all rows, which must not exceed the format's limit. */
  readonly limit: number | null
  /** If set, `dates` has only the date of the instant, and `intervalS` is 1. */
  readonly at?: LobInstant
}

/** The parts of a query that determine which files answer it. */
export type MarketsAsked = Pick<LobQuery, 'source' | 'market' | 'series' | 'dates'>

/** The catalogue's facts about the markets of a request. */
export interface LobCatalogueEntry {
  /** The series whose files have the markets; null if the request names it or it is unknown. */
  readonly series: string | null
  /** The market ids of the event that the request names; null for other requests. */
  readonly markets: readonly string[] | null
  /** Close times, ms since the epoch, by market id, of the markets that close before the end of the requested range. */
  readonly closesAtMs: Readonly<Record<string, number>>
}

/** Determines whether a client already holds the answer. */
export interface LobValidation {
  /** The version of the program, part of the identity of every answer. */
  readonly seed: string
  /** Identities of answers that the client holds; `*` stands for any. */
  readonly held: readonly string[]
}

/**
 * Divides the sections of one answer (its hours) among threads: a free thread takes the next one from a counter in shared memory.
 * Any thread can make a section; sections are sent in order.
 */
export interface LobSections {
  readonly count: number
  /** One 32-bit integer: the next section to take. */
  readonly next: SharedArrayBuffer
}

/** Takes the next section. Returns `count` or more if none is left. */
export function takeSection({ next }: LobSections): number {
  return Atomics.add(new Int32Array(next), 0, 1)
}

/** The instructions for a thread that makes sections of an answer which another thread leads. */
export interface LobAssistance {
  /** The answer's identity. A thread that has opened other files than the leader must not make sections. */
  readonly identity: string
  readonly sections: LobSections
}

/**
 * Set if an answer is not simply sent. It is made with the plan of its receipt, for `receipt` also with `bookTimes`, or from a
 * block of the receipt on.
 */
export type LobPart = 'receipt' | 'blocks' | { readonly fromBlock: number }

export interface LobTask extends StreamTask {
  readonly query: LobQuery
  /** Null if there is no catalogue, or if it does not have the markets. */
  readonly catalogue: LobCatalogueEntry | null
  readonly validation: LobValidation
  /** Default: the whole answer. */
  readonly part?: LobPart | undefined
  /** Set for exports and estimates, whose rows are not limited. */
  readonly isUnlimited?: boolean
  /** Null for the thread that leads the answer. */
  readonly assistance: LobAssistance | null
}

/** The costs of an answer besides its rows. */
export interface LobOutline {
  /** The number of row groups that it may decode. */
  readonly rowGroups: number
  /** The most rows that one of its dates has. */
  readonly dateRowsMax: number
}

/** The head of an order-book answer. */
export interface LobHead extends StreamHead {
  /** The last row of the answer, if `limit` leaves out later rows. */
  readonly lastRow: RowPlace | null
  /** Requested dates that have no file, ascending. */
  readonly missingDates: readonly string[]
  /** Requested dates on which a requested book is only partly known; none after the last row. */
  readonly partialDates: readonly string[]
  /** The files that the answer may read, below the lake's root. */
  readonly files: readonly string[]
  /** `identityOf` each of the files. */
  readonly stamps: readonly string[]
  /** Files that the plan looked for and did not find. */
  readonly absent?: readonly string[]
  /** Identifies the query, the files and everything else that the bytes of the answer depend on. */
  readonly identity: string
  /** When the newest of its files was written, ms since the epoch. */
  readonly writtenAtMs: number
  /** The client holds this answer: no chunk follows. */
  readonly isHeld: boolean
  /** Set if the receipt was requested and the client does not hold the answer. */
  readonly receiptPlan?: ReceiptPlan
  /**
   * Set for the part `receipt`. Not part of a known receipt: they also depend on the file of the date before, which the
   * bytes of the answer do not.
   */
  readonly bookTimes?: BookTimes | undefined
  /** Set if the rows are not limited. */
  readonly outline?: LobOutline | undefined
  /** Null if the answer is too small to divide among threads, or its format does not allow it. */
  readonly sections: LobSections | null
}
