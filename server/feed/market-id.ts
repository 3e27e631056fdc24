// Market ids that the lake can store.

import { MARKET_ID_BYTES_MAX } from '../../shared/limits.ts'

/** A byte order mark at the beginning and half a surrogate pair would not read back. */
const NOT_TEXT = /^\uFEFF|\p{Surrogate}/u

export function isMarketId(id: string): boolean {
  return id !== '' && Buffer.byteLength(id) <= MARKET_ID_BYTES_MAX && !NOT_TEXT.test(id)
}
