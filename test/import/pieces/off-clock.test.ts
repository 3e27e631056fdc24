// Recorders whose clocks are off, each by its own time, cut in any way: the lake is that of one import, and no book is shown
// that was not there. `PIECES_RUNS` sets the number of cases, `PIECES_SEED` runs one.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { UNKNOWN, differences, textAt } from './book-steps.ts'
import type { BookStep } from './book-steps.ts'
import { failureReport, instant, knownShare, lakeOf, seedsOf, stepsOf, workDirectory } from './case-runs.ts'
import type { CaseOutcome } from './case-runs.ts'
import { isTold, possibleCuts, randomCut } from './cuts.ts'
import { differingFiles, readLake } from './lake-reader.ts'
import { recordedWorld } from './recording-model.ts'
import type { Recording } from './recording-model.ts'
import { referenceOf } from './reference.ts'
import { SeededRandom } from './seeded-random.ts'
import { whyUndecided } from './undecided.ts'

/** Delays of messages differ by this much, which limits how well a clock's offset is known. */
const JITTER_NS = 10_000_000n

interface OffOutcome extends CaseOutcome {
  readonly known: bigint
  readonly provable: bigint
}

/** Without connections that brought only books: nothing shows the offset of their clock. */
function telling({ messages, form }: Recording): Recording {
  const told = new Set(messages.flatMap(({ ts, connection }) => (ts === undefined ? [] : [connection])))
  return { form, messages: messages.filter(({ connection }) => told.has(connection)) }
}

function ahead({ messages, form }: Recording, nsOf: (connection: number) => bigint): Recording {
  const moved = messages.map((message) => ({
    ...message,
    recvTs: message.recvTs + nsOf(message.connection),
  }))
  return { form, messages: moved }
}

function anyNs(random: SeededRandom): bigint {
  return BigInt(random.int(1, 115_000)) * 1_000_000n
}

/** Where a book is shown that was not there then, nor a moment later. */
function earlyBooks(id: string, truth: readonly BookStep[], found: readonly BookStep[]): string[] {
  const soon = truth.map(({ ts, text }) => ({ ts: ts - JITTER_NS, text }))
  return differences(
    truth,
    found,
    (expected, text, ts) => text === UNKNOWN || text === expected || text === textAt(soon, ts),
    soon.map(({ ts }) => ts),
  ).map(
    ({ from, to, expected, found: text }) =>
      `${id} from ${instant(from)} to ${instant(to)}: truly ${expected}, found ${text}`,
  )
}

/** By how much the clock of each of a recording's connections is ahead, ns. */
type ClockOf = (recording: Recording, random: SeededRandom) => (connection: number) => bigint

async function runCase(directory: string, seed: number, clockOf: ClockOf): Promise<OffOutcome> {
  const recorded = recordedWorld('kalshi', seed)
  const { world, recordings: all, features } = recorded
  const right = all.map(telling).filter(({ messages }) => messages.length > 0)
  const random = new SeededRandom(seed + 3_000_000)
  const recordings = right.map((recording) => ahead(recording, clockOf(recording, random)))
  const cut = randomCut(world, recordings, random.pick(possibleCuts('kalshi', features)), random)
  const whole = recordings.map((recording) => ({ recording, messages: recording.messages }))
  const reference = referenceOf(right, world.markets.length)
  const provable = knownShare(reference.steps, reference)
  const tags = [`cut=${cut.kind}`, `imports=${cut.grouping}`, `recorders=${features.recorders}`]
  try {
    const wholeLake = await lakeOf(join(directory, 'whole'), world, [whole], random)
    const cutLake = await lakeOf(join(directory, 'cut'), world, cut.imports, random)
    const stepsIn = async (lake: string): Promise<(readonly BookStep[])[]> => {
      const books = await readLake(lake)
      return world.markets.map(({ id }) => stepsOf(books, id))
    }
    const wholeSteps = await stepsIn(wholeLake)
    const failures = [wholeSteps, await stepsIn(cutLake)].flatMap((steps) =>
      world.markets.flatMap(({ id }, market) => earlyBooks(id, world.steps(market), steps[market]!)),
    )
    // A mark that stands apart from its connection is no matter of clocks. Files of single markets show less of a clock than the
    // whole connection: if it is off by seconds, more may be unknown.
    const isDecided = isTold(recordings, cut) && whyUndecided({ ...recorded, recordings }, cut) === undefined
    if (isDecided && !features.hasMarks && cut.kind !== 'market')
      failures.push(...(await differingFiles(wholeLake, cutLake)))
    return { seed, tags, failures, known: knownShare(wholeSteps, reference), provable }
  } catch (error) {
    const failure = `the import fails: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`
    return { seed, tags, failures: [failure], known: 0n, provable }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function always(sign: bigint): ClockOf {
  return (_recording, random) => {
    const ns = sign * anyNs(random)
    return () => ns
  }
}

/** Some are right. */
const MIXED: ClockOf = (_recording, random) => {
  const ns = BigInt(random.pick([-1, 0, 1])) * anyNs(random)
  return () => ns
}

/** Put right, or wrong, whenever a connection begins. */
const MENDED: ClockOf = ({ messages }, random) => {
  const connections = [...new Set(messages.map(({ connection }) => connection))]
  const offsets = new Map(
    connections.map((connection) => [connection, BigInt(random.pick([-1, 0, 1])) * anyNs(random)]),
  )
  return (connection) => offsets.get(connection)!
}

for (const [name, clockOf] of [
  ['behind', always(-1n)],
  ['ahead', always(1n)],
  ['off by different times', MIXED],
  ['put while they are connected anew', MENDED],
] as const) {
  test(`recorders whose clocks are ${name} show no book that was not there, however their files are cut`, async (t) => {
    const root = await workDirectory(t)
    const outcomes: OffOutcome[] = []
    for (const seed of seedsOf(1, 10)) outcomes.push(await runCase(join(root, String(seed)), seed, clockOf))
    const report = failureReport(outcomes)
    assert.ok(report === undefined, report)
    const known = outcomes.reduce((sum, outcome) => sum + outcome.known, 0n)
    const provable = outcomes.reduce((sum, outcome) => sum + outcome.provable, 0n)
    assert.ok(known * 10n > provable * 9n, `known ${known} of ${provable} ns`)
  })
}
