// Recordings as they arrive: in pieces, from several recorders, after reconnects. Whatever the files, their order and the
// imports they come in, the lake is that of one import of the whole recordings, and its books are those that continuous
// reading proves: nothing invented, nothing lost. `PIECES_RUNS` sets the number of cases, `PIECES_SEED` runs one.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import {
  bookFailures,
  failureReport,
  knownShare,
  lakeOf,
  seedsOf,
  stepsOf,
  workDirectory,
} from './case-runs.ts'
import type { CaseOutcome } from './case-runs.ts'
import { isTold, possibleCuts, randomCut } from './cuts.ts'
import type { Cut } from './cuts.ts'
import { lakeHashes, readLake, strayEntries } from './lake-reader.ts'
import { recordedWorld } from './recording-model.ts'
import type { RecordedWorld } from './recording-model.ts'
import { referenceOf } from './reference.ts'
import type { Reference } from './reference.ts'
import { SeededRandom } from './seeded-random.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'

/** Cases that showed what the others did not. */
const ONCE_FAILED: Readonly<Partial<Record<LobSource, readonly number[]>>> = {
  kalshi: [193, 370, 576, 1164, 1265],
  polymarket: [612, 934, 801],
}

interface PiecesOutcome {
  readonly seed: number
  readonly tags: readonly string[]
  readonly bytes: readonly string[]
  readonly invented: readonly string[]
  readonly lost: readonly string[]
}

async function runCase(directory: string, source: LobSource, seed: number): Promise<PiecesOutcome> {
  const recorded = recordedWorld(source, seed)
  const { world, recordings, features } = recorded
  const random = new SeededRandom(seed + 1_000_000)
  const reference = referenceOf(recordings, world.markets.length)
  const cut = randomCut(world, recordings, random.pick(possibleCuts(source, features)), random)
  const whole = recordings.map((recording) => ({ recording, messages: recording.messages }))
  const tags = tagsOf(recorded, cut)
  try {
    const wholeLake = await lakeOf(join(directory, 'whole'), world, [whole], random)
    const wholeFailures = await compared(wholeLake, recorded, reference, 'whole')
    const cutLake = await lakeOf(join(directory, 'cut'), world, cut.imports, random)
    const stray = (await strayEntries(cutLake)).map((name) => `${name} was left behind`)
    const bytes = [...(await byteFailures(wholeLake, cutLake)), ...stray]
    const failures = [...wholeFailures, ...(await compared(cutLake, recorded, reference, 'cut'))]
    const lost = failures.filter((failure) => failure.includes('lost: '))
    const invented = failures.filter((failure) => !failure.includes('lost: '))
    if (!isTold(recordings, cut)) return { seed, tags, bytes: [], invented, lost: [] }
    return { seed, tags, bytes, invented, lost }
  } catch (error) {
    const failure = `the import fails: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`
    return { seed, tags, bytes: [failure], invented: [failure], lost: [failure] }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function byteFailures(wholeLake: string, cutLake: string): Promise<string[]> {
  const [expected, found] = [await lakeHashes(wholeLake), await lakeHashes(cutLake)]
  const names = [...new Set([...expected.keys(), ...found.keys()])].toSorted((a, b) => (a < b ? -1 : 1))
  return names
    .filter((name) => expected.get(name) !== found.get(name))
    .map(
      (name) => `${name}: ${!found.has(name) ? 'absent' : expected.has(name) ? 'other bytes' : 'too many'}`,
    )
}

async function compared(
  lake: string,
  { world }: RecordedWorld,
  reference: Reference,
  name: string,
): Promise<string[]> {
  const books = await readLake(lake)
  const failures = bookFailures(books, world, reference)
  const lakeSteps = world.markets.map(({ id }) => stepsOf(books, id))
  const [found, expected] = [knownShare(lakeSteps, reference), knownShare(reference.steps, reference)]
  if (found < expected) failures.push(`lost: ${expected - found} of ${expected} known nanoseconds`)
  if (found > expected) failures.push(`invented: ${found - expected} nanoseconds beyond ${expected}`)
  return failures.map((failure) => `${name}: ${failure}`)
}

function tagsOf({ features, recordings }: RecordedWorld, cut: Cut): string[] {
  const { recorders, sids, hasMarks, hasTrades, hasResnapshots, isBusy } = features
  const connections = recordings.reduce((sum, { messages }) => sum + messages.at(-1)!.connection + 1, 0)
  return [
    `cut=${cut.kind}`,
    `imports=${cut.grouping}`,
    `doubled=${cut.isDoubled}`,
    `recorders=${recorders}`,
    `reconnects=${connections > recorders}`,
    `sids=${sids}`,
    ...(hasMarks ? ['marks'] : []),
    ...(hasTrades ? ['trades'] : []),
    ...(hasResnapshots ? ['resnapshots'] : []),
    ...(isBusy ? ['busy'] : []),
  ]
}

for (const source of ['kalshi', 'polymarket'] as const) {
  let outcomes: Promise<PiecesOutcome[]> | undefined
  // Three tests look at the same cases.
  const all = (t: TestContext): Promise<PiecesOutcome[]> => (outcomes ??= runAll(t, source))
  const check = async (
    t: TestContext,
    failuresOf: (outcome: PiecesOutcome) => readonly string[],
  ): Promise<void> => {
    const cases = (await all(t)).map((outcome): CaseOutcome => ({
      ...outcome,
      failures: failuresOf(outcome),
    }))
    const report = failureReport(cases)
    assert.ok(report === undefined, report)
  }

  test(`${source}: files cut, ordered and imported in any way give the bytes of one import`, (t) =>
    check(t, ({ bytes }) => bytes))
  test(`${source}: after any cut no book is shown that the recordings do not prove`, (t) =>
    check(t, ({ invented }) => invented))
  test(`${source}: after any cut every book that the recordings prove is known`, (t) =>
    check(t, ({ lost }) => lost))
}

async function runAll(t: TestContext, source: LobSource): Promise<PiecesOutcome[]> {
  const root = await workDirectory(t)
  const outcomes: PiecesOutcome[] = []
  for (const seed of seedsOf(1, 30, ONCE_FAILED[source]))
    outcomes.push(await runCase(join(root, String(seed)), source, seed))
  return outcomes
}
