// The summary of a date's chains that the neighbouring dates need. A chain continues after midnight if a chain of the next date
// follows it.

import { groupedBy } from '../../shared/grouped-by.ts'
import { NS_PER_MS, later } from '../../shared/utc-date.ts'
import { TimeEnds } from './chain.ts'
import type { Chain } from './chain.ts'
import { CONNECTION_SID, PAUSE_NS_MAX } from './own-connections.ts'
import { predecessorOf } from './numbered-chains.ts'
import { silentPredecessorOf } from './unnumbered-chains.ts'

/** Keys at the end of a chain that are compared with the first key of the next date. */
const KEYS_MAX = 64

/** What a fold state has of a chain. States of earlier versions have no `ends`. */
export type ChainOutline = Omit<Outline, 'ends'> & Partial<Pick<Outline, 'ends'>>

type Outline = ReturnType<typeof outlineOf>

/** Plain data for JSON. Times are decimal text, ns. */
export function outlineOf(chain: Chain, connection: number) {
  const { firstTs, firstRecvTs, lastTs, lastRecvTs } = chain.ends
  return {
    id: chain.id,
    connection,
    sid: chain.sid,
    isPartial: chain.isPartial,
    isBegun: chain.isBegun,
    isEnded: chain.isEnded || chain.endCause === 'sequence gap',
    endsBefore: chain.endsBefore === undefined ? null : String(chain.endsBefore),
    beginsAfter: chain.beginsAfter === undefined ? null : String(chain.beginsAfter),
    isTurned: chain.isTurned,
    firstSeq: chain.firstSeq,
    firstKey: chain.firstKey,
    firstAt: String(chain.firstAt ?? 0n),
    lastSeq: chain.lastSeq,
    lastKeys: chain.latestKeys(KEYS_MAX),
    lastAt: String(chain.lastAt),
    silence: String(chain.silence),
    // Of a chain without sequence numbers. A recorder's connection has only receive times.
    ends: [firstTs, firstRecvTs, lastTs, lastRecvTs].map((ts) => (ts === undefined ? null : String(ts))),
    name: chain.name,
    markets: [...chain.markets],
  }
}

/**
 * Links chains of `date` to the chains of the date before that they continue. Each chain is continued at most once. A chain of
 * `date` whose last message is before midnight (its lines stand behind later ones) links nothing.
 */
export function linkDates(
  before: readonly ChainOutline[],
  outlines: readonly ChainOutline[],
  date: string,
): Map<number, number> {
  const midnight = BigInt(Date.parse(`${date}T00:00:00Z`)) * NS_PER_MS
  const after = outlines.filter(({ lastAt }) => BigInt(lastAt) >= midnight)
  const links = linkNamed(before, after)
  const tails = new Map(
    before
      .filter(({ isEnded, name }) => !isEnded && name === undefined)
      .map((outline) => [outline.id, comparable(outline)]),
  )
  const unnamed = after.filter(({ name }) => name === undefined)
  for (const outline of unnamed.toSorted(
    (a, b) => Number(BigInt(a.firstAt) - BigInt(b.firstAt)) || a.id - b.id,
  )) {
    if (outline.isBegun && outline.sid === null) continue
    const own = [...tails.values()].filter(({ sid }) => sid === outline.sid)
    // Its lines are known already: another file placed them before midnight.
    if (own.some(({ lastKeys }) => lastKeys.includes(outline.lastKeys.at(-1)!))) continue
    const head = comparable(outline)
    const found =
      own.find(({ lastKeys }) => lastKeys.includes(outline.firstKey)) ??
      (outline.sid === null ? silentPredecessorOf(head, own, []) : predecessorOf(head, own))
    if (found === undefined) continue
    tails.delete(found.id)
    links.set(outline.id, found.id)
  }
  return links
}

/** How the chains of a date continue in the next one, by their numbers. */
export interface Continuation {
  /** Linked chains, and the other last chains of their connections. */
  readonly continued: readonly number[]
  /** Numbers are missing after them: their connection continues with another chain of their subscription. */
  readonly broken: ReadonlySet<number>
}

/** How the chains of `before` continue in `date`, which has the chains `after`. */
export function continuationOf(
  before: readonly ChainOutline[],
  after: readonly ChainOutline[],
  date: string,
): Continuation {
  const links = linkDates(before, after, date)
  const linked = new Set(links.values())
  const broken = brokenOf(before, after, links)
  const connections = new Set(before.filter(({ id }) => linked.has(id)).map(({ connection }) => connection))
  const lastOf = new Map<string, bigint>()
  for (const outline of before)
    lastOf.set(subscriptionOf(outline), later(BigInt(outline.lastAt), lastOf.get(subscriptionOf(outline))))
  const continued = before.filter((outline) => {
    const { id, isEnded, connection, lastAt } = outline
    const isLast = BigInt(lastAt) === lastOf.get(subscriptionOf(outline)) && !broken.has(id)
    return linked.has(id) || (!isEnded && isLast && connections.has(connection))
  })
  return { continued: continued.map(({ id }) => id), broken }
}

function brokenOf(
  before: readonly ChainOutline[],
  after: readonly ChainOutline[],
  links: ReadonlyMap<number, number>,
): Set<number> {
  const connectionOf = new Map(before.map(({ id, connection }) => [id, connection]))
  const continued = new Map<number, number | undefined>()
  for (const { id, connection } of after)
    if (links.has(id)) continued.set(connection, connectionOf.get(links.get(id)!))
  // Without a line in `after`, a chain only continues its connection.
  const others = new Set(
    after
      .filter(({ id, name, lastKeys }) => name === undefined && lastKeys.length > 0 && !links.has(id))
      .map(({ connection, sid }) => `${continued.get(connection)} ${sid}`),
  )
  const linked = new Set(links.values())
  return new Set(
    before
      .filter((outline) => !linked.has(outline.id) && others.has(subscriptionOf(outline)))
      .map(({ id }) => id),
  )
}

function subscriptionOf({ connection, sid }: ChainOutline): string {
  return `${connection} ${sid}`
}

/** A recorder's connection continues with its next line, and a subscription in it with its next sequence number. */
function linkNamed(before: readonly ChainOutline[], after: readonly ChainOutline[]): Map<number, number> {
  const links = new Map<number, number>()
  const open = before.filter(({ name, isEnded }) => name !== undefined && !isEnded)
  const byPlace = groupedBy(open, ({ name, sid }) => `${name} ${sid}`)
  const connections = new Set<string>()
  const link = (own: ChainOutline, isNext: (tail: ChainOutline) => boolean): boolean => {
    const tails = byPlace.get(`${own.name} ${own.sid}`) ?? []
    const found = tails.findLast((tail) => isNext(tail) && ![...links.values()].includes(tail.id))
    if (found !== undefined) links.set(own.id, found.id)
    return found !== undefined
  }
  for (const own of after) {
    if (own.name === undefined || own.sid !== CONNECTION_SID) continue
    const isNext = (tail: ChainOutline): boolean =>
      own.firstSeq === tail.lastSeq + 1 && pauseBetween(tail, own) <= PAUSE_NS_MAX
    if (link(own, isNext)) connections.add(own.name)
  }
  for (const own of after) {
    if (own.name === undefined || own.sid === CONNECTION_SID || !connections.has(own.name) || own.isBegun)
      continue
    link(own, ({ lastSeq }) => own.sid === null || own.firstSeq === lastSeq + 1)
  }
  return links
}

/** By receive times, because the recorder's clock may be off. States of earlier versions have no receive times. */
function pauseBetween(tail: ChainOutline, head: ChainOutline): bigint {
  const [last, first] = [endsOf(tail).lastRecvTs, endsOf(head).firstRecvTs]
  return last === undefined || first === undefined ? BigInt(head.firstAt) - BigInt(tail.lastAt) : first - last
}

function endsOf({ ends: texts = [] }: ChainOutline): TimeEnds {
  const [firstTs, firstRecvTs, lastTs, lastRecvTs] = texts.map(timeOf)
  const ends = new TimeEnds()
  ends.add(firstTs, firstRecvTs)
  ends.add(lastTs, lastRecvTs)
  return ends
}

function timeOf(text: string | null): bigint | undefined {
  return text === null ? undefined : BigInt(text)
}

/** An outline as the ends of chains are compared. */
function comparable(outline: ChainOutline) {
  const { firstSeq, firstAt, lastAt, isBegun, beginsAfter, endsBefore, silence, markets } = outline
  return {
    ...outline,
    firstSeq: isBegun ? 1 : firstSeq,
    firstAt: BigInt(firstAt),
    firstRecvTs: undefined,
    beginsAfter: timeOf(beginsAfter),
    lastAt: BigInt(lastAt),
    lastRecvTs: undefined,
    endsBefore: timeOf(endsBefore),
    silence: BigInt(silence),
    ends: endsOf(outline),
    markets: new Set(markets),
  }
}
