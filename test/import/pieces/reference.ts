// What recordings prove, worked out the slow and obvious way from the messages, without any code of the product: which
// market's book is known at which instants, and what it is.
//
// The rules:
// - A message's time is the exchange's where it gives one, else its receive time; within one market of a connection times
//   never go back (a change made before the first book arrived counts from that book on).
// - A market is known from the first book of it in a connection until that connection's last message, both included, and
//   unknown from the next nanosecond on. Between two connections, and between two pieces of nothing, nothing is known;
//   midnight is no boundary.
// - A number missing in a subscription ends what is known of its markets right after the last message before the hole,
//   until the next book of each.
// - Two recorders: known is what either knows. They must agree; if they do not, the model itself is wrong.
// - A recorder's mark ends its connection. Whether the time from the last message to the mark is known is left open: no
//   message proves it, and none disproves it (`openSpans`).

import { applyNaively, bookText } from '../../support/lob-rows.ts'
import type { NaiveBook } from '../../support/lob-rows.ts'
import { UNKNOWN, textAt, uniqueInstants } from './book-steps.ts'
import type { BookStep } from './book-steps.ts'
import type { Message } from './recorded-frames.ts'
import type { Recording } from './recording-model.ts'

export interface KnownSpan {
  readonly from: bigint
  /** The last nanosecond. */
  readonly to: bigint
}

interface Stretch extends KnownSpan {
  readonly steps: readonly BookStep[]
}

export interface Reference {
  /** By market: the book as the union of all recorders knows it. */
  readonly steps: readonly (readonly BookStep[])[]
  /** By market: where known or unknown are both right, but a book must be the last one. */
  readonly openSpans: readonly (readonly KnownSpan[])[]
}

export function referenceOf(recordings: readonly Recording[], marketCount: number): Reference {
  const stretches = Array.from({ length: marketCount }, (): Stretch[] => [])
  const openSpans = Array.from({ length: marketCount }, (): KnownSpan[] => [])
  for (const { messages } of recordings) {
    for (const connection of connectionsOf(messages)) {
      const end = lastTime(connection.filter((message) => message.other !== 'disconnect'))
      const markTs = connection.find((message) => message.other === 'disconnect')?.recvTs
      for (let market = 0; market < marketCount; market++) {
        const found = stretchesOf(connection, market, end)
        stretches[market]!.push(...found)
        const isKnownAtEnd = found.at(-1)?.to === end
        if (markTs !== undefined && isKnownAtEnd) openSpans[market]!.push({ from: end + 1n, to: markTs })
      }
    }
  }
  return { steps: stretches.map(unionOf), openSpans }
}

function connectionsOf(messages: readonly Message[]): Message[][] {
  const byNumber = new Map<number, Message[]>()
  for (const message of messages) {
    const list = byNumber.get(message.connection) ?? []
    byNumber.set(message.connection, list)
    list.push(message)
  }
  return [...byNumber.values()]
}

// A book with an older time was sent again. It is true at its receive time.
function timeOf({ ts, recvTs, parts }: Message): bigint {
  const isAgain = parts[0]?.kind === 'book' && ts !== undefined && recvTs - ts > 1_000_000_000n
  return isAgain ? recvTs : (ts ?? recvTs)
}

function lastTime(messages: readonly Message[]): bigint {
  return messages.reduce((last, message) => (timeOf(message) > last ? timeOf(message) : last), 0n)
}

function stretchesOf(connection: readonly Message[], market: number, end: bigint): Stretch[] {
  const result: Stretch[] = []
  let book: NaiveBook
  let steps: BookStep[] = []
  let ts = 0n
  let sid: number | undefined
  const finish = (to: bigint): void => {
    if (book !== undefined) result.push({ from: steps[0]!.ts, to, steps })
    book = undefined
    steps = []
  }
  const last = new Map<number, Message>()
  for (const message of connection) {
    if (message.sid !== undefined && message.seq !== undefined) {
      const before = last.get(message.sid)
      const isHole = before !== undefined && message.seq !== before.seq! + 1
      if (isHole && message.sid === sid) finish(timeOf(before))
      last.set(message.sid, message)
    }
    for (const part of message.parts) {
      if (part.market !== market) continue
      sid = message.sid
      ts = timeOf(message) > ts ? timeOf(message) : ts
      if (part.kind === 'book') book = new Map(part.levels)
      else book = applyNaively(book, 1, part.side, part.price, part.qty)
      if (book !== undefined) steps.push({ ts, text: bookText(book) })
    }
  }
  finish(end)
  return result
}

function unionOf(stretches: readonly Stretch[]): BookStep[] {
  const instants = uniqueInstants(
    stretches.flatMap(({ from, to, steps }) => [from, to + 1n, ...steps.map((step) => step.ts)]),
  )
  const union: BookStep[] = []
  for (const ts of instants) {
    const texts = new Set(
      stretches.filter(({ from, to }) => from <= ts && ts <= to).map(({ steps }) => textAt(steps, ts)),
    )
    if (texts.size > 1)
      throw new Error(`two recorders know different books at ${ts}: ${[...texts].join(' | ')}`)
    const text = [...texts][0] ?? UNKNOWN
    if (text !== (union.at(-1)?.text ?? UNKNOWN)) union.push({ ts, text })
  }
  return union
}
