// The records of the write-ahead log: 26 bytes of header, then the payload as it came.
//   0 payload length u32 · 4 CRC-32 of everything after this field u32 · 8 receive time, ns u64 · 16 epoch u48 ·
//   22 lane u16 · 24 kind u8 · 25 format version u8
// All little-endian. A record is whole when its checksum says so; nothing else is trusted.

import { crc32 } from 'node:zlib'
import { WAL_PAYLOAD_BYTES_MAX } from '../../shared/limits.ts'

/** What a record is. Frames, commands and marks go to the decoder of their lane; the others speak of the log itself. */
export const WAL_KIND = {
  /** As the exchange sent it. */
  frame: 0,
  /** As we sent it to the exchange. */
  command: 1,
  /** Our own word about the connection, in the form of a frame: a disconnect, or how far we have listened. */
  mark: 2,
  /** JSON object: market id → series. */
  series: 3,
  /** Nothing but the time. */
  clock: 4,
  /** A recorder starts: whatever was connected before is not any more. */
  start: 5,
  /** Never written: the reader's word for records that are damaged or missing. */
  lost: 6,
} as const
export type WalKind = (typeof WAL_KIND)[keyof typeof WAL_KIND]

export const WAL_HEADER_BYTES = 26
const VERSION = 1
const LAST_WRITTEN_KIND = WAL_KIND.start

/**
 * A record to be written. A lane is a place for one connection at a time; the epoch, the ms in which it began, tells them
 * apart.
 */
export interface WalEntry {
  readonly kind: WalKind
  readonly lane: number
  readonly epoch: number
  /** ns since the Unix epoch. */
  readonly recvTs: bigint
  readonly payload: Uint8Array
}

/** A record as read back; `offset` is where it begins in its segment. */
export interface WalRecord extends WalEntry {
  readonly payload: Buffer
  readonly offset: number
}

/** Writes a record into `target` at `at` and returns the offset after it. The caller has seen to the space. */
export function putWalRecord(target: Buffer, at: number, entry: WalEntry): number {
  const { kind, lane, epoch, recvTs, payload } = entry
  const end = at + WAL_HEADER_BYTES + payload.length
  target.writeUInt32LE(payload.length, at)
  target.writeBigUInt64LE(recvTs, at + 8)
  target.writeUIntLE(epoch, at + 16, 6)
  target.writeUInt16LE(lane, at + 22)
  target[at + 24] = kind
  target[at + 25] = VERSION
  target.set(payload, at + WAL_HEADER_BYTES)
  target.writeUInt32LE(crc32(target.subarray(at + 8, end)), at + 4)
  return end
}

/** Bytes of the record whose header begins at `at`; `undefined` when the header cannot be one. */
export function walRecordBytes(bytes: Buffer, at: number): number | undefined {
  const payloadBytes = bytes.readUInt32LE(at)
  const isPossible =
    payloadBytes <= WAL_PAYLOAD_BYTES_MAX &&
    bytes[at + 25] === VERSION &&
    bytes[at + 24]! <= LAST_WRITTEN_KIND
  return isPossible ? WAL_HEADER_BYTES + payloadBytes : undefined
}

/** The whole record at `at`, of which `recordBytes` bytes are there; `undefined` when its checksum is wrong. */
export function getWalRecord(
  bytes: Buffer,
  at: number,
  recordBytes: number,
  offset: number,
): WalRecord | undefined {
  const end = at + recordBytes
  if (crc32(bytes.subarray(at + 8, end)) !== bytes.readUInt32LE(at + 4)) return undefined
  return {
    kind: bytes[at + 24] as WalKind,
    lane: bytes.readUInt16LE(at + 22),
    epoch: bytes.readUIntLE(at + 16, 6),
    recvTs: bytes.readBigUInt64LE(at + 8),
    payload: bytes.subarray(at + WAL_HEADER_BYTES, end),
    offset,
  }
}
