// A piece: consecutive lines of one recording, in its order, within one UTC hour. The unit in which the fold reads raw
// segments. Lines that two pieces share are recognised by their keys.

import type { FeedMessage } from '../feed/feed-message.ts'
import type { SequenceTrust } from '../feed/feed-reading.ts'
import type { ConnectionEvent } from '../raw/segment-lines.ts'

/** The name of the message of a line that is not JSON. */
export const HEARTBEAT_NAME = 'heartbeat'

/** One line of a piece. */
export interface Line {
  /** Identifies the line among those of all pieces: its receive time and content (`lineKey`). */
  readonly key: number
  /** When the recorder received it, ns; `undefined` if the recording does not state it. */
  readonly recvTs: bigint | undefined
  readonly messages: readonly FeedMessage[]
  /** The frames came as a list. */
  readonly isList: boolean
  /** The last line of the piece before, repeated to show what the next line follows. */
  readonly isOverlap?: boolean
  /** A line that could not be read. */
  readonly isSkipped?: boolean
  /** Of a recorder's own line: its number in the connection, and the connection's event. */
  readonly n?: number | undefined
  readonly event?: ConnectionEvent | undefined
  /** Of a row of an order-book file: when it was received. Its prices are those of the yes leg. */
  readonly rowRecvTs?: bigint | undefined
}

/** Lines that can be read more than once. */
export interface Lines extends Iterable<Line> {
  readonly length: number
}

/** A line of a recorder's connection. */
export interface OwnLine extends Line {
  readonly connection: string
  readonly n: number
  readonly recvTs: bigint
}

export interface Piece {
  readonly lines: Lines
  /** Also `ignore` if a book or a change lacks its number. */
  readonly sequence: SequenceTrust
  /** Whether `no` prices are given on the yes leg. A recorded command overrides it. */
  readonly useYesPrice: boolean
  /** Of a recorder's own segment: the connection of all its lines. */
  readonly connection?: string | undefined
}

const SHIFT_21 = 2 ** 21
const WORD_BYTES = 4
/** The text whose key is computed, in UTF-8. */
let words = new Int32Array(16 * 1024)
let bytes = Buffer.from(words.buffer)
const time = new BigInt64Array(1)
const timeHalves = new Int32Array(time.buffer)

/** A 53-bit digest of a line's receive time and text. */
export function lineKey(recvTs: bigint | undefined, text: string): number {
  // The loop is faster with integers of 32 bits, and with the words in a constant.
  let [a, b] = [0x9e3779b9 | 0, 0x85ebca6b | 0]
  if (recvTs !== undefined) {
    time[0] = recvTs
    a ^= timeHalves[0]!
    b ^= timeHalves[1]!
  }
  if (3 * text.length > bytes.length) {
    words = new Int32Array(text.length)
    bytes = Buffer.from(words.buffer)
  }
  const own = words
  const end = bytes.write(text)
  const count = Math.ceil(end / WORD_BYTES)
  for (let index = end; index < count * WORD_BYTES; index++) bytes[index] = 0
  for (let index = 0; index < count; index++) {
    const word = own[index]!
    a = Math.imul(a ^ word, 0x01000193)
    a ^= a >>> 15
    b = Math.imul(b ^ word, 0x5bd1e995)
    b ^= b >>> 15
  }
  a ^= a >>> 16
  return (b >>> 0) * SHIFT_21 + ((a >>> 0) % SHIFT_21)
}
