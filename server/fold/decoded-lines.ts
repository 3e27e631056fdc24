// The decoded lines of segments in a compact form, because an hour of them waits in memory for its chains. An import writes them to
// a temporary file, from which its fold reads them: parsing the segments again would double the work.

import { closeSync, openSync, readSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { exchangeOf } from '../exchanges/registry.ts'
import { lacksNumber } from '../feed/feed-message.ts'
import type { FeedBody, FeedMessage, LevelChange } from '../feed/feed-message.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import type { ManifestSegment } from '../raw/date-manifest.ts'
import type { ConnectionEvent, SegmentHeader } from '../raw/segment-lines.ts'
import type { TradeLines } from '../trades/trade-reading.ts'
import type { Line, Lines } from './piece.ts'

/** The longest temporary file. Further segments are read themselves. */
const FILE_BYTES_MAX = 1024 * 1024 * 1024
/** The rest of the free disk space is for segments and order-book files. */
const FREE_SHARE_MAX = 1 / 3
/** Texts and rare messages of one segment that stay in memory, at most. */
const ENTRIES_MAX = 10_000
/** Lines with trades, of all segments, that stay in memory, at most. */
const TRADES_BYTES_MAX = 16 * 1024 * 1024

// A line is three 64-bit words, then its messages: receive time; key, or number of a recorder's line; number of messages, and flags
// with the number of words. The time of a row follows its message.
// A message is three words, then its parts: time; number; subscription, and kind with the number of parts.
// A part (a level or a change) is two words: quantity; price, and index of the market with the side.
const HEAD_WORDS = 3
const PART_WORDS = 2
const IS_LIST = 1
const IS_SKIPPED = 2
const IS_OVERLAP = 4
const IS_ROW = 8
/** From here three bits: the place of the event in EVENTS and 1. */
const EVENT_SHIFT = 4
const EVENT_MASK = 7
const EVENTS: readonly ConnectionEvent[] = ['open', 'close', 'alive', 'lost']
const FLAG_BITS = 7
const RARE_FLAGS = IS_SKIPPED | IS_OVERLAP | IS_ROW | (EVENT_MASK << EVENT_SHIFT)
/** Kinds of message; those between are changes with this event of lob.v1. A book begins with a part for its market. */
const BOOK = 0
const OTHER = 6
/** Kept as it is. */
const RARE = 7
const KIND_BITS = 3
const KIND_MASK = 7
/** A subscription, a sequence number and a time that are undefined. */
const NONE = -1
const NO_NUMBER = -Infinity
const NO_TIME = -1n

/** The same bytes as times, as numbers, and as integers of half a word. */
class Block {
  readonly times: BigInt64Array
  readonly numbers: Float64Array
  readonly ints: Int32Array
  /** Words in use. */
  end = 0

  constructor(words: number) {
    this.numbers = new Float64Array(words)
    this.times = new BigInt64Array(this.numbers.buffer)
    this.ints = new Int32Array(this.numbers.buffer)
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.numbers.buffer, 0, 8 * this.end)
  }

  /** A block of that many words, all in use; `fill` writes them. */
  static filled(words: number, fill: (bytes: Uint8Array) => void): Block {
    const block = new Block(words)
    block.end = words
    fill(block.bytes)
    return block
  }

  addHead(time: bigint | undefined, number: number, first: number, second: number): void {
    const at = this.end
    this.times[at] = time ?? NO_TIME
    this.numbers[at + 1] = number
    this.ints[2 * at + 4] = first
    this.ints[2 * at + 5] = second
    this.end += HEAD_WORDS
  }

  addPart(qty: number, price: number, index: number, side: number): void {
    const at = this.end
    this.numbers[at] = qty
    this.ints[2 * at + 2] = price
    this.ints[2 * at + 3] = (index << 1) | side
    this.end += PART_WORDS
  }

  addTime(time: bigint): void {
    this.times[this.end] = time
    this.end++
  }

  timeAt(at: number): bigint | undefined {
    const time = this.times[at]!
    return time === NO_TIME ? undefined : time
  }

  sidAt(at: number): number | undefined {
    const sid = this.ints[2 * at + 4]!
    return sid === NONE ? undefined : sid
  }

  seqAt(at: number): number | undefined {
    const seq = this.numbers[at + 1]!
    return seq === NO_NUMBER ? undefined : seq
  }

  levelAt(at: number): BookLevel {
    const side = this.ints[2 * at + 3]! & 1
    return { side, price: this.ints[2 * at + 2]!, qty: this.numbers[at]! }
  }

  indexAt(at: number): number {
    return this.ints[2 * at + 3]! >> 1
  }
}

/** Where the blocks of lines are kept. */
interface BlockStore {
  /** Words of a block, unless a line is longer. */
  readonly blockWords: number
  /** Texts and rare messages of one segment at most. */
  readonly entriesMax: number
  /** Copies a block. Returns a function that reads the copy; `undefined` if there is no room. */
  keep(block: Block): (() => Block) | undefined
  /** Whether there is room for another line with trades. */
  takesTrades(bytes: number): boolean
}

export const IN_MEMORY: BlockStore = {
  // An hour may have many connections.
  blockWords: 1024,
  entriesMax: Infinity,
  keep: ({ end, bytes }) => {
    const kept = Block.filled(end, (copy) => copy.set(bytes))
    return () => kept
  },
  takesTrades: () => false,
}

/** The content of a segment. */
export interface DecodedSegment {
  readonly facts: ManifestSegment
  readonly header: SegmentHeader
  readonly lines: Lines
  /** Each book and change has a sequence number. */
  readonly isNumbered: boolean
}

/** The segments of one import. */
export class DecodedSegments implements BlockStore {
  readonly blockWords = 16 * 1024
  readonly entriesMax = ENTRIES_MAX
  readonly #path: string
  #file: number | undefined
  #bytesMax = FILE_BYTES_MAX
  #bytes = 0
  #tradeBytes = 0
  readonly #byName = new Map<string, { readonly facts: ManifestSegment; readonly lines: DecodedLines }>()

  /** `path` is a temporary name. */
  constructor(path: string) {
    this.#path = path
  }

  add(facts: ManifestSegment, lines: DecodedLines): void {
    lines.close()
    this.#byName.set(facts.name, { facts, lines })
  }

  /** The segment; `undefined` if its lines were not kept. */
  read(name: string): DecodedSegment | undefined {
    const { facts, lines } = this.#byName.get(name) ?? {}
    if (facts === undefined || lines === undefined || !lines.areKept) return undefined
    return { facts, header: lines.header, lines, isNumbered: lines.isNumbered }
  }

  /** The lines of a segment that may have trades; `undefined` if they were not kept. */
  tradesOf(name: string): TradeLines | undefined {
    const lines = this.#byName.get(name)?.lines
    const texts = lines?.trades()
    return lines === undefined || texts === undefined ? undefined : { header: lines.header, texts }
  }

  takesTrades(bytes: number): boolean {
    this.#tradeBytes += bytes
    return this.#tradeBytes <= TRADES_BYTES_MAX
  }

  keep({ end, bytes }: Block): (() => Block) | undefined {
    const offset = this.#bytes
    try {
      this.#file ??= this.#open()
      if (offset + bytes.length > this.#bytesMax) return undefined
      for (let done = 0; done < bytes.length;)
        done += writeSync(this.#file, bytes, done, undefined, offset + done)
    } catch {
      return undefined
    }
    this.#bytes += bytes.length
    return () => Block.filled(end, (copy) => this.#readInto(copy, offset))
  }

  #open(): number {
    const { bavail, bsize } = statfsSync(dirname(this.#path))
    this.#bytesMax = Math.min(FILE_BYTES_MAX, bavail * bsize * FREE_SHARE_MAX)
    return openNameless(this.#path)
  }

  #readInto(bytes: Uint8Array, offset: number): void {
    for (let done = 0; done < bytes.length;) {
      const count = readSync(this.#file!, bytes, done, bytes.length - done, offset + done)
      if (count === 0) throw new Error(`${this.#path} ends too early`)
      done += count
    }
  }

  /** Frees the disk space. */
  discard(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
    this.#byName.clear()
  }
}

/** The lines of one segment in their order, made as they are read. */
export class DecodedLines implements Lines {
  readonly header: SegmentHeader
  length = 0
  isNumbered = true
  /** Lines of a recorder. */
  #isOwn = false
  readonly #store: BlockStore
  #block: Block
  /** Undefined if a line could not be kept. */
  #blocks: (() => Block)[] | undefined = []
  /** Market ids and names of other messages. */
  readonly #texts: string[] = []
  readonly #indexes = new Map<string, number>()
  readonly #rare: FeedMessage[] = []
  readonly #tradeMark: string | undefined
  /** Lines that may have trades, in UTF-8; undefined if one could not be kept. */
  #trades: Buffer[] | undefined = []

  constructor(header: SegmentHeader, store: BlockStore) {
    this.header = header
    this.#store = store
    this.#block = new Block(store.blockWords)
    this.#tradeMark = exchangeOf(header.source).trades?.mark
  }

  /** Adds the next line and its text. If it is unknown, or there is no room, no line of the segment is kept. */
  add(line: Line | undefined, text: string): void {
    if (this.#blocks === undefined) return
    if (line === undefined || this.#texts.length + this.#rare.length > this.#store.entriesMax) {
      this.#blocks = undefined
      return
    }
    const { recvTs, n, key, messages, isList, isSkipped, event, rowRecvTs } = line
    const isOverlap = this.header.hasOverlap === true && this.length === 0
    this.length++
    this.#isOwn = n !== undefined
    if (messages.some(lacksNumber)) this.isNumbered = false
    if (messages.some(({ body }) => body.kind === 'other')) this.#addTrades(text)
    let words = rowRecvTs === undefined ? HEAD_WORDS : HEAD_WORDS + 1
    for (const message of messages) words += HEAD_WORDS + PART_WORDS * partsOf(message)
    if (this.#block.end + words > this.#block.numbers.length) {
      this.#flush()
      if (words > this.#block.numbers.length) this.#block = new Block(words)
    }
    let flags = (isList ? IS_LIST : 0) | (isSkipped === true ? IS_SKIPPED : 0) | (isOverlap ? IS_OVERLAP : 0)
    if (event !== undefined) flags |= (EVENTS.indexOf(event) + 1) << EVENT_SHIFT
    if (rowRecvTs !== undefined) flags |= IS_ROW
    this.#block.addHead(recvTs, n ?? key, messages.length, flags | (words << FLAG_BITS))
    for (const message of messages) this.#addMessage(this.#block, message)
    if (rowRecvTs !== undefined) this.#block.addTime(rowRecvTs)
  }

  /** No line follows. */
  close(): void {
    this.#flush()
    this.#block = new Block(0)
    this.#indexes.clear()
  }

  /** The lines that may have trades; `undefined` if they were not kept. */
  trades(): string[] | undefined {
    return this.#blocks === undefined ? undefined : this.#trades?.map((text) => text.toString('utf8'))
  }

  get areKept(): boolean {
    return this.#blocks !== undefined
  }

  *[Symbol.iterator](): Generator<Line> {
    for (const read of this.#blocks ?? []) {
      const block = read()
      for (let at = 0; at < block.end; at += block.ints[2 * at + 5]! >>> FLAG_BITS)
        yield this.#lineAt(block, at)
    }
  }

  #lineAt(block: Block, at: number): Line {
    const flags = block.ints[2 * at + 5]!
    const number = block.numbers[at + 1]!
    const line = {
      recvTs: block.timeAt(at),
      n: this.#isOwn ? number : undefined,
      key: this.#isOwn ? 0 : number,
      isList: (flags & IS_LIST) !== 0,
      messages: this.#messagesAt(block, at + HEAD_WORDS, block.ints[2 * at + 4]!),
    }
    if ((flags & RARE_FLAGS) === 0) return line
    return {
      ...line,
      isSkipped: (flags & IS_SKIPPED) !== 0,
      isOverlap: (flags & IS_OVERLAP) !== 0,
      event: EVENTS[((flags >> EVENT_SHIFT) & EVENT_MASK) - 1],
      rowRecvTs: (flags & IS_ROW) === 0 ? undefined : block.timeAt(at + (flags >>> FLAG_BITS) - 1),
    }
  }

  #messagesAt(block: Block, at: number, count: number): FeedMessage[] {
    // An array of exactly one element, as most are.
    if (count === 1) return [this.#messageAt(block, at)]
    const messages: FeedMessage[] = []
    while (messages.length < count) {
      messages.push(this.#messageAt(block, at))
      at += HEAD_WORDS + PART_WORDS * (block.ints[2 * at + 5]! >> KIND_BITS)
    }
    return messages
  }

  #addTrades(text: string): void {
    if (this.#trades === undefined || this.#tradeMark === undefined || !text.includes(this.#tradeMark)) return
    // The text is a slice of a longer one, which would stay with it.
    const bytes = Buffer.from(text)
    if (this.#store.takesTrades(bytes.length)) this.#trades.push(bytes)
    else this.#trades = undefined
  }

  #flush(): void {
    if (this.#block.end === 0 || this.#blocks === undefined) return
    const kept = this.#store.keep(this.#block)
    if (kept === undefined) this.#blocks = undefined
    else this.#blocks.push(kept)
    this.#block.end = 0
  }

  #addMessage(block: Block, message: FeedMessage): void {
    const { sid = NONE, seq = NO_NUMBER, ts, body } = message
    const kind = kindOf(message)
    block.addHead(ts, seq, kind === RARE ? NONE : sid, kind | (partsOf(message) << KIND_BITS))
    if (kind === RARE) block.addPart(0, 0, this.#rare.push(message) - 1, 0)
    else if (body.kind === 'changes') {
      for (const { marketId, side, price, qty } of body.changes)
        block.addPart(qty, price, this.#indexOf(marketId), side)
    } else if (body.kind === 'book') {
      block.addPart(0, 0, this.#indexOf(body.marketId), 0)
      for (const { side, price, qty } of body.levels) block.addPart(qty, price, 0, side)
    } else if (body.kind === 'other') block.addPart(0, 0, this.#indexOf(body.name), 0)
  }

  #indexOf(text: string): number {
    let index = this.#indexes.get(text)
    if (index === undefined) {
      index = this.#texts.push(text) - 1
      this.#indexes.set(text, index)
    }
    return index
  }

  #messageAt(block: Block, at: number): FeedMessage {
    const first = at + HEAD_WORDS
    const index = block.indexAt(first)
    const kind = block.ints[2 * at + 5]! & KIND_MASK
    if (kind === RARE) return this.#rare[index]!
    if (kind !== BOOK && kind !== OTHER) return new DecodedChanges(block, at, this.#texts)
    const end = first + PART_WORDS * (block.ints[2 * at + 5]! >> KIND_BITS)
    return {
      sid: block.sidAt(at),
      seq: block.seqAt(at),
      ts: block.timeAt(at),
      body: this.#bodyAt(block, kind, first, end),
    }
  }

  #bodyAt(block: Block, kind: number, at: number, end: number): FeedBody {
    const text = this.#texts[block.indexAt(at)]!
    if (kind === OTHER) return { kind: 'other', name: text }
    const levels: BookLevel[] = []
    for (let part = at + PART_WORDS; part < end; part += PART_WORDS) levels.push(block.levelAt(part))
    return { kind: 'book', marketId: text, levels }
  }
}

/**
 * A message of changes, and its body at once. It stays in its block until it is read, since an hour of messages waits for its
 * chains.
 */
class DecodedChanges implements FeedMessage {
  readonly #block: Block
  readonly #at: number
  readonly #texts: readonly string[]

  constructor(block: Block, at: number, texts: readonly string[]) {
    this.#block = block
    this.#at = at
    this.#texts = texts
  }

  get sid(): number | undefined {
    return this.#block.sidAt(this.#at)
  }

  get seq(): number | undefined {
    return this.#block.seqAt(this.#at)
  }

  get ts(): bigint | undefined {
    return this.#block.timeAt(this.#at)
  }

  get body(): FeedBody & { readonly kind: 'changes' } {
    return this
  }

  get kind(): 'changes' {
    return 'changes'
  }

  get event(): number {
    return this.#block.ints[2 * this.#at + 5]! & KIND_MASK
  }

  get changes(): readonly LevelChange[] {
    const block = this.#block
    const first = this.#at + HEAD_WORDS
    const end = first + PART_WORDS * (block.ints[2 * this.#at + 5]! >> KIND_BITS)
    const changes: LevelChange[] = []
    for (let at = first; at < end; at += PART_WORDS) {
      const { side, price, qty } = block.levelAt(at)
      changes.push({ marketId: this.#texts[block.indexAt(at)]!, side, price, qty })
    }
    return changes
  }
}

/** Opens a file without a name, so that nothing is left behind if the process is killed. */
function openNameless(path: string): number {
  const file = openSync(path, 'wx+', 0o600)
  rmSync(path)
  return file
}

function kindOf({ sid, body }: FeedMessage): number {
  // A subscription that does not fit in half a word.
  if (sid !== undefined && sid !== (sid | 0)) return RARE
  if (body.kind === 'changes') return body.event
  if (body.kind === 'book') return BOOK
  return body.kind === 'other' ? OTHER : RARE
}

function partsOf(message: FeedMessage): number {
  const { body } = message
  if (kindOf(message) === RARE || body.kind === 'other') return 1
  if (body.kind === 'changes') return body.changes.length
  return body.kind === 'book' ? body.levels.length + 1 : 1
}
