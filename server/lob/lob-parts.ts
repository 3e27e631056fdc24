// Receipts of order-book answers, measured or known, and parts of a body, which need a receipt: a part is built from the block
// that holds its first byte.

import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { ApiError } from '../../shared/errors.ts'
import type { LobReceipt } from '../../shared/lob-receipt.ts'
import type { LobHead, LobQuery } from '../../shared/lob-task.ts'
import { boundsOf, type ByteBounds, type ByteRange } from '../http/byte-range.ts'
import { chunksOf } from '../http/byte-stream.ts'
import type { LobOpenOptions, LobPool } from './lob-pool.ts'
import { type KnownReceipt, type LobReceipts, type PresentReceipt, questionOf } from './lob-receipts.ts'
import type { LobStream } from './lob-stream.ts'

export interface ReceiptSource {
  readonly pool: LobPool
  readonly receipts: LobReceipts
}

/** A stream that contains the bytes of a part. */
export interface LobPartOfBody {
  readonly stream: LobStream
  /** Bytes of the stream before the part. */
  readonly skipBytes: number
  readonly sizeBytes: number
  readonly contentRange: string
}

/** Plans the answer and returns its head; makes no rows. */
export async function headNow(pool: LobPool, query: LobQuery, options: LobOpenOptions): Promise<LobHead> {
  const stream = await pool.open(query, { ...options, headOnly: true })
  await stream.close()
  return stream.head
}

/**
 * The receipt of the current answer. If it is not known, it is measured, which takes as long as the answer. Null if
 * `isWanted` refuses the answer's identity. Concurrent requests of a client share the result if they have the same
 * `condition`, from which `isWanted` is made.
 */
export async function receiptOf(
  source: ReceiptSource,
  query: LobQuery,
  options: LobOpenOptions,
  condition = '',
  isWanted: (identity: string) => boolean = () => true,
): Promise<PresentReceipt | null> {
  const { client, part, pin, signal } = options
  const key = JSON.stringify([questionOf(query, pin), client, part, condition])
  return source.receipts.rounds.join(key, signal, async (ofRound) =>
    presentReceipt(source, query, { ...options, signal: ofRound }, isWanted),
  )
}

async function presentReceipt(
  { pool, receipts }: ReceiptSource,
  query: LobQuery,
  options: LobOpenOptions,
  isWanted: (identity: string) => boolean,
): Promise<PresentReceipt | null> {
  const known = receipts.last(query, options.pin)
  const validation = { ...options.validation, held: known === undefined ? [] : [known.identity] }
  const { part = 'receipt' } = options
  const stream = await pool.open(query, { ...options, validation, headOnly: false, part })
  try {
    const { head } = stream
    const { identity, isHeld } = head
    if (!isWanted(identity)) return null
    if (isHeld) return { ...known!, head }
    const made = { identity, receipt: await measure(stream) }
    receipts.keep(query, options.pin, made)
    return { ...made, head }
  } finally {
    await stream.close()
  }
}

/** Reads a body to its end; its threads measure the blocks. */
async function measure(stream: LobStream): Promise<LobReceipt> {
  const plan = stream.head.receiptPlan!
  const hash = createHash('sha256')
  for await (const chunk of chunksOf(stream)) {
    hash.update(chunk)
    // Without this pause, ready chunks would block all other requests.
    await setImmediate()
  }
  const { sections, bytesGiven } = stream
  const blocks = plan.blocks.map((block, number) => {
    const { bytes, sha256 } = sections[number]!
    return { ...block, bytes, sha256 }
  })
  return { ...plan, bytes: bytesGiven, sha256: hash.digest('hex'), blocks }
}

/**
 * The part of the body that a range selects. Null if the whole answer must be sent: If-Range names another answer than the
 * current one, or the client has the current one already.
 * @throws {ApiError} `range_not_satisfiable`
 */
export async function openPart(
  source: ReceiptSource,
  query: LobQuery,
  range: ByteRange,
  options: LobOpenOptions,
  ifRange: string,
): Promise<LobPartOfBody | null> {
  const { held } = options.validation
  const isWanted = (identity: string): boolean =>
    (ifRange === '' || ifRange === `"${identity}"`) && !held.includes(identity) && !held.includes('*')
  const open = async ({ identity, receipt }: KnownReceipt, { first, last }: ByteBounds) => {
    const { block, startByte } = blockOf(receipt, first)
    const part = block > 0 ? { fromBlock: block } : undefined
    const stream = await source.pool.open(query, { ...options, part })
    if (stream.head.identity === identity) {
      const contentRange = `bytes ${first}-${last}/${receipt.bytes}`
      return { stream, skipBytes: first - startByte, sizeBytes: last - first + 1, contentRange }
    }
    // A file was replaced.
    await stream.close()
    return null
  }
  const known = source.receipts.last(query, options.pin)
  const knownBounds = known && isWanted(known.identity) ? boundsOf(range, known.receipt.bytes) : null
  const part = known && knownBounds && (await open(known, knownBounds))
  if (part) return part
  // The part does not depend on the file of the date before, as the times of a receipt do: that file may be broken or replaced.
  const measured = { ...options, part: 'blocks' } as const
  const present = await receiptOf(source, query, measured, [ifRange, ...held].join(' '), isWanted)
  if (present === null) return null
  const bounds = boundsOf(range, present.receipt.bytes)
  if (bounds === null)
    throw new ApiError(
      'range_not_satisfiable',
      `The answer has ${present.receipt.bytes} bytes, and Range asks for none of them.`,
      { headers: { 'Content-Range': `bytes */${present.receipt.bytes}` } },
    )
  return await open(present, bounds)
}

/** The block that holds a byte, and the first byte of that block. */
function blockOf({ blocks }: LobReceipt, byte: number): { block: number; startByte: number } {
  let startByte = 0
  for (const [block, { bytes }] of blocks.entries()) {
    if (byte < startByte + bytes) return { block, startByte }
    startByte += bytes
  }
  return { block: 0, startByte: 0 }
}
