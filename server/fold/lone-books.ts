// Finds where a connection begins in lines with one book each. A connection without sequence numbers begins with the books of all
// its markets, as one list. Some recorders take the list apart and write a line for each book.

import { addMarkets, marketsOf } from '../feed/feed-message.ts'
import type { Line } from './piece.ts'

/** The books of one beginning come within this time. */
const TOGETHER_NS_MAX = 500_000_000n

/** Consecutive lines of books: where they end, and their markets. Undefined if the first line is not one. */
function booksFrom(
  lines: readonly Line[],
  place: number,
): { readonly end: number; readonly books: Set<string> } | undefined {
  const books = new Set<string>()
  let end = place
  for (; end < lines.length; end++) {
    const line = lines[end]!
    const apart = (line.recvTs ?? 0n) - (lines[place]!.recvTs ?? 0n)
    if (!isOfBooks(line) || apart > TOGETHER_NS_MAX) break
    const ids = line.messages.flatMap(({ body }) => marketsOf(body))
    if (ids.some((id) => books.has(id))) break
    for (const id of ids) books.add(id)
  }
  return end === place ? undefined : { end, books }
}

/** A connection that begins with an overlap line begins in the segment before. */
function isOfBooks({ messages, isOverlap }: Line): boolean {
  return isOverlap !== true && messages.length > 0 && messages.every(({ body }) => body.kind === 'book')
}

/** The subscriptions that a line confirms. */
export function confirmedIn({ messages }: Line): number[] {
  const sids: number[] = []
  for (const { body } of messages)
    if (body.kind === 'subscribed' && body.subscription !== undefined) sids.push(body.subscription)
  return sids
}

/**
 * Places of `lines` at which a connection begins: consecutive books of several markets that include all markets so far, and a line
 * that confirms a subscription again. `known` and `confirmed` are the markets and subscriptions before the first line.
 */
export function beginningsIn(
  lines: readonly Line[],
  known: ReadonlySet<string>,
  confirmed: ReadonlySet<number>,
): number[] {
  const starts: number[] = []
  let stated = new Set(known)
  let announced = new Set(confirmed)
  for (let place = 0; place < lines.length; place++) {
    const line = lines[place]!
    const found = isOfBooks(line) ? booksFrom(lines, place) : undefined
    if (found === undefined) {
      const sids = confirmedIn(line)
      if (sids.some((sid) => announced.has(sid))) {
        starts.push(place)
        stated = new Set()
        announced = new Set()
      }
      for (const sid of sids) announced.add(sid)
      for (const { body } of line.messages) addMarkets(body, stated)
      continue
    }
    const { end, books } = found
    if (books.size > 1 && [...stated].every((id) => books.has(id))) {
      starts.push(place)
      stated = new Set()
    }
    for (const id of books) stated.add(id)
    place = end - 1
  }
  return starts
}
