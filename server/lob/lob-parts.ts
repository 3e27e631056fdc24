// Receipts of order-book answers, made or known, and the parts of a body that they allow: a part is built from the block that
// holds its first byte.

import { ApiError } from '../../shared/errors.ts'
import type { LobReceipt } from '../../shared/lob-receipt.ts'
import type { LobHead, LobQuery } from '../../shared/lob-task.ts'
import { boundsOf, type ByteRange } from '../http/byte-range.ts'
import type { LobOpenOptions, LobPool } from './lob-pool.ts'
import type { LobReceipts } from './lob-receipts.ts'
import type { LobStream } from './lob-stream.ts'

export interface ReceiptSource {
  readonly pool: LobPool
  readonly receipts: LobReceipts
}

/** A stream that has the bytes of a part. */
export interface LobPartOfBody {
  readonly stream: LobStream
  /** Bytes of the stream before the part. */
  readonly skipBytes: number
  readonly sizeBytes: number
  readonly contentRange: string
}

/** What is planned now; nothing is made. */
export async function headNow(pool: LobPool, query: LobQuery, options: LobOpenOptions): Promise<LobHead> {
  const stream = await pool.open(query, { ...options, headOnly: true })
  await stream.close()
  return stream.head
}

/** The receipt of the answer as it is now; made where it is not known, which takes as long as the answer. */
export async function receiptOf(
  { pool, receipts }: ReceiptSource,
  query: LobQuery,
  options: LobOpenOptions,
): Promise<{ readonly head: LobHead; readonly receipt: LobReceipt }> {
  const planned = await headNow(pool, query, options)
  const known = receipts.get(planned.identity)
  if (known !== undefined) return { head: planned, receipt: known }
  const validation = { ...options.validation, held: [] }
  const stream = await pool.open(query, { ...options, validation, headOnly: false, part: 'receipt' })
  await stream.close()
  const { head } = stream
  const { receipt } = head
  if (receipt === undefined) throw new Error('the worker made no receipt')
  receipts.keep(head.identity, receipt)
  return { head, receipt }
}

/**
 * The part of the body that a range means; null where the whole has to be sent: the client holds all of it or another
 * answer than the present one.
 * @throws {ApiError} `range_not_satisfiable`
 */
export async function openPart(
  source: ReceiptSource,
  query: LobQuery,
  range: ByteRange,
  options: LobOpenOptions,
  ifRange: string,
): Promise<LobPartOfBody | null> {
  if (ifRange !== '' || options.validation.held.length > 0) {
    const { identity, isHeld } = await headNow(source.pool, query, options)
    if (isHeld || (ifRange !== '' && ifRange !== `"${identity}"`)) return null
  }
  const { head, receipt } = await receiptOf(source, query, options)
  if (ifRange !== '' && ifRange !== `"${head.identity}"`) return null
  const bounds = boundsOf(range, receipt.bytes)
  if (bounds === null)
    throw new ApiError(
      'range_not_satisfiable',
      `The answer has ${receipt.bytes} bytes, and none of those that Range asks for.`,
      { headers: { 'Content-Range': `bytes */${receipt.bytes}` } },
    )
  const { first, last } = bounds
  const { block, startByte } = blockOf(receipt, first)
  const stream = await source.pool.open(query, {
    ...options,
    ...(block > 0 ? { part: { fromBlock: block } } : {}),
  })
  if (stream.head.identity === head.identity) {
    const contentRange = `bytes ${first}-${last}/${receipt.bytes}`
    return { stream, skipBytes: first - startByte, sizeBytes: last - first + 1, contentRange }
  }
  // A file was replaced meanwhile.
  await stream.close()
  return null
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
