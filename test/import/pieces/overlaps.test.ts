// Files that each begin with the last lines of the one before, of one or several recorders, in any order, in one import or
// many: the lake is that of the uncut recordings, also where one recorder's clock is 37 s ahead or behind. No book is shown
// that the recordings do not prove, and at least 99.5 % of what they prove is known: books of all tokens, one a line, may be
// a new connection's first ones. `PIECES_RUNS` sets the number of cases, `PIECES_SEED` runs one.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { groupedBy } from '../../../shared/grouped-by.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'
import { NS_PER_HOUR } from '../../../shared/utc-date.ts'
import { UNKNOWN, differences } from './book-steps.ts'
import type { Difference } from './book-steps.ts'
import {
  failureReport,
  instant,
  knownShare,
  lakeOf,
  isOpenBook,
  seedsOf,
  stepsOf,
  workDirectory,
} from './case-runs.ts'
import type { CaseOutcome } from './case-runs.ts'
import { GROUPINGS, grouped, isTold } from './cuts.ts'
import type { Cut, FilePiece } from './cuts.ts'
import { differingFiles, readLake } from './lake-reader.ts'
import type { LakeBooks } from './lake-reader.ts'
import type { Message } from './recorded-frames.ts'
import { recordedWorld } from './recording-model.ts'
import type { Recording } from './recording-model.ts'
import { referenceOf } from './reference.ts'
import type { Reference } from './reference.ts'
import { SeededRandom } from './seeded-random.ts'
import type { TrueWorld } from './true-world.ts'
import { whyUndecided } from './undecided.ts'

const FILES_MAX = 14
const COMMON_LINES_MAX = 2000
const OFF_NS = 37_000_000_000n
/** The fastest message alone shows the offset of a clock. */
const TOLERANCE_NS = 100_000_000n

const CLOCKS = ['right', 'ahead', 'behind'] as const
type ClockName = (typeof CLOCKS)[number]

interface OverlapOutcome extends CaseOutcome {
  /** ns of all markets; 0 where the messages do not decide (undecided.ts). */
  readonly known: bigint
  readonly provable: bigint
}

async function runCase(
  directory: string,
  source: LobSource,
  seed: number,
  clock: ClockName,
): Promise<OverlapOutcome> {
  const recorded = recordedWorld(source, seed)
  const { world, recordings: all, features } = recorded
  const right = clock === 'right' ? all : all.map(showingClock).filter(({ messages }) => messages.length > 0)
  const recordings = right.map((recording, index) =>
    index === right.length - 1 ? withClock(recording, clock) : recording,
  )
  const random = new SeededRandom(seed + 1_000_000)
  const cut = overlappingCut(recordings, random)
  const tags = [`recorders=${features.recorders}`, `sids=${features.sids}`, `imports=${cut.grouping}`]
  const whole = recordings.map((recording) => ({ recording, messages: recording.messages }))
  const reference = referenceOf(right, world.markets.length)
  const isDecided = whyUndecided({ ...recorded, recordings }, cut) === undefined
  const provable = isDecided ? knownShare(reference.steps, reference) : 0n
  try {
    const wholeLake = await lakeOf(join(directory, 'whole'), world, [whole], random)
    const cutLake = await lakeOf(join(directory, 'cut'), world, cut.imports, random)
    const failures = isTold(recordings, cut) ? await differingFiles(wholeLake, cutLake) : []
    const books = await readLake(cutLake)
    failures.push(...wrongBooks(books, world, reference, clock === 'right' ? 0n : TOLERANCE_NS))
    const steps = world.markets.map(({ id }) => stepsOf(books, id))
    return { seed, tags, failures, known: isDecided ? knownShare(steps, reference) : 0n, provable }
  } catch (error) {
    return { seed, tags, known: 0n, provable, failures: [`the import fails: ${String(error).slice(0, 300)}`] }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/**
 * Without connections that brought no change in the hour in which they began or ended: a clock is known by the changes of an
 * hour.
 */
function showingClock({ messages, form }: Recording): Recording {
  const byConnection = groupedBy(messages, ({ connection }) => connection)
  const hourOf = (message: Message): bigint => message.recvTs / NS_PER_HOUR
  const shown = [...byConnection.values()].filter((own) => {
    const hours = new Set(own.filter(isTimed).map(hourOf))
    return hours.has(hourOf(own[0])) && hours.has(hourOf(own.at(-1)!))
  })
  const kept = new Set(shown.flat())
  return { form, messages: messages.filter((message) => kept.has(message)) }
}

function isTimed({ parts, other }: Message): boolean {
  return other === 'trade' || parts[0]?.kind === 'change'
}

function withClock({ messages, form }: Recording, clock: ClockName): Recording {
  const offset = clock === 'right' ? 0n : clock === 'ahead' ? OFF_NS : -OFF_NS
  return { form, messages: messages.map((message) => ({ ...message, recvTs: message.recvTs + offset })) }
}

/** Each file begins with the last 1 to 2,000 lines of the one before. */
function overlappingCut(recordings: readonly Recording[], random: SeededRandom): Cut {
  const files = recordings.flatMap((recording): FilePiece[] => {
    const { messages } = recording
    const places = Array.from({ length: random.int(1, FILES_MAX - 1) }, () =>
      random.int(1, Math.max(1, messages.length - 1)),
    )
    const cuts = [0, ...new Set(places.toSorted((a, b) => a - b))]
    return cuts.map((from, index) => {
      const common = index === 0 ? 0 : random.int(1, COMMON_LINES_MAX)
      return { recording, messages: messages.slice(Math.max(0, from - common), cuts[index + 1]) }
    })
  })
  const grouping = random.pick(GROUPINGS)
  return {
    kind: 'overlap',
    isDoubled: false,
    grouping,
    imports: grouped(random.shuffled(files), grouping, random),
  }
}

/** Where the lake shows other books than the reference for longer than `tolerance`, as texts. */
function wrongBooks(books: LakeBooks, world: TrueWorld, reference: Reference, tolerance: bigint): string[] {
  return world.markets.flatMap(({ id }, market) => {
    const spans = reference.openSpans[market]!
    const expected = reference.steps[market]!
    const wrong = differences(
      expected,
      stepsOf(books, id),
      (wanted, found, ts) => wanted === found || found === UNKNOWN || isOpenBook(spans, expected, found, ts),
      spans.flatMap(({ from, to }) => [from, to + 1n]),
    )
    return together(wrong)
      .filter(({ from, to }) => to === undefined || to - from > tolerance)
      .map(
        ({ from, to, expected: wanted, found }) =>
          `${wanted === UNKNOWN ? 'invented' : 'wrong'}: ${id} from ${instant(from)} to ${instant(to)}: expected ${wanted}, found ${found}`,
      )
  })
}

/** Differences that follow each other directly, as one. */
function together(list: readonly Difference[]): Difference[] {
  const result: Difference[] = []
  for (const difference of list) {
    const before = result.at(-1)
    if (before?.to !== undefined && before.to + 1n === difference.from)
      result[result.length - 1] = { ...before, to: difference.to }
    else result.push(difference)
  }
  return result
}

for (const source of ['kalshi', 'polymarket'] as const) {
  for (const clock of CLOCKS) {
    test(`${source}: files that overlap give the lake of the uncut recordings, clock ${clock}`, async (t) => {
      const root = await workDirectory(t)
      const outcomes: OverlapOutcome[] = []
      for (const seed of seedsOf(1, 20, [79]))
        outcomes.push(await runCase(join(root, String(seed)), source, seed, clock))
      const report = failureReport(outcomes)
      assert.ok(report === undefined, report)
      const known = outcomes.reduce((sum, outcome) => sum + outcome.known, 0n)
      const provable = outcomes.reduce((sum, outcome) => sum + outcome.provable, 0n)
      assert.ok(known * 1000n >= provable * 995n, `known ${known} of ${provable} ns`)
    })
  }
}
