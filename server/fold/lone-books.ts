// Where a connection begins in lines that carry one book each. A connection that numbers nothing begins with the books of all its
// markets, as one list; recorders that take lists apart write a line each.

import { marketsOf } from '../feed/feed-message.ts'
import type { Line } from './piece.ts'

/** The books of one beginning come within so long. */
const TOGETHER_NS_MAX = 500_000_000n

/**
 * Places of `lines` at which a connection begins: lines of books with nothing between them that state the books of all
 * markets known so far, more than one. `known` are the markets stated before the first line.
 */
export function beginningsIn(lines: readonly Line[], known: ReadonlySet<string>): number[] {
  const starts: number[] = []
  let stated = new Set(known)
  for (let place = 0; place < lines.length; place++) {
    const books = new Set<string>()
    let end = place
    for (; end < lines.length; end++) {
      const line = lines[end]!
      const ids = line.messages.flatMap(marketsOf)
      const isBook = line.messages.length > 0 && line.messages.every(({ body }) => body.kind === 'book')
      const apart = (line.recvTs ?? 0n) - (lines[place]!.recvTs ?? 0n)
      if (!isBook || apart > TOGETHER_NS_MAX || ids.some((id) => books.has(id))) break
      for (const id of ids) books.add(id)
    }
    if (end === place) {
      for (const id of lines[place]!.messages.flatMap(marketsOf)) stated.add(id)
      continue
    }
    const isAll = stated.size > 1 && [...stated].every((id) => books.has(id))
    if (isAll && (place > 0 || known.size > 0)) {
      starts.push(place)
      stated = new Set()
    }
    for (const id of books) stated.add(id)
    place = end - 1
  }
  return starts
}
