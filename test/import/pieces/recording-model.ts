// Recorders of the true world. Each has connections one after another (ended by an outage, sometimes with the recorder's
// own mark), each connection its subscriptions. A connection begins and ends at quiet instants, so that nothing is under
// way when it is cut: what it has received is then all that happened until its last message, and the truth needs no
// tolerance. Only with `isBusy` it begins within a burst: changes made before the first book arrives come after it.

import type { CaseFeatures } from './connection-plan.ts'
import type { LineForm, Message } from './recorded-frames.ts'
import { recordKalshi } from './kalshi-connection.ts'
import { recordPolymarket } from './polymarket-connection.ts'
import { SeededRandom } from './seeded-random.ts'
import { NS_PER_S, makeWorld } from './true-world.ts'
import type { TrueWorld } from './true-world.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'

export interface Recording {
  readonly messages: readonly Message[]
  readonly form: LineForm
}

/** What a case has in it, for the tables of failures. */
export interface RecordedWorld {
  readonly world: TrueWorld
  readonly recordings: readonly Recording[]
  readonly features: CaseFeatures
}

/** The recordings of a seed. `isPlain`: without anything but books and changes in one subscription. */
export function recordedWorld(source: LobSource, seed: number, isPlain = false): RecordedWorld {
  const random = new SeededRandom(seed)
  const world = makeWorld(source, { changes: random.int(60, 400), dates: random.int(1, 4) }, random)
  const features: CaseFeatures = {
    recorders: random.pick([1, 1, 2, 2, 3]),
    sids: !isPlain && source === 'kalshi' && random.chance(0.2) ? 2 : 1,
    hasMarks: !isPlain && random.chance(0.3),
    hasTrades: !isPlain && source === 'kalshi' && random.chance(0.2),
    hasResnapshots: random.chance(0.4),
    isBusy: !isPlain && random.chance(0.3),
  }
  // Without sequence numbers, pieces of two recorders of different markets could not be distinguished.
  const common = random.someOf(world.markets.map((_, market) => market))
  const recordings = Array.from({ length: features.recorders }, (_, recorder) => {
    const markets =
      source === 'polymarket' ? common : random.someOf(world.markets.map((_unused, market) => market))
    return record(world, markets, recorder, features, random)
  })
  // One that died before anything came has left nothing.
  const kept = withoutAliases(recordings.filter(({ messages }) => messages.length > 0))
  return { world, recordings: kept, features: { ...features, recorders: kept.length } }
}

function record(
  world: TrueWorld,
  markets: readonly number[],
  recorder: number,
  features: CaseFeatures,
  random: SeededRandom,
): Recording {
  const length = world.to - world.from
  const start = recorder === 0 ? world.from : random.instant(world.from, world.to - length / 4n)
  const earliestDeath = recorder === 0 ? start + length / 2n : start
  const death = random.chance(0.6) ? world.to : random.instant(earliestDeath, world.to)
  const baseLatency = random.int(2, 25)
  const latency = (): bigint => BigInt(baseLatency * 1_000_000 + random.int(0, 8_000_000))
  const mean = Number(length) / random.int(1, 5)
  // The same subscriptions get the same numbers in every connection.
  const firstSid = random.int(1, 2)
  const messages: Message[] = []
  let from = start
  for (let connection = 0; connection < 12; connection++) {
    const begins = features.isBusy ? aftermath(world, from, random) : world.quietAfter(from)
    const drawn = begins + BigInt(Math.floor(mean * (0.1 + random.next() * 1.5))) + NS_PER_S
    const ends = world.quietAfter(drawn < death ? drawn : death)
    if (begins >= death || ends > world.to) break
    const plan = { connection, from: begins, to: ends, markets, latency, firstSid, features }
    const heard =
      world.source === 'kalshi' ? recordKalshi(world, plan, random) : recordPolymarket(world, plan, random)
    messages.push(...heard)
    if (features.hasMarks && random.chance(0.5)) messages.push(mark(heard, ends))
    from = ends + outage(random)
  }
  const isInteger = world.isWhole && world.source === 'kalshi' && random.chance(0.5)
  return { messages, form: { isInteger, wrapper: random.pick(['number', 'text', 'injected']) } }
}

// Within two milliseconds after some change: others may follow at once.
function aftermath(world: TrueWorld, from: bigint, random: SeededRandom): bigint {
  const next = world.changes.find((change) => change.ts > from)
  const isFar = next === undefined || next.ts > from + 3600n * NS_PER_S
  return isFar ? world.quietAfter(from) : next.ts + BigInt(random.int(0, 2_000_000))
}

// From a moment, in which the books stay the same, to hours.
function outage(random: SeededRandom): bigint {
  return random.chance(0.3)
    ? BigInt(random.int(1_200_000_000, 3_000_000_000))
    : BigInt(random.int(3, 7_000)) * NS_PER_S
}

// The recorder saw the connection end; nothing was under way.
function mark(heard: readonly Message[], ends: bigint): Message {
  const { connection, recvTs } = heard.at(-1)!
  return {
    connection,
    recvTs: (recvTs > ends ? recvTs : ends) + 1_000_000n,
    ts: undefined,
    sid: undefined,
    seq: undefined,
    parts: [],
    other: 'disconnect',
  }
}

// If a file is cut where two connections with the same sid are both at number n, their numbers cannot distinguish them. Then one
// of the recorders has other sids.
function withoutAliases(recordings: readonly Recording[]): Recording[] {
  const result: Recording[] = []
  for (const [index, recording] of recordings.entries()) {
    const isAlias = result.some((earlier) => haveAliases(earlier.messages, recording.messages))
    const moved = recording.messages.map((message) =>
      message.sid === undefined ? message : { ...message, sid: message.sid + 10 * index },
    )
    result.push(isAlias ? { ...recording, messages: moved } : recording)
  }
  return result
}

function haveAliases(a: readonly Message[], b: readonly Message[]): boolean {
  const spans = numberSpans(a)
  return numberSpans(b).some(({ key, from, to }) =>
    spans.some((span) => span.key === key && span.from < to && from < span.to),
  )
}

interface NumberSpan {
  /** sid and number. */
  readonly key: string
  readonly from: bigint
  readonly to: bigint
}

// How long each number was a subscription's last; the last one of a connection for an hour more.
function numberSpans(messages: readonly Message[]): NumberSpan[] {
  const spans: NumberSpan[] = []
  const lastOf = new Map<string, Message>()
  const close = (message: Message, to: bigint): void => {
    spans.push({ key: `${message.sid} ${message.seq}`, from: message.recvTs, to })
  }
  for (const message of messages) {
    if (message.sid === undefined || message.seq === undefined) continue
    const key = `${message.connection} ${message.sid}`
    const last = lastOf.get(key)
    if (last !== undefined) close(last, message.recvTs)
    lastOf.set(key, message)
  }
  for (const last of lastOf.values()) close(last, last.recvTs + 3600n * NS_PER_S)
  return spans
}
