// The events of one UTC hour of one series in arrival order, as fixed-size records. They are held in memory, and moved to a
// temporary file when the whole recording grows too large.

import { closeSync, mkdirSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

// A record is six 64-bit words: ts, recv_ts, seq, qty, then price and market index, then event with side, and chain.
const WORDS = 6
export const RECORD_BYTES = WORDS * 8
const SIDE_SHIFT = 8
const EVENT_MASK = 0xff
const FIRST_RECORDS = 64
const READ_RECORDS = 16_384

/** One record as passed to `add`; `market` is an index of the series' markets. */
export interface SpillEvent {
  readonly ts: bigint
  readonly recvTs: bigint
  readonly seq: bigint
  readonly event: number
  readonly side: number
  readonly price: number
  readonly qty: number
  /** The chain of the event (server/fold/chain.ts); 0 if there is only one. */
  readonly chain?: number
}

/** Records as columns-in-rows: `words[i * 6 …]` and the same bytes as `ints[i * 12 …]`. */
export class EventRecords {
  readonly words: BigInt64Array<ArrayBuffer>
  readonly ints: Int32Array<ArrayBuffer>

  constructor(buffer: ArrayBuffer) {
    this.words = new BigInt64Array(buffer)
    this.ints = new Int32Array(buffer)
  }

  put(record: number, market: number, event: SpillEvent): void {
    const word = record * WORDS
    this.words[word] = event.ts
    this.words[word + 1] = event.recvTs
    this.words[word + 2] = event.seq
    this.words[word + 3] = BigInt(event.qty)
    const int = word * 2 + 8
    this.ints[int] = event.price
    this.ints[int + 1] = market
    this.ints[int + 2] = event.event | (event.side << SIDE_SHIFT)
    this.ints[int + 3] = event.chain ?? 0
  }

  setPrice(record: number, price: number): void {
    this.ints[record * WORDS * 2 + 8] = price
  }

  /** Moves a record to another time. */
  move(record: number, ts: bigint): void {
    this.words[record * WORDS] = ts
  }

  /** Copies record `from` of `source` to place `to`. */
  copy(to: number, source: EventRecords, from: number): void {
    const [target, origin] = [to * WORDS, from * WORDS]
    for (let word = 0; word < WORDS; word++) this.words[target + word] = source.words[origin + word]!
  }

  ts(record: number): bigint {
    return this.words[record * WORDS]!
  }
  recvTs(record: number): bigint {
    return this.words[record * WORDS + 1]!
  }
  seq(record: number): bigint {
    return this.words[record * WORDS + 2]!
  }
  qty(record: number): bigint {
    return this.words[record * WORDS + 3]!
  }
  price(record: number): number {
    return this.ints[record * WORDS * 2 + 8]!
  }
  market(record: number): number {
    return this.ints[record * WORDS * 2 + 9]!
  }
  event(record: number): number {
    return this.ints[record * WORDS * 2 + 10]! & EVENT_MASK
  }
  side(record: number): number {
    return this.ints[record * WORDS * 2 + 10]! >> SIDE_SHIFT
  }
  chain(record: number): number {
    return this.ints[record * WORDS * 2 + 11]!
  }
}

/** Events in arrival order. */
export interface SpilledEvents {
  /** The records in pieces; each piece is valid until the next one is requested. */
  pieces(): Iterable<EventPiece>
}

/** Records `[first, first + count)`. */
export interface EventPiece {
  readonly records: EventRecords
  readonly first: number
  readonly count: number
}

export class EventSpill implements SpilledEvents {
  readonly path: string
  rows = 0
  #spilledRecords = 0
  #heldRecords = 0
  #held: EventRecords | undefined

  /** `path` is the file for records when `spill` is called; neither it nor its directory is created before. */
  constructor(path: string) {
    this.path = path
  }

  /** Bytes of events in memory. */
  get heldBytes(): number {
    return this.#held?.words.byteLength ?? 0
  }

  /** Adds one event and returns by how many bytes the memory has grown. */
  add(market: number, event: SpillEvent): number {
    let grown = 0
    if (this.#held === undefined || this.#heldRecords * WORDS === this.#held.words.length) {
      const before = this.heldBytes
      const larger = new EventRecords(new ArrayBuffer(Math.max(before * 2, FIRST_RECORDS * RECORD_BYTES)))
      if (this.#held !== undefined) larger.words.set(this.#held.words)
      this.#held = larger
      grown = this.heldBytes - before
    }
    this.#held.put(this.#heldRecords++, market, event)
    this.rows++
    return grown
  }

  /** Moves the events in memory to the file. Synchronous, so that `append` of the recording can be. */
  spill(): void {
    if (this.#held === undefined) return
    const bytes = new Uint8Array(this.#held.words.buffer, 0, this.#heldRecords * RECORD_BYTES)
    mkdirSync(dirname(this.path), { recursive: true })
    const file = openSync(this.path, 'a', 0o600)
    try {
      for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done)
    } finally {
      closeSync(file)
    }
    this.#spilledRecords += this.#heldRecords
    this.#heldRecords = 0
    this.#held = undefined
  }

  /** The events after the first `skip`. */
  since(skip: number): SpilledEvents {
    return { pieces: () => this.pieces(skip) }
  }

  *pieces(skip = 0): Generator<EventPiece> {
    if (this.#spilledRecords > skip) {
      const piece = new EventRecords(new ArrayBuffer(READ_RECORDS * RECORD_BYTES))
      const file = openSync(this.path, 'r')
      try {
        for (let done = skip; done < this.#spilledRecords;) {
          const count = Math.min(READ_RECORDS, this.#spilledRecords - done)
          readFully(file, new Uint8Array(piece.words.buffer, 0, count * RECORD_BYTES), done * RECORD_BYTES)
          done += count
          yield { records: piece, first: 0, count }
        }
      } finally {
        closeSync(file)
      }
    }
    if (this.#held === undefined) return
    const first = Math.max(0, skip - this.#spilledRecords)
    yield { records: this.#held, first, count: this.#heldRecords - first }
  }

  /** Frees the memory and removes the file. */
  drop(): void {
    this.#held = undefined
    if (this.#spilledRecords > 0) rmSync(this.path, { force: true })
  }
}

function readFully(file: number, bytes: Uint8Array, offset: number): void {
  for (let done = 0; done < bytes.length;) {
    const count = readSync(file, bytes, done, bytes.length - done, offset + done)
    if (count === 0) throw new Error('a spill file ends too early')
    done += count
  }
}
