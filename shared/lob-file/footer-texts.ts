// Finds single values in the bytes of a footer that Bookcast wrote: decoding the footer would take a hundred times as long. The
// footer's checksum is verified, so the values are as they were written.

import { lobFooterChecksum } from '../lob-checksum.ts'
import { LOB_FOOTER_KEYS } from '../lob-v1.ts'

/** In Thrift's compact protocol: the header of a binary field whose id is one more than that of the field before. */
const FIELD = 0x18

/** A key of a pair up to the length of its value. */
function headOf(key: string): Buffer {
  return Buffer.from([FIELD, key.length, ...Buffer.from(key), FIELD])
}

/**
 * The values of the keys that the footer (only its Thrift bytes) has; undefined unless the footer has a right checksum. The schema
 * is the first pair, and no value after it has control characters; market ids in the statistics before it may.
 */
export function footerTexts<Key extends string>(
  footer: Buffer,
  keys: readonly Key[],
): Readonly<Partial<Record<Key, string>>> | undefined {
  const checksum = lobFooterChecksum(footer)
  if (checksum === undefined || checksum.stored !== checksum.computed) return undefined
  const start = footer.lastIndexOf(headOf(LOB_FOOTER_KEYS.schema))
  if (start === -1) return undefined
  const values: Partial<Record<Key, string>> = {}
  for (const key of keys) {
    const name = headOf(key)
    const at = footer.indexOf(name, start)
    const value = at === -1 ? undefined : textAt(footer, at + name.length)
    if (value !== undefined) values[key] = value
  }
  return values
}

/** Reads a length and the text after it; undefined if the bytes end earlier. */
export function textAt(bytes: Buffer, offset: number): string | undefined {
  let length = 0
  let at = offset
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++]
    if (byte === undefined || shift > 28) return undefined
    length |= (byte & 0x7f) << shift
    if (byte < 0x80) break
  }
  return length < 0 || at + length > bytes.length ? undefined : bytes.toString('utf8', at, at + length)
}
