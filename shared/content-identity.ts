// A short name of everything that the bytes of an answer depend on: equal names mean equal answers. The server makes entity tags
// from it; workers compare it with the tags that a client sent.

import { createHash } from 'node:crypto'

// 132 bits, so that names do not collide.
const CHARACTERS = 22

/** 22 characters of base64url. Each part is hashed with its length, so that `ab`,`c` and `a`,`bc` differ. */
export function contentIdentity(parts: Iterable<string>): string {
  let text = ''
  for (const part of parts) text += `${part.length}:${part}`
  return createHash('sha256').update(text).digest('base64url').slice(0, CHARACTERS)
}
