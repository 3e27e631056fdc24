// The records of the write-ahead log: 36 bytes of header, then the payload as it came.
//   0 payload length u32 · 4 CRC-32 of everything after this field u32 · 8 receive time, ns u64 ·
//   16 beginning of the connection, ms u48 · 22 lane u16 · 24 kind u8 · 25 format version u8 ·
//   26 start of the recorder, ms u48 · 32 number within the connection u32
// Version 1, of 0.1, ends with the format version.
// All little-endian. A record is complete if its checksum matches; nothing else is trusted.

import { crc32 } from 'node:zlib'
import { WAL_PAYLOAD_BYTES_MAX } from '../../shared/limits.ts'

/** The kind of a record. Frames, commands and marks are lines of a connection. The others concern the log itself. */
export const WAL_KIND = {
  /** As the exchange sent it. */
  frame: 0,
  /** As we sent it to the exchange. */
  command: 1,
  /** An event of the connection, in the form of a frame: it opens, it ends, or it was still open at a time. */
  mark: 2,
  /** JSON object: market id → series. */
  series: 3,
  /** The time, without a payload. */
  clock: 4,
  /** A recorder starts. The connections of the one before have ended. */
  start: 5,
  /** Never written: the reader returns it for records that are damaged or missing. */
  lost: 6,
} as const
export type WalKind = (typeof WAL_KIND)[keyof typeof WAL_KIND]

export const WAL_HEADER_BYTES = 36
const VERSION = 2
/** Headers of the version before, which are shorter. */
const OLD_HEADER_BYTES = 26
const OLD_VERSION = 1
/** The number of bytes from which a record's length can be read. */
export const WAL_LENGTH_BYTES_MIN = OLD_HEADER_BYTES
const LAST_WRITTEN_KIND = WAL_KIND.start

/**
 * A record to be written. A lane has one connection at a time. `begunMs`, the time at which a connection began, distinguishes
 * them.
 */
export interface WalEntry {
  readonly kind: WalKind
  readonly lane: number
  readonly begunMs: number
  /** ns since the Unix epoch. */
  readonly recvTs: bigint
  /** When the recorder started, ms since the epoch. */
  readonly start: number
  /** Numbers the lines of a connection from 0; 0 for records that are not lines. */
  readonly n: number
  readonly payload: Uint8Array
}

/** A record as read back; `offset` is where it begins in its segment. */
export interface WalRecord extends Omit<WalEntry, 'n'> {
  /** Undefined in a record of the old version. */
  readonly n: number | undefined
  readonly payload: Buffer
  readonly offset: number
}

/** Writes a record into `target` at `at` and returns the offset after it. The caller provides the space. */
export function putWalRecord(target: Buffer, at: number, entry: WalEntry): number {
  const { kind, lane, begunMs, recvTs, start, n, payload } = entry
  const end = at + WAL_HEADER_BYTES + payload.length
  target.writeUInt32LE(payload.length, at)
  target.writeBigUInt64LE(recvTs, at + 8)
  target.writeUIntLE(begunMs, at + 16, 6)
  target.writeUInt16LE(lane, at + 22)
  target[at + 24] = kind
  target[at + 25] = VERSION
  target.writeUIntLE(start, at + 26, 6)
  target.writeUInt32LE(n, at + 32)
  target.set(payload, at + WAL_HEADER_BYTES)
  target.writeUInt32LE(crc32(target.subarray(at + 8, end)), at + 4)
  return end
}

/** Bytes of the record whose header begins at `at`; `undefined` when the header cannot be one. */
export function walRecordBytes(bytes: Buffer, at: number): number | undefined {
  const payloadBytes = bytes.readUInt32LE(at)
  const version = bytes[at + 25]
  const isPossible = payloadBytes <= WAL_PAYLOAD_BYTES_MAX && bytes[at + 24]! <= LAST_WRITTEN_KIND
  if (!isPossible || (version !== VERSION && version !== OLD_VERSION)) return undefined
  return (version === VERSION ? WAL_HEADER_BYTES : OLD_HEADER_BYTES) + payloadBytes
}

/** The record of `recordBytes` bytes at `at`; `undefined` if its checksum is wrong. */
export function getWalRecord(
  bytes: Buffer,
  at: number,
  recordBytes: number,
  offset: number,
): WalRecord | undefined {
  const end = at + recordBytes
  if (crc32(bytes.subarray(at + 8, end)) !== bytes.readUInt32LE(at + 4)) return undefined
  const isOld = bytes[at + 25] === OLD_VERSION
  return {
    kind: bytes[at + 24] as WalKind,
    lane: bytes.readUInt16LE(at + 22),
    begunMs: bytes.readUIntLE(at + 16, 6),
    recvTs: bytes.readBigUInt64LE(at + 8),
    start: isOld ? 0 : bytes.readUIntLE(at + 26, 6),
    n: isOld ? undefined : bytes.readUInt32LE(at + 32),
    payload: bytes.subarray(at + (isOld ? OLD_HEADER_BYTES : WAL_HEADER_BYTES), end),
    offset,
  }
}
