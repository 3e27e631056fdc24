// Cases in which messages do not show to which connection they belong. Then books may be unknown, and the bytes may depend on
// the cut. Books that the recordings do not prove are wrong in every case but those of MAY_SHOW_MORE.

import { groupedBy } from '../../../shared/grouped-by.ts'
import { NS_PER_DAY, NS_PER_HOUR } from '../../../shared/utc-date.ts'
import { looksLikeAnother } from './cuts.ts'
import type { Cut, FilePiece } from './cuts.ts'
import { lineOf } from './recorded-frames.ts'
import type { LineForm, Message } from './recorded-frames.ts'
import type { RecordedWorld, Recording } from './recording-model.ts'
import { NS_PER_S } from './true-world.ts'

/** A connection may continue in another file within this time, or within its longest pause. */
const PAUSE_NS = 60n * NS_PER_S
/** Books of all markets within this time look like the beginning of a connection. */
const TOGETHER_NS = NS_PER_S / 2n

/** Heartbeats of this time after midnight are filed under the date before. */
const GRACE_NS = 15n * NS_PER_S

const ALIKE = 'two recorders have the same line'
const LONE_BOOK = 'a connection begins with one book'
const LONG_PAUSE = 'a connection pauses for more than a minute at a cut'
/** A run of lines may be two connections', or the beginning of a connection or of a file look like the rest of another one. */
export const MAY_SHOW_MORE: ReadonlySet<string> = new Set([ALIKE, LONE_BOOK, LONG_PAUSE])

/** Why the messages of a case do not decide; `undefined` if they do. */
export function whyUndecided(recorded: RecordedWorld, cut: Cut): string | undefined {
  const { world, recordings } = recorded
  const files = cut.imports.flat()
  if (world.source === 'kalshi') {
    const isLate =
      recordings.some(hasLateBeginning) ||
      [...recordings, ...files].some(({ messages }) => hasBeginningBeside(messages))
    return isLate ? 'a subscription begins after its connection' : undefined
  }
  if (areAlike(recorded)) return ALIKE
  if (files.some(beginsWithOneBook)) return LONE_BOOK
  if (recordings.some(hasBooksTogether)) return 'books of all markets are sent again together'
  if (recordings.some(({ messages }) => messages.at(-1)!.recvTs % NS_PER_DAY < GRACE_NS))
    return 'a recording ends just after midnight'
  for (const file of files) {
    const head = bareBeginning(file, files)
    if (head === undefined) continue
    const ends = files.flatMap((other) =>
      bareEnds(other, files).filter((end) => fits(end, head, other, file)),
    )
    const before = file.recording.messages[file.recording.messages.indexOf(head) - 1]!
    if (!ends.includes(before)) return LONG_PAUSE
    if (new Set(ends).size > 1) return 'several ends fit a beginning'
  }
  return undefined
}

/** A subscription has its first message in a later hour than its connection: trades of quiet markets. */
function hasLateBeginning({ messages }: Recording): boolean {
  const firstHour = new Map<number, bigint>()
  return messages.some(({ connection, recvTs, seq }) => {
    const hour = recvTs / NS_PER_HOUR
    if (!firstHour.has(connection)) firstHour.set(connection, hour)
    return seq === 1 && hour > firstHour.get(connection)!
  })
}

/** In an hour of a file, a subscription begins beside one that began before and says nothing afterwards. */
function hasBeginningBeside(messages: readonly Message[]): boolean {
  const hours = groupedBy(messages, ({ connection, recvTs }) => `${connection} ${recvTs / NS_PER_HOUR}`)
  return [...hours.values()].some(looksLikeAnother)
}

/** The file has one of the books with which a connection begins, or its only book, in a line of its own. */
function beginsWithOneBook({ recording, messages: [head, next] }: FilePiece): boolean {
  const own = recording.messages.filter(({ connection }) => connection === head!.connection)
  const end = own.findIndex(({ parts, isArray }) => isArray === true || parts[0]?.kind !== 'book')
  const first = own.slice(0, end === -1 ? own.length : end)
  return first.includes(head!) && (next === undefined || !first.includes(next))
}

function hasBooksTogether({ messages }: Recording): boolean {
  return messages.some((first, index) => {
    const { connection } = first
    if (messages[index - 1]?.connection !== connection) return false
    const own = messages.filter((message) => message.connection === connection)
    const markets = new Set(own.flatMap(({ parts }) => parts.map(({ market }) => market)))
    const together = new Set<number>()
    for (const { recvTs, parts, isArray } of messages.slice(index)) {
      const [part] = parts
      if (isArray === true || part?.kind !== 'book' || recvTs - first.recvTs > TOGETHER_NS) break
      together.add(part.market)
    }
    return markets.size > 1 && together.size === markets.size
  })
}

/** The first message of a file that continues a connection, unless another file has it after the one before. */
function bareBeginning({ recording, messages }: FilePiece, files: readonly FilePiece[]): Message | undefined {
  const [head] = messages as [Message]
  const before = recording.messages[recording.messages.indexOf(head) - 1]
  if (before?.connection !== head.connection) return undefined
  const isShown = files.some((file) => file.messages.indexOf(head) > 0)
  return isShown ? undefined : head
}

/** Messages of a file after which no file has a message of the connection, although nothing ended it. */
function bareEnds({ messages }: FilePiece, files: readonly FilePiece[]): Message[] {
  return messages.filter((message, index) => {
    const next = messages[index + 1]
    if (message.other === 'disconnect' || next?.connection === message.connection) return false
    return !files.some((file) => {
      const place = file.messages.indexOf(message)
      return place !== -1 && file.messages[place + 1]?.connection === message.connection
    })
  })
}

function fits(end: Message, head: Message, ends: FilePiece, heads: FilePiece): boolean {
  const pause = head.recvTs - end.recvTs
  return pause >= 0n && (pause <= longestPause(ends, end) || pause <= longestPause(heads, head))
}

/** The longest pause of a message's connection in a file. */
function longestPause({ messages }: FilePiece, { connection }: Message): bigint {
  const own = messages.filter((one) => one.connection === connection && one.other !== 'disconnect')
  return own.reduce((longest, { recvTs }, index) => {
    const pause = index === 0 ? 0n : recvTs - own[index - 1]!.recvTs
    return pause > longest ? pause : longest
  }, PAUSE_NS)
}

const ANY_FORM: LineForm = { isInteger: false, wrapper: 'number' }

/** Messages that two recorders received at one time look like one message in two files. */
function areAlike({ world, recordings }: RecordedWorld): boolean {
  const lines = recordings.flatMap(({ messages }) => [
    ...new Set(messages.map((message) => lineOf(message, world, ANY_FORM))),
  ])
  return world.source === 'polymarket' && new Set(lines).size < lines.length
}
