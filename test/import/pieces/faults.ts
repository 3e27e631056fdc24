// Faults of recordings: messages that are lost, repeated, in another order, late, or have a wrong time. A fault is made only if
// the rest of the recording shows it, or if it does no harm. A fault that nothing can show is not tested:
//
// - Kalshi loses and swaps messages (sequence numbers show both). Polymarket's messages have no numbers: only the lines of a
//   recording are swapped there, each with its receive time, which shows it.
// - A wrong time is beyond a neighbour in the same connection: after the next message, or before the one before. Otherwise it
//   could be right, and the other clock wrong.
// - A message is lost or swapped only if the message before it is an older change: the book that is known until then is still
//   true at its time.
//
// Tolerance: where clocks are right, none. A change with a wrong exchange time has only its receive time left, and no event
// of its market may stand before it: from when it truly happened until it was received, the market may still show any true
// book since just before it happened (`LateSpan`). Never a book before its time.

import type { Message } from './recorded-frames.ts'
import type { Recording } from './recording-model.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'

export const FAULT_KINDS = [
  'none',
  'dropped',
  'doubled',
  'swapped',
  'delayed',
  'exchange time',
  'receive time',
  'receive time of another',
] as const
/** The last one has its own tests: if a recording is cut right after it, nothing shows it. */
export type FaultKind = (typeof FAULT_KINDS)[number] | 'exchange time ahead'

/** From `from` to `to` a market may show any true book since just before `from`. */
export interface LateSpan {
  readonly market: number
  readonly from: bigint
  readonly to: bigint
}

export interface Faulty {
  readonly recording: Recording
  readonly lateSpans: readonly LateSpan[]
  /** How many faults were made; 0 if none was possible. */
  readonly count: number
}

const HOUR_NS = 3_600_000_000_000n
/** Messages overtake each other by less. */
const AHEAD_TOLD_NS = 6_000_000_000n
const IN_2099 = BigInt(Date.UTC(2099, 0, 1, 12)) * 1_000_000n

// Without sequence numbers, a message that was received late looks like one with a wrong clock.
const NEED_NUMBERS: ReadonlySet<FaultKind> = new Set(['dropped', 'delayed', 'receive time'])

export function possibleFaults(source: LobSource): FaultKind[] {
  return FAULT_KINDS.filter((kind) => source === 'kalshi' || !NEED_NUMBERS.has(kind))
}

export function withFaults(recording: Recording, kind: FaultKind, random: SeededRandom): Faulty {
  let messages = [...recording.messages]
  const lateSpans: LateSpan[] = []
  const places = placesOf(messages, kind)
  const chosen = kind === 'none' || places.length === 0 ? [] : chooseSome(places, kind, random)
  for (const index of chosen) messages = applied(messages, index, kind, random, lateSpans)
  return { recording: { ...recording, messages }, lateSpans, count: chosen.length }
}

// From the last to the first, so that indexes stay right; apart, so that faults do not meet.
function chooseSome(places: readonly number[], kind: FaultKind, random: SeededRandom): number[] {
  const isClock = kind.startsWith('exchange time') || kind.startsWith('receive time')
  const count = isClock ? 1 : random.int(1, 5)
  const chosen = [...new Set(Array.from({ length: count }, () => random.pick(places)))].toSorted(
    (a, b) => b - a,
  )
  return chosen.filter((place, index) => index === 0 || chosen[index - 1]! - place > 40)
}

function placesOf(messages: readonly Message[], kind: FaultKind): number[] {
  const indexes = messages.keys()
  return [...indexes].filter((index) => {
    const message = messages[index]!
    if (message.other === 'disconnect') return false
    if (kind === 'doubled') return true
    if (kind.startsWith('exchange time'))
      return message.ts !== undefined && message.parts[0]?.kind === 'change'
    if (kind === 'receive time') return message.parts.length > 0
    if (kind === 'receive time of another') return message.parts.length === 0
    return isAmongChanges(messages, index, kind === 'swapped' ? 2 : 1)
  })
}

// Whether `count` messages from `index` on, the one before and the one after are changes of one connection, each later
// than the one before.
function isAmongChanges(messages: readonly Message[], index: number, count: number): boolean {
  const around = messages.slice(Math.max(index - 1, 0), index + count + 1)
  return (
    around.length === count + 2 &&
    around.every(
      ({ ts, parts, connection, sid, recvTs }, place) =>
        ts !== undefined &&
        parts[0]?.kind === 'change' &&
        connection === around[0]!.connection &&
        sid === around[0]!.sid &&
        (place === 0 || (ts > around[place - 1]!.ts! && recvTs > around[place - 1]!.recvTs)),
    )
  )
}

function applied(
  messages: readonly Message[],
  index: number,
  kind: FaultKind,
  random: SeededRandom,
  lateSpans: LateSpan[],
): Message[] {
  const message = messages[index]!
  switch (kind) {
    case 'dropped':
      return messages.toSpliced(index, 1)
    case 'doubled':
      return messages.toSpliced(laterPlace(messages, index, random), 0, message)
    case 'swapped':
      return messages.toSpliced(index, 2, messages[index + 1]!, message)
    case 'delayed':
      return delayed(messages, index, BigInt(random.int(200, 5_000)) * 1_000_000n)
    case 'exchange time':
    case 'exchange time ahead': {
      const isAhead = kind === 'exchange time ahead'
      const ts = (isAhead ? timeAhead : wrongTime)(messages, index, message.ts!, random)
      if (ts === undefined) return [...messages]
      for (const { market } of message.parts) {
        lateSpans.push({ market, from: message.ts!, to: message.recvTs })
      }
      return messages.with(index, { ...message, ts })
    }
    case 'receive time':
    case 'receive time of another': {
      const recvTs = wrongTime(messages, index, message.recvTs, random)
      return recvTs === undefined ? [...messages] : messages.with(index, { ...message, recvTs })
    }
    default:
      return [...messages]
  }
}

// The repeated line comes at once or a few lines later, within its connection.
function laterPlace(messages: readonly Message[], index: number, random: SeededRandom): number {
  const { connection } = messages[index]!
  let place = index + 1
  for (let steps = random.pick([0, 0, 1, 5, 20]); steps > 0; steps--) {
    const next = messages[place]
    if (next === undefined || next.connection !== connection || next.other === 'disconnect') break
    place++
  }
  return place
}

// The message and those behind it arrive late, until the line is free again. Messages that carry no time of the exchange
// stay where they are: nothing but their arrival says when they were.
function delayed(messages: readonly Message[], index: number, byNs: bigint): Message[] {
  const result = [...messages]
  const arrival = messages[index]!.recvTs + byNs
  for (let place = index; place < result.length; place++) {
    const message = result[place]!
    if (message.ts === undefined || message.parts[0]?.kind === 'book' || message.recvTs >= arrival) break
    result[place] = { ...message, recvTs: arrival }
  }
  const next = result.findIndex((message, place) => place > index && message.recvTs < arrival)
  return next === -1 ? result : [...messages]
}

// `undefined` where no wrong time would be contradicted by a neighbour.
function wrongTime(
  messages: readonly Message[],
  index: number,
  ts: bigint,
  random: SeededRandom,
): bigint | undefined {
  const { connection } = messages[index]!
  const [before, after] = [messages[index - 1], messages[index + 1]].map((message) =>
    message?.connection === connection && message.other !== 'disconnect' ? message.recvTs : undefined,
  )
  // Two recorders do not state the same wrong instant.
  const candidates = [IN_2099 + (ts % HOUR_NS), ts + HOUR_NS, ts - HOUR_NS, ts + 24n * HOUR_NS].filter(
    (wrong) => (wrong > ts ? after !== undefined && after < wrong : before !== undefined && before > wrong),
  )
  return candidates.length === 0 ? undefined : random.pick(candidates)
}

/** Ahead by less than clocks may differ. `undefined` where no two messages behind it would happen before it. */
function timeAhead(
  messages: readonly Message[],
  index: number,
  ts: bigint,
  random: SeededRandom,
): bigint | undefined {
  const { connection } = messages[index]!
  const wrong = ts + BigInt(random.int(6_000, 119_000)) * 1_000_000n
  const behind = messages
    .slice(index + 1)
    .filter((message) => message.connection === connection && message.ts !== undefined)
  return behind.length >= 2 && behind[1]!.ts! < wrong - AHEAD_TOLD_NS ? wrong : undefined
}
