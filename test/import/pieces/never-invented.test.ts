// Through lost, repeated, swapped and late messages, dead recorders, reconnects without a mark and wrong clocks: at every
// instant each market is unknown, or its book is the one that truly was (tolerance: faults.ts). `PIECES_RUNS` sets the
// number of cases, `PIECES_SEED` runs one.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { utcDateOf } from '../../../shared/utc-date.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'
import { failureReport, knownShare, lakeOf, seedsOf, stepsOf, workDirectory } from './case-runs.ts'
import type { CaseOutcome } from './case-runs.ts'
import { randomCut } from './cuts.ts'
import { possibleFaults, withFaults } from './faults.ts'
import type { FaultKind } from './faults.ts'
import { inventedBooks } from './invented-books.ts'
import { readLake } from './lake-reader.ts'
import type { LakeBooks } from './lake-reader.ts'
import { recordedWorld } from './recording-model.ts'
import { referenceOf } from './reference.ts'
import { SeededRandom } from './seeded-random.ts'
import type { TrueWorld } from './true-world.ts'
import { whyUndecided } from './undecided.ts'

/** Cases that once showed books that never existed: wrong clocks, repeated or swapped lines, and messages of one time. */
const FOUND = [92, 174, 298, 307, 336, 345, 569]

interface FaultyOutcome extends CaseOutcome {
  /** Known nanoseconds in the lake, and in what the same recordings without faults prove; 0 where the messages do not decide. */
  readonly known: bigint
  readonly provable: bigint
}

function faultOf(source: LobSource, seed: number): FaultKind {
  const kinds = possibleFaults(source)
  return kinds[seed % kinds.length]!
}

async function runCase(
  directory: string,
  source: LobSource,
  seed: number,
  kind = faultOf(source, seed),
): Promise<FaultyOutcome> {
  const recorded = recordedWorld(source, seed)
  const { world, recordings, features } = recorded
  const random = new SeededRandom(seed + 2_000_000)
  const faulty = recordings.map((recording, index) =>
    withFaults(recording, index === 0 || random.chance(0.5) ? kind : 'none', random),
  )
  const lateSpans = faulty.flatMap((one) => one.lateSpans)
  const cut = randomCut(
    world,
    faulty.map(({ recording }) => recording),
    kind === 'exchange time ahead'
      ? random.pick(['whole', 'connection'])
      : random.pick(['whole', 'whole', 'random', 'connection', 'overlap']),
    random,
  )
  const reference = referenceOf(recordings, world.markets.length)
  const tags = [
    `fault=${kind}`,
    `recorders=${features.recorders}`,
    `cut=${cut.kind}`,
    `imports=${cut.grouping}`,
    ...(features.hasMarks ? ['marks'] : []),
    ...(features.isBusy ? ['busy'] : []),
  ]
  const isDecided = whyUndecided(recorded, cut) === undefined
  const provable = isDecided ? knownShare(reference.steps, reference) : 0n
  try {
    const books = await readLake(await lakeOf(directory, world, cut.imports, random))
    const lakeSteps = world.markets.map(({ id }) => stepsOf(books, id))
    const failures = [...inventedBooks(lakeSteps, world, lateSpans), ...strangeDates(books, world)]
    return { seed, tags, failures, known: isDecided ? knownShare(lakeSteps, reference) : 0n, provable }
  } catch (error) {
    const failure = `the import fails: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`
    return { seed, tags, failures: [failure], known: 0n, provable }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function strangeDates({ dates }: LakeBooks, world: TrueWorld): string[] {
  const [first, last] = [world.from, world.to + 2_000_000_000n].map((ts) =>
    utcDateOf(Number(ts / 1_000_000n)),
  )
  return dates.filter((date) => date < first! || date > last!).map((date) => `a file of ${date}`)
}

for (const source of ['kalshi', 'polymarket'] as const) {
  test(`${source}: with faults every book shown is one that truly was`, async (t) => {
    const root = await workDirectory(t)
    const outcomes: FaultyOutcome[] = []
    for (const seed of seedsOf(1, 30, FOUND))
      outcomes.push(await runCase(join(root, String(seed)), source, seed))
    const report = failureReport(outcomes)
    assert.ok(report === undefined, report)
    // A lake that knows nothing would pass too: a few faults must not cost the rest of the recordings.
    const known = outcomes.reduce((sum, outcome) => sum + outcome.known, 0n)
    const provable = outcomes.reduce((sum, outcome) => sum + outcome.provable, 0n)
    assert.ok(known * 2n > provable, `known ${known} of ${provable} ns`)
  })
}

for (const source of ['kalshi', 'polymarket'] as const) {
  test(`${source}: one time of the exchange that is somewhat ahead moves no other change, and costs nothing`, async (t) => {
    const root = await workDirectory(t)
    const outcomes: FaultyOutcome[] = []
    for (const seed of seedsOf(1, 15))
      outcomes.push(await runCase(join(root, String(seed)), source, seed, 'exchange time ahead'))
    const report = failureReport(outcomes)
    assert.ok(report === undefined, report)
    const known = outcomes.reduce((sum, outcome) => sum + outcome.known, 0n)
    const provable = outcomes.reduce((sum, outcome) => sum + outcome.provable, 0n)
    assert.ok(known * 1_000n >= provable * 999n, `known ${known} of ${provable} ns`)
  })
}
