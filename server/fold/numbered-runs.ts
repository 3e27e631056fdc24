// Runs: consecutive numbers of one subscription in a piece. Runs that share a message are one.

import type { FeedMessage } from '../feed/feed-message.ts'
import { Subscriptions } from './subscriptions.ts'
import type { Connections } from './chain.ts'
import type { FoldTally } from './fold-tally.ts'
import type { Piece } from './piece.ts'

export interface NumberedMessage {
  readonly seq: number
  readonly key: number
  readonly recvTs: bigint | undefined
  readonly message: FeedMessage
}

/** A message without a number of its own, and the number after which it came. */
export interface AsideMessage {
  readonly afterSeq: number
  readonly recvTs: bigint | undefined
  readonly message: FeedMessage
}

export interface Run {
  readonly sid: number
  readonly isPartial: boolean
  /** By their place after the first number; of a partial run all that there are. */
  messages: NumberedMessage[]
  asides: AsideMessage[]
  connection: number
  /** Key of the line at the end of the piece before, behind which it comes. */
  readonly afterKey: number | undefined
  /** A recorded answer shows that the subscription begins with it. */
  isBegun: boolean
  isTurned: boolean | null
  /** The connection closed after it. */
  isEnded: boolean
  /** Where numbers are missing behind it in its piece: when that goes on. */
  endsBefore: bigint | undefined
  /** Where numbers are missing before it in its piece: when that stopped. */
  readonly beginsAfter: bigint | undefined
  readonly markets: Set<string>
}

/** What is open of a piece while it is read. */
interface OpenPiece {
  connection: number
  /** It may go on from the piece before. */
  isFirst: boolean
  runs: Map<number, Run>
}

/** Messages that a piece holds besides its runs. */
export interface PieceRuns {
  readonly runs: readonly Run[]
  readonly closes: readonly LoneClose[]
}

/** A connection closed of which the piece has no message before, but for the line that it shares with the piece before. */
export interface LoneClose {
  readonly recvTs: bigint
  readonly afterKey: number | undefined
}

export function readRuns(piece: Piece, connections: Connections, tally: FoldTally): PieceRuns {
  const runs: Run[] = []
  const closes: LoneClose[] = []
  let afterKey: number | undefined
  const seen = new Set<number>()
  const subscriptions = new Subscriptions(piece.useYesPrice)
  const isPartial = piece.sequence === 'per-market'
  let open: OpenPiece = { connection: connections.add(), isFirst: true, runs: new Map() }
  const startConnection = (isEnded: boolean): void => {
    if (isEnded) for (const run of open.runs.values()) run.isEnded = true
    open = { connection: connections.add(), isFirst: false, runs: new Map() }
  }
  const aside = (run: Run, message: FeedMessage, recvTs: bigint | undefined): void => {
    run.asides.push({ afterSeq: run.messages.at(-1)!.seq, recvTs, message })
  }
  const close = (recvTs: bigint | undefined): void => {
    if (open.runs.size === 0 && recvTs !== undefined) closes.push({ recvTs, afterKey })
    startConnection(true)
    subscriptions.clear()
  }
  for (const { key, recvTs, messages, isOverlap, isSkipped } of piece.lines) {
    // Numbers do not tell what it was where those of other markets are missing too.
    if (isSkipped === true && isPartial) {
      startConnection(true)
    }
    if (isOverlap === true) {
      afterKey = key
      continue
    }
    for (const message of messages) {
      const { sid, seq, body } = message
      if (body.kind === 'disconnect') {
        close(recvTs)
        continue
      }
      if (body.kind === 'subscribe') {
        subscriptions.rememberCommand(body.id, body.useYesPrice)
        continue
      }
      if (body.kind === 'subscribed' && body.subscription !== undefined) {
        const begins = body.subscription
        // Beside subscriptions that went on from before the piece it is another connection's.
        if (open.runs.has(begins) || (!isPartial && hasOlderRuns(open))) startConnection(false)
        subscriptions.begin(body.id, begins)
      }
      if (sid === undefined || seq === undefined) {
        for (const run of open.runs.values())
          if (sid === undefined || run.sid === sid) aside(run, message, recvTs)
        continue
      }
      if (body.kind === 'finished')
        for (const run of open.runs.values()) if (run.sid !== sid) aside(run, message, recvTs)
      const identity = messages.length === 1 ? key : key + seq
      if (seen.has(identity)) {
        tally.repeats++
        continue
      }
      seen.add(identity)
      let run = open.runs.get(sid)
      const last = run?.messages.at(-1)!.seq
      const isCut = last !== undefined && seq > last + 1 && !isPartial
      const beginsAfter = isCut ? timeOf(run!.messages.at(-1)!) : undefined
      if (last !== undefined && seq <= last) {
        startConnection(false)
        run = undefined
      } else if (run === undefined && seq === 1 && !isPartial && hasOlderRuns(open)) startConnection(false)
      else if (run === undefined && body.kind === 'book' && isStatedBeside(open, sid, body.marketId))
        startConnection(false)
      if (run === undefined || isCut) {
        if (run !== undefined) run.endsBefore = message.ts ?? recvTs
        const { isBegun, isTurned } = subscriptions.take(sid)
        run = {
          sid,
          isPartial,
          messages: [],
          asides: [],
          connection: open.connection,
          afterKey: open.isFirst ? afterKey : undefined,
          isBegun,
          isTurned,
          isEnded: false,
          endsBefore: undefined,
          beginsAfter,
          markets: new Set(),
        }
        runs.push(run)
        open.runs.set(sid, run)
      }
      run.messages.push({ seq, key: identity, recvTs, message })
      if (body.kind === 'book') run.markets.add(body.marketId)
      else if (body.kind === 'changes') for (const { marketId } of body.changes) run.markets.add(marketId)
      if (body.kind === 'unsubscribed') open.runs.delete(sid)
    }
  }
  return { runs, closes }
}

function timeOf({ message: { ts }, recvTs }: NumberedMessage): bigint | undefined {
  return ts ?? recvTs
}

/** Where markets were left out, most subscriptions seem to have begun before the piece. */
function hasOlderRuns({ runs }: OpenPiece): boolean {
  return [...runs.values()].some(({ messages }) => messages[0]!.seq !== 1)
}

/** No connection has a market in two subscriptions. */
function isStatedBeside({ runs }: OpenPiece, sid: number, marketId: string): boolean {
  return [...runs.values()].some((run) => run.sid !== sid && run.markets.has(marketId))
}

/** The runs, those that share a message put together. */
export function joinRuns(runs: readonly Run[], connections: Connections, tally: FoldTally): Run[] {
  const joined: Run[] = []
  const bySid = new Map<number, Run[]>()
  for (const run of runs) {
    const list = bySid.get(run.sid)
    if (list === undefined) bySid.set(run.sid, [run])
    else list.push(run)
  }
  for (const list of bySid.values()) joined.push(...joinOfSid(list, connections))
  for (const { messages } of runs) tally.repeats += messages.length
  for (const { messages } of joined) tally.repeats -= messages.length
  return joined
}

function joinOfSid(runs: readonly Run[], connections: Connections): Run[] {
  const ownerOf = new Map<number, Run>()
  const into = new Map<Run, Run>()
  const rootOf = (run: Run): Run => {
    let root = run
    for (let next = into.get(root); next !== undefined; next = into.get(root)) root = next
    return root
  }
  const parts = new Map<Run, Run[]>(runs.map((run) => [run, [run]]))
  if (runs.length > 1) {
    for (const run of runs) {
      for (const { key } of run.messages) {
        const owner = ownerOf.get(key)
        if (owner === undefined) {
          ownerOf.set(key, run)
          continue
        }
        const [a, b] = [rootOf(owner), rootOf(run)]
        if (a === b) continue
        into.set(b, a)
        parts.get(a)!.push(...parts.get(b)!)
        parts.delete(b)
      }
    }
  }
  return [...parts].map(([root, list]) => (list.length === 1 ? root : mergeRuns(list, connections)))
}

function mergeRuns(parts: readonly Run[], connections: Connections): Run {
  const bySeq = new Map<number, NumberedMessage>()
  for (const { messages } of parts) {
    for (const message of messages) if (!bySeq.has(message.seq)) bySeq.set(message.seq, message)
  }
  const asides = new Map<string, AsideMessage>()
  for (const part of parts) {
    for (const one of part.asides) {
      const key = `${one.afterSeq} ${one.recvTs} ${one.message.body.kind}`
      if (!asides.has(key)) asides.set(key, one)
    }
  }
  const [first] = parts as [Run]
  const messages = [...bySeq.values()].toSorted((a, b) => a.seq - b.seq)
  const begins = parts.filter((part) => part.messages[0]!.seq === messages[0]!.seq)
  const last = parts.filter((part) => part.messages.at(-1)!.seq === messages.at(-1)!.seq)
  return {
    ...first,
    messages,
    endsBefore: last.every(({ endsBefore }) => endsBefore !== undefined) ? last[0]!.endsBefore : undefined,
    beginsAfter: begins.every(({ beginsAfter }) => beginsAfter !== undefined)
      ? begins[0]!.beginsAfter
      : undefined,
    asides: [...asides.values()].toSorted((a, b) => a.afterSeq - b.afterSeq),
    afterKey: parts.find(({ afterKey }) => afterKey !== undefined)?.afterKey,
    connection: parts.map(({ connection }) => connection).reduce((a, b) => connections.join(a, b)),
    isBegun: parts.some(({ isBegun }) => isBegun),
    isTurned: parts.map(({ isTurned }) => isTurned).find((flag) => flag !== null) ?? null,
    isEnded: parts.some(({ isEnded }) => isEnded),
    markets: new Set(parts.flatMap(({ markets }) => [...markets])),
  }
}
