// What a lob.v1 file keeps beside its rows, so that more recordings can be merged into it later and give the bytes that
// all of them would have given at once: which strand each row came from, what other strands said meanwhile, and which
// books were known when the date began. Blocks of it stand between row groups, where parquet readers see nothing;
// the footer's `evidence` lists them, and `strands` outlines the strands.

import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { EventRecords, RECORD_BYTES } from './event-spill.ts'
import type { BookLevel } from './exact-book.ts'
import type { FeedAnchor, FeedSpan } from './feed-strand.ts'
import type { MarketFold } from './market-fold.ts'

/** A block's place in the file. */
export interface EvidencePlace {
  readonly offset: number
  readonly sizeBytes: number
  readonly crc32: string
}

/** A strand whose book of a market was known when the date began; null levels are those of the keyframe at midnight. */
export interface CarriedBook {
  readonly strand: number
  readonly levels: readonly BookLevel[] | null
}

export interface CarriedMarket {
  readonly id: string
  /** The serving strand first, then the others in the order in which they became known. */
  readonly books: readonly CarriedBook[]
}

interface BlockHead {
  readonly carried?: readonly CarriedMarket[]
  readonly anchors?: readonly (readonly (readonly [number, string, string, 0 | 1])[])[]
  /** By market: id, then strand and number of rows in turn. */
  readonly runs: readonly (readonly [string, ...number[]])[]
  readonly keptMarkets: readonly string[]
  readonly kept: number
}

/** A decoded block. `kept` holds records whose market is an index of `keptMarkets` and whose span is a strand. */
export interface EvidenceBlock {
  readonly carried: readonly CarriedMarket[]
  readonly anchors: readonly (readonly FeedAnchor[])[] | undefined
  readonly runs: ReadonlyMap<string, readonly number[]>
  readonly keptMarkets: readonly string[]
  readonly kept: EventRecords
  readonly keptRecords: number
}

const FIRST_KEPT = 64
// zlib's fastest level that still finds the repeats of fixed-size records.
const DEFLATE_LEVEL = 6

/** The evidence of one hour, or of a slice of one, while its rows are written. Strands are numbered as the file does. */
export class HourEvidence {
  readonly #runs: [string, ...number[]][] = []
  readonly #keptMarkets: string[] = []
  #carried: readonly CarriedMarket[] = []
  #kept = new EventRecords(new ArrayBuffer(FIRST_KEPT * RECORD_BYTES))
  #keptRecords = 0

  /** The date begins with these books; `localOf` gives the file's number of a strand. */
  carry(markets: readonly CarriedMarket[], localOf: (strand: number) => number): void {
    this.#carried = markets.map(({ id, books }) => ({
      id,
      books: books.map(({ strand, levels }, place) => {
        return { strand: localOf(strand), levels: place === 0 ? null : levels }
      }),
    }))
  }

  /** A row of the market that a message of the strand gave. */
  row(market: string, strand: number): void {
    let runs = this.#runs.at(-1)
    if (runs?.[0] !== market) this.#runs.push((runs = [market]))
    const last = runs.length - 2
    if (last >= 1 && runs[last] === strand) (runs[last + 1] as number)++
    else runs.push(strand, 1)
  }

  /** A record of the market that gave no row. */
  keep(market: string, strand: number, records: EventRecords, record: number): void {
    if (this.#keptMarkets.at(-1) !== market) this.#keptMarkets.push(market)
    if (this.#keptRecords * RECORD_BYTES === this.#kept.words.byteLength) {
      const larger = new EventRecords(new ArrayBuffer(this.#kept.words.byteLength * 2))
      larger.words.set(this.#kept.words)
      this.#kept = larger
    }
    this.#kept.copy(this.#keptRecords, records, record)
    this.#kept.assign(this.#keptRecords++, this.#keptMarkets.length - 1, strand)
  }

  get isEmpty(): boolean {
    return this.#runs.length === 0 && this.#keptRecords === 0 && this.#carried.length === 0
  }

  encode(): Uint8Array {
    const head: BlockHead = {
      ...(this.#carried.length === 0 ? {} : { carried: this.#carried }),
      runs: this.#runs,
      keptMarkets: this.#keptMarkets,
      kept: this.#keptRecords,
    }
    return encodeBlock(head, new Uint8Array(this.#kept.words.buffer, 0, this.#keptRecords * RECORD_BYTES))
  }
}

/** The books that are known when a date begins. */
export function carriedMarkets(
  ids: readonly string[],
  order: readonly number[],
  folds: readonly MarketFold[],
): CarriedMarket[] {
  const carried: CarriedMarket[] = []
  for (const market of order) {
    const { known } = folds[market]!.state()
    if (known.length > 0) carried.push({ id: ids[market]!, books: known })
  }
  return carried
}

/** The block that holds the anchors of the file's strands, by strand. */
export function encodeAnchors(strands: readonly FeedSpan[]): Uint8Array {
  const anchors = strands.map((span) =>
    span.anchors.map(
      ({ seq, recvTs, ts, isAfterSilence }) =>
        [seq, String(recvTs), String(ts), isAfterSilence ? 1 : 0] as const,
    ),
  )
  return encodeBlock({ anchors, runs: [], keptMarkets: [], kept: 0 }, new Uint8Array(0))
}

function encodeBlock(head: BlockHead, records: Uint8Array): Uint8Array {
  const text = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(text.length)
  return deflateRawSync(Buffer.concat([length, text, records]), { level: DEFLATE_LEVEL })
}

/** Throws when the bytes are no block; `bytesMax` bounds what they may unfold to. */
export function decodeEvidence(bytes: Uint8Array, bytesMax: number): EvidenceBlock {
  const raw = inflateRawSync(bytes, { maxOutputLength: bytesMax })
  const textEnd = 4 + raw.readUInt32LE(0)
  const head = JSON.parse(raw.toString('utf8', 4, textEnd)) as BlockHead
  const kept = new EventRecords(new ArrayBuffer(head.kept * RECORD_BYTES))
  if (raw.length !== textEnd + head.kept * RECORD_BYTES) throw new Error('its evidence ends too early')
  new Uint8Array(kept.words.buffer).set(raw.subarray(textEnd))
  return {
    carried: head.carried ?? [],
    anchors: head.anchors?.map((list) =>
      list.map(([seq, recvTs, ts, flag]) => {
        return { seq, recvTs: BigInt(recvTs), ts: BigInt(ts), isAfterSilence: flag === 1 }
      }),
    ),
    runs: new Map(head.runs.map(([market, ...runs]) => [market, runs])),
    keptMarkets: head.keptMarkets,
    kept,
    keptRecords: head.kept,
  }
}

/** A strand as a series' file states it: since when it speaks of the series in this date, ns. */
export interface StatedStrand extends Omit<FeedSpan, 'anchors'> {
  readonly fromTs: bigint
}

/** The footer's `strands`: outlines without anchors. Times are decimal texts, ns. */
export function strandsText(strands: readonly StatedStrand[]): string {
  return JSON.stringify(strands.map((span) => ({ ...outlineValues(span), from_ts: String(span.fromTs) })))
}

/** An outline as JSON has it. */
export type OutlineValues = Readonly<Record<string, string | number | boolean | null>>

export function outlineValues(span: Omit<FeedSpan, 'anchors'>): OutlineValues {
  return {
    sid: span.sid,
    first_seq: span.firstSeq,
    last_seq: span.lastSeq,
    first_ts: String(span.firstTs),
    last_ts: String(span.lastTs),
    first_recv_ts: String(span.firstRecvTs),
    last_recv_ts: String(span.lastRecvTs),
    turned: span.isTurned,
    begun: span.isBegun,
    ended: span.isEnded,
    ...(span.isPartial === true ? { partial: true } : {}),
    ...(span.behindNs === undefined ? {} : { behind_ns: String(span.behindNs) }),
  }
}

export function parseOutline(entry: OutlineValues): Omit<FeedSpan, 'anchors'> {
  return {
    sid: entry['sid'] as number | null,
    firstSeq: Number(entry['first_seq']),
    lastSeq: Number(entry['last_seq']),
    firstTs: BigInt(entry['first_ts'] as string),
    lastTs: BigInt(entry['last_ts'] as string),
    firstRecvTs: BigInt(entry['first_recv_ts'] as string),
    lastRecvTs: BigInt(entry['last_recv_ts'] as string),
    isTurned: entry['turned'] as boolean | null,
    isBegun: entry['begun'] === true,
    isEnded: entry['ended'] === true,
    isPartial: entry['partial'] === true ? true : undefined,
    behindNs: entry['behind_ns'] === undefined ? undefined : BigInt(entry['behind_ns'] as string),
  }
}

/** Throws when the text is none that `strandsText` made. */
export function parseStrands(text: string): StatedStrand[] {
  return (JSON.parse(text) as OutlineValues[]).map((entry) => {
    return { ...parseOutline(entry), fromTs: BigInt(entry['from_ts'] as string) }
  })
}

/** The footer's `evidence`. */
export function placesText(places: readonly EvidencePlace[]): string {
  return JSON.stringify(places.map(({ offset, sizeBytes, crc32 }) => [offset, sizeBytes, crc32]))
}

export function parsePlaces(text: string): EvidencePlace[] {
  return (JSON.parse(text) as [number, number, string][]).map(([offset, sizeBytes, crc32]) => {
    return { offset, sizeBytes, crc32 }
  })
}
