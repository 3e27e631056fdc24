// A short name for everything that the bytes of an answer depend on: equal names mean equal answers. The server makes
// entity tags of it, workers compare it with those that a client holds.

import { createHash } from 'node:crypto'

// 132 bits: two different answers never meet in one name.
const CHARACTERS = 22

/** 22 characters of base64url; the parts count one by one, so that `ab`,`c` and `a`,`bc` differ. */
export function contentIdentity(parts: Iterable<string>): string {
  let text = ''
  for (const part of parts) text += `${part.length}:${part}`
  return createHash('sha256').update(text).digest('base64url').slice(0, CHARACTERS)
}
