// Recordings cut into files in any way, and files put into imports in any way. A file keeps its recorder's order; what its
// name says means nothing. Without sequence numbers, a cut may separate a recorder's disconnect mark from the line before it. With
// numbers it does not: after more than ten quiet minutes, nothing would show which connection the mark ends. A cut never separates
// messages with one receive time, because nothing would order them between files.

import { gzipSync } from 'node:zlib'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { lineOf } from './recorded-frames.ts'
import type { Message } from './recorded-frames.ts'
import type { CaseFeatures } from './connection-plan.ts'
import type { Recording } from './recording-model.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { TrueWorld } from './true-world.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'
import { NS_PER_HOUR } from '../../../shared/utc-date.ts'

export const CUT_KINDS = ['whole', 'midnight', 'hourly', 'random', 'overlap', 'connection', 'market'] as const
export type CutKind = (typeof CUT_KINDS)[number]

export const GROUPINGS = ['one', 'two', 'each'] as const
/** How many imports: one of everything, two, or one for each file. */
export type Grouping = (typeof GROUPINGS)[number]

export interface Cut {
  readonly kind: CutKind
  /** Whether some of the files are given twice, under another name. */
  readonly isDoubled: boolean
  readonly grouping: Grouping
  /** The files of each import, as the messages in them. */
  readonly imports: readonly (readonly FilePiece[])[]
}

export interface FilePiece {
  readonly recording: Recording
  readonly messages: readonly Message[]
}

/** The cuts that are fair for what a case has in it. */
export function possibleCuts(source: LobSource, features: CaseFeatures): CutKind[] {
  // A file of one market has neither the lines that name none nor other subscriptions beside it, so nothing in it says
  // which of two recorders' connections they belong to. Polymarket has no numbers that would join such files.
  const hasShared = features.hasMarks || features.hasTrades || features.sids > 1
  // Where they can be, they are as frequent as all others.
  return source === 'kalshi' && !hasShared
    ? [...CUT_KINDS, ...CUT_KINDS.slice(1).map(() => 'market' as const)]
    : CUT_KINDS.filter((kind) => kind !== 'market')
}

/**
 * Whether files say what subscriptions came through one connection: each stands in some file beside another of them, all
 * of them hang together so, and where one begins beside others that went on from before the file, those go on after it:
 * else it looks like another connection's.
 */
export function isTold(recordings: readonly Recording[], { imports }: Cut): boolean {
  const files = imports.flat()
  return recordings.every((recording) =>
    [...new Set(recording.messages.map(({ connection }) => connection))].every((connection) => {
      const groups: Set<number>[] = []
      for (const { messages } of files.filter((file) => file.recording === recording)) {
        const own = messages.filter((message) => message.connection === connection)
        if (looksLikeAnother(own)) return false
        const joined = new Set(own.flatMap(({ sid }) => (sid === undefined ? [] : [sid])))
        if (joined.size === 0) continue
        for (const group of groups.splice(0)) {
          if ([...group].some((sid) => joined.has(sid))) for (const sid of group) joined.add(sid)
          else groups.push(group)
        }
        groups.push(joined)
      }
      return groups.length <= 1
    }),
  )
}

/** Whether a subscription begins beside one that has no message afterwards. */
export function looksLikeAnother(messages: readonly Message[]): boolean {
  const numbered = messages.filter(({ sid }) => sid !== undefined)
  const begun = new Set(numbered.filter(({ seq }) => seq === 1).map(({ sid }) => sid))
  const last = numbered.findLastIndex(({ sid }) => !begun.has(sid))
  return last !== -1 && numbered.slice(last + 1).some(({ seq }) => seq === 1)
}

export function randomCut(
  world: TrueWorld,
  recordings: readonly Recording[],
  kind: CutKind,
  random: SeededRandom,
): Cut {
  const pieces = recordings.flatMap((recording) =>
    piecesOf(world, recording, kind, random).map((messages) => ({ recording, messages })),
  )
  const isDoubled = random.chance(0.3)
  const doubled = isDoubled ? [random.pick(pieces), random.pick(pieces)] : []
  const files = random.shuffled([...pieces, ...doubled])
  const grouping = random.pick(GROUPINGS)
  return { kind, isDoubled, grouping, imports: grouped(files, grouping, random) }
}

export function grouped(
  files: readonly FilePiece[],
  grouping: Grouping,
  random: SeededRandom,
): FilePiece[][] {
  if (grouping === 'one') return [[...files]]
  if (grouping === 'two') {
    const first = files.filter(() => random.chance(0.5))
    const second = files.filter((file) => !first.includes(file))
    return [first, second].filter((list) => list.length > 0)
  }
  // At most a dozen imports, so that a case stays short.
  const imports = Array.from({ length: Math.min(files.length, 12) }, (): FilePiece[] => [])
  for (const [index, file] of files.entries()) imports[index % imports.length]!.push(file)
  return imports
}

function piecesOf(
  world: TrueWorld,
  { messages }: Recording,
  kind: CutKind,
  random: SeededRandom,
): Message[][] {
  switch (kind) {
    case 'whole':
      return [[...messages]]
    case 'midnight':
      return atInstants(world, messages, boundaries(world, messages, 24n * NS_PER_HOUR))
    case 'hourly':
      return atInstants(world, messages, boundaries(world, messages, NS_PER_HOUR))
    case 'random':
      return atInstants(world, messages, randomInstants(world, messages, random))
    case 'overlap':
      return overlapping(world, atInstants(world, messages, randomInstants(world, messages, random)), random)
    case 'connection':
      return by(messages, (message) => message.connection)
    default:
      return by(messages, (message) => message.parts[0]?.market ?? message.about)
  }
}

function boundaries(world: TrueWorld, messages: readonly Message[], every: bigint): bigint[] {
  const [first, last] = [messages[0]!.recvTs, messages.at(-1)!.recvTs]
  const result: bigint[] = []
  for (let ts = (first / every + 1n) * every; ts <= last; ts += every) result.push(ts)
  return world.source === 'kalshi' ? result : result.filter((ts) => world.quietAfter(ts) === ts)
}

// Without numbers, a cut within a burst would separate messages that two recorders received in different orders.
function randomInstants(world: TrueWorld, messages: readonly Message[], random: SeededRandom): bigint[] {
  const [first, last] = [messages[0]!.recvTs, messages.at(-1)!.recvTs]
  const instants = Array.from({ length: random.int(1, 8) }, () =>
    random.chance(0.5) ? random.instant(first, last) : random.pick(messages).recvTs,
  )
  const chosen = world.source === 'kalshi' ? instants : instants.map((ts) => world.quietAfter(ts))
  // A mark may begin a file, which then does not show which connection it ends.
  const marks = messages.flatMap(({ other, recvTs }) => (other === 'disconnect' ? [recvTs] : []))
  const parted = world.source === 'kalshi' ? [] : marks.filter(() => random.chance(0.5))
  return [...BigInt64Array.from([...chosen, ...parted]).toSorted()]
}

/** Whether a file may begin with the message. */
function mayBegin({ source }: TrueWorld, { other }: Message): boolean {
  return other !== 'disconnect' || source !== 'kalshi'
}

// Pieces of the messages before, between and after the instants.
function atInstants(
  world: TrueWorld,
  messages: readonly Message[],
  instants: readonly bigint[],
): Message[][] {
  const pieces: Message[][] = [[]]
  let next = 0
  for (const message of messages) {
    const passed = instants.findLastIndex((ts) => ts <= message.recvTs) + 1
    if (passed > next && mayBegin(world, message)) {
      next = passed
      pieces.push([])
    }
    pieces.at(-1)!.push(message)
  }
  return pieces.filter((piece) => piece.length > 0)
}

// Each piece also has the end of the one before it.
function overlapping(world: TrueWorld, pieces: readonly Message[][], random: SeededRandom): Message[][] {
  return pieces.map((piece, index) => {
    const before = pieces[index - 1] ?? []
    const tail = before.slice(before.length - Math.min(before.length, random.int(0, 30)))
    const clean = tail[0] === undefined || mayBegin(world, tail[0]) ? tail : tail.slice(1)
    return [...clean, ...piece]
  })
}

function by(messages: readonly Message[], keyOf: (message: Message) => number | undefined): Message[][] {
  const pieces = new Map<number | undefined, Message[]>()
  for (const message of messages) {
    const key = keyOf(message)
    const piece = pieces.get(key) ?? []
    pieces.set(key, piece)
    piece.push(message)
  }
  return [...pieces.values()]
}

/** Writes files under names that say nothing, some of them gzip, and returns their paths in any order. */
export async function writePieces(
  directory: string,
  world: TrueWorld,
  pieces: readonly FilePiece[],
  random: SeededRandom,
): Promise<string[]> {
  const paths: string[] = []
  for (const { recording, messages } of pieces) {
    const text = messages.map((message) => `${lineOf(message, world, recording.form)}\n`).join('')
    const isZipped = random.chance(0.2)
    const path = join(directory, `${random.int(0, 2 ** 31)}-${paths.length}.ndjson${isZipped ? '.gz' : ''}`)
    await writeFile(path, isZipped ? gzipSync(text) : text)
    paths.push(path)
  }
  return random.shuffled(paths)
}
