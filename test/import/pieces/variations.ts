// Other ways in which recorders write what they receive. A connection's first books are one message; some recorders take it
// apart and write a line for each book. Some write receive times in whole seconds. Some leave out heartbeats.

import type { Message } from './recorded-frames.ts'
import type { RecordedWorld, Recording } from './recording-model.ts'
import type { SeededRandom } from './seeded-random.ts'
import { NS_PER_S } from './true-world.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'

export const VARIATIONS = ['books one a line', 'whole seconds', 'no heartbeats'] as const
export type Variation = (typeof VARIATIONS)[number]

/** What may be varied of a case: Kalshi has neither lists of books nor heartbeats. */
export function someVariations(source: LobSource, random: SeededRandom): Variation[] {
  return source === 'kalshi' ? ['whole seconds'] : random.someOf(VARIATIONS)
}

export function varied(recorded: RecordedWorld, variations: readonly Variation[]): RecordedWorld {
  const recordings = recorded.recordings.map((recording): Recording => {
    let messages: readonly Message[] = recording.messages
    if (variations.includes('no heartbeats')) messages = messages.filter(({ other }) => other !== 'PONG')
    if (variations.includes('books one a line')) messages = messages.flatMap(booksApart)
    if (variations.includes('whole seconds'))
      messages = messages.map((message) => ({
        ...message,
        recvTs: message.recvTs - (message.recvTs % NS_PER_S),
      }))
    return { ...recording, messages }
  })
  return { ...recorded, recordings }
}

/** If a connection has one market, its first book looks like a repeated book: it stays a list. */
function booksApart(message: Message): Message[] {
  const { isArray, ...rest } = message
  if (isArray !== true || message.parts.length < 2) return [message]
  return message.parts.map((part, index) => ({
    ...rest,
    ts: part.kind === 'book' ? part.changedTs : undefined,
    recvTs: message.recvTs + BigInt(index) * 20_000n,
    parts: [part],
  }))
}
