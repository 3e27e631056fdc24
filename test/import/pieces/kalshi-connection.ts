// One Kalshi connection: snapshots at the head of each subscription, then its deltas in true order, all numbered from 1.

import type { ConnectionPlan } from './connection-plan.ts'
import type { Message, Part } from './recorded-frames.ts'
import type { SeededRandom } from './seeded-random.ts'
import { NS_PER_S } from './true-world.ts'
import type { TrueWorld } from './true-world.ts'

/** What the exchange sends at an instant; the receive time follows. */
interface Sent {
  readonly at: bigint
  readonly sid: number
  readonly part?: Part
  readonly ts: bigint | undefined
  readonly other?: 'trade' | 'subscribed'
  readonly about?: number
}

export function recordKalshi(world: TrueWorld, plan: ConnectionPlan, random: SeededRandom): Message[] {
  const { connection, latency } = plan
  const sent = sentMessages(world, plan, random).toSorted((a, b) =>
    a.at === b.at ? 0 : a.at < b.at ? -1 : 1,
  )
  const lastSeq = new Map<number, number>()
  let recvTs = 0n
  return sent.map(({ at, sid, part, ts, other, about }) => {
    const arrives = at + latency()
    // Frames of one read have one receive time; none overtakes another.
    recvTs = arrives > recvTs ? arrives : recvTs + BigInt(random.pick([0, 0, 40_000]))
    const isNumbered = other !== 'subscribed'
    const seq = isNumbered ? (lastSeq.get(sid) ?? 0) + 1 : undefined
    if (seq !== undefined) lastSeq.set(sid, seq)
    return {
      connection,
      recvTs,
      ts,
      sid,
      seq,
      parts: part === undefined ? [] : [part],
      ...(other === undefined ? {} : { other }),
      ...(about === undefined ? {} : { about }),
    }
  })
}

function sentMessages(world: TrueWorld, plan: ConnectionPlan, random: SeededRandom): Sent[] {
  const { from, to, markets, firstSid, features } = plan
  const sidOf = new Map(markets.map((market, index) => [market, firstSid + (index % features.sids)]))
  const firstBookAt = new Map<number, bigint>()
  const sent: Sent[] = []
  const snapshot = (market: number, at: bigint): void => {
    const part: Part = { kind: 'book', market, levels: world.bookAt(market, at) }
    sent.push({ at, sid: sidOf.get(market)!, part, ts: undefined })
  }
  let at = from
  for (const sid of new Set(sidOf.values())) {
    if (features.hasMarks) sent.push({ at, sid, ts: undefined, other: 'subscribed' })
    for (const market of markets.filter((one) => sidOf.get(one) === sid)) {
      at += BigInt(random.int(0, 3_000_000))
      firstBookAt.set(market, at)
      snapshot(market, at)
    }
  }
  for (const { ts, market, side, price, qty, delta } of world.changes) {
    const isSeen = ts > (firstBookAt.get(market) ?? to) && ts <= to
    if (!isSeen || delta === 0n) continue
    sent.push({
      at: ts,
      sid: sidOf.get(market)!,
      part: { kind: 'change', market, side, price, qty, delta },
      ts,
    })
  }
  if (features.hasResnapshots) {
    for (const instant of quietInstants(world, plan, random)) snapshot(random.pick(markets), instant)
  }
  if (features.hasTrades) {
    for (const instant of quietInstants(world, plan, random)) {
      const ts = instant - (instant % 1_000_000n)
      sent.push({ at: ts, sid: firstSid + 5, ts, other: 'trade', about: random.pick(markets) })
    }
  }
  return sent
}

/** Up to three instants of the connection around which nothing else happens. */
export function quietInstants(
  world: TrueWorld,
  { from, to }: ConnectionPlan,
  random: SeededRandom,
): bigint[] {
  const instants: bigint[] = []
  for (let count = random.int(0, 3); count > 0; count--) {
    const instant = world.quietAfter(random.instant(from + NS_PER_S, to))
    if (instant < to - NS_PER_S / 10n) instants.push(instant)
  }
  return instants
}
