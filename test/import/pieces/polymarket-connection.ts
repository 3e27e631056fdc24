// One Polymarket connection: the books of all its tokens in one array, then price changes with absolute sizes, now and then
// a book again, and a heartbeat every ten seconds. There are no numbers.

import { quietInstants } from './kalshi-connection.ts'
import type { ConnectionPlan } from './connection-plan.ts'
import type { Message, Part } from './recorded-frames.ts'
import type { SeededRandom } from './seeded-random.ts'
import { NS_PER_S } from './true-world.ts'
import type { TrueWorld } from './true-world.ts'

const HEARTBEAT_NS = 10n * NS_PER_S

interface Sent {
  readonly at: bigint
  readonly ts: bigint | undefined
  readonly parts: readonly Part[]
  readonly isArray?: boolean
}

export function recordPolymarket(world: TrueWorld, plan: ConnectionPlan, random: SeededRandom): Message[] {
  const { connection, latency } = plan
  const sent = sentMessages(world, plan, random).toSorted((a, b) =>
    a.at === b.at ? 0 : a.at < b.at ? -1 : 1,
  )
  let recvTs = 0n
  return sent.map(({ at, ts, parts, isArray }) => {
    const arrives = at + latency()
    recvTs = arrives > recvTs ? arrives : recvTs + BigInt(random.pick([0, 0, 40_000]))
    return {
      connection,
      recvTs,
      ts,
      sid: undefined,
      seq: undefined,
      parts,
      ...(parts.length === 0 ? { other: 'PONG' as const } : {}),
      ...(isArray === undefined ? {} : { isArray }),
    }
  })
}

function sentMessages(world: TrueWorld, plan: ConnectionPlan, random: SeededRandom): Sent[] {
  const { from, to, markets, features } = plan
  const book = (market: number, at: bigint): Part => ({
    kind: 'book',
    market,
    levels: world.bookAt(market, at),
    changedTs: lastChangeTs(world, market, at),
  })
  const sent: Sent[] = [
    {
      at: from,
      ts: undefined,
      parts: markets.map((market) => book(market, from)),
      isArray: true,
    },
  ]
  const followed = new Set(markets)
  // One message touches both tokens of a condition.
  const partsOf = new Map<string, { readonly ts: bigint; readonly parts: Part[] }>()
  for (const { ts, market, ...level } of world.changes) {
    if (ts <= from || ts > to || !followed.has(market)) continue
    const key = `${ts} ${world.markets[market]!.series}`
    const group = partsOf.get(key) ?? { ts, parts: [] }
    partsOf.set(key, group)
    group.parts.push({ kind: 'change', market, ...level })
  }
  for (const { ts, parts } of partsOf.values()) sent.push({ at: ts, ts, parts })
  for (let at = from + HEARTBEAT_NS; at < to; at += HEARTBEAT_NS) {
    const quiet = world.quietAfter(at)
    if (quiet < to) sent.push({ at: quiet, ts: undefined, parts: [] })
  }
  if (features.hasResnapshots) {
    for (const at of quietInstants(world, plan, random)) {
      const market = random.pick(markets)
      sent.push({ at, ts: lastChangeTs(world, market, at), parts: [book(market, at)] })
    }
  }
  return sent
}

// A book states when it changed last, to the millisecond.
function lastChangeTs(world: TrueWorld, market: number, at: bigint): bigint {
  const ts = world.changes.findLast((change) => change.market === market && change.ts <= at)?.ts ?? world.from
  return ts - (ts % 1_000_000n)
}
