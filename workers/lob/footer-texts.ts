// Single values of a footer of Bookcast's own, found in its bytes: decoding a footer costs a hundred times as much. The
// footer's checksum is checked, so that what is found there is what was written.

import { lobFooterChecksum } from '../../shared/lob-checksum.ts'

/** The header of a binary field behind the one before it, in thrift's compact protocol. */
const FIELD = 0x18

/** The value of each key; undefined unless the footer (thrift bytes alone) has a right checksum and all of the keys. */
export function footerTexts<Key extends string>(
  footer: Buffer,
  keys: readonly Key[],
): Readonly<Record<Key, string>> | undefined {
  const checksum = lobFooterChecksum(footer)
  if (checksum === undefined || checksum.stored !== checksum.computed) return undefined
  const values: Partial<Record<Key, string>> = {}
  for (const key of keys) {
    const name = Buffer.from([FIELD, key.length, ...Buffer.from(key), FIELD])
    const at = footer.lastIndexOf(name)
    const value = at === -1 ? undefined : textAt(footer, at + name.length)
    if (value === undefined) return undefined
    values[key] = value
  }
  return values as Readonly<Record<Key, string>>
}

/** A text behind its length; undefined where the bytes end before. */
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
