// Recordings as they arrive: in pieces, from several recorders, after reconnects. Whatever the files, their order and the
// imports they come in, the lake is that of one import of the whole recordings, and its books are those that continuous
// reading proves: nothing invented, nothing lost. Where messages without numbers do not decide, what the cases lose is counted
// and named. `PIECES_RUNS` sets the number of cases, `PIECES_SEED` runs one.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { UNKNOWN, differences } from './book-steps.ts'
import {
  bookFailures,
  failureReport,
  instant,
  knownShare,
  lakeOf,
  seedsOf,
  stepsOf,
  workDirectory,
} from './case-runs.ts'
import type { CaseOutcome } from './case-runs.ts'
import { isTold, possibleCuts, randomCut } from './cuts.ts'
import type { Cut } from './cuts.ts'
import { differingFiles, readLake, strayEntries } from './lake-reader.ts'
import { recordedWorld } from './recording-model.ts'
import type { RecordedWorld } from './recording-model.ts'
import { referenceOf } from './reference.ts'
import type { Reference } from './reference.ts'
import { SeededRandom } from './seeded-random.ts'
import { MAY_SHOW_MORE, whyUndecided } from './undecided.ts'
import { someVariations, varied } from './variations.ts'
import type { Variation } from './variations.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'

/** Cases that showed what the others did not. */
const ONCE_FAILED: Readonly<Partial<Record<LobSource, readonly number[]>>> = {
  kalshi: [193, 370, 576, 1164, 1265, 5],
  polymarket: [612, 934, 801],
}

/** A receive time in whole seconds, and a time that is corrected by it, may be off by this much. */
const ROUGH_NS = 1_100_000_000n

interface PiecesOutcome {
  readonly seed: number
  readonly tags: readonly string[]
  readonly bytes: readonly string[]
  readonly invented: readonly string[]
  readonly lost: readonly string[]
  /** Why the messages do not decide, if the case fails for that reason. */
  readonly undecided: string | undefined
  /** Whether it counts for the share of the time that is known. */
  readonly isTold: boolean
  /** Known nanoseconds in the cut lake, and in what the recordings prove. */
  readonly known: bigint
  readonly provable: bigint
}

async function runCase(
  directory: string,
  source: LobSource,
  seed: number,
  variations: readonly Variation[],
): Promise<PiecesOutcome> {
  const drawn = recordedWorld(source, seed)
  const recorded = varied(drawn, variations)
  const { world, recordings, features } = recorded
  const random = new SeededRandom(seed + 1_000_000)
  const exact = varied(
    drawn,
    variations.filter((one) => one !== 'whole seconds'),
  )
  const reference = referenceOf(exact.recordings, world.markets.length)
  const cut = randomCut(world, recordings, random.pick(possibleCuts(source, features)), random)
  const whole = recordings.map((recording) => ({ recording, messages: recording.messages }))
  const tags = [...variations, ...tagsOf(recorded, cut)]
  const provable = knownShare(reference.steps, reference)
  try {
    const wholeLake = await lakeOf(join(directory, 'whole'), world, [whole], random)
    const judge = variations.includes('whole seconds') ? comparedRoughly : compared
    const wholeFailures = await judge(wholeLake, recorded, reference, 'whole')
    const cutLake = await lakeOf(join(directory, 'cut'), world, cut.imports, random)
    const stray = (await strayEntries(cutLake)).map((name) => `${name} was left behind`)
    const differing = await differingFiles(wholeLake, cutLake)
    const failures = [...wholeFailures, ...(await judge(cutLake, recorded, reference, 'cut'))]
    const lost = failures.filter((failure) => failure.includes('lost: '))
    const invented = failures.filter((failure) => !failure.includes('lost: '))
    const books = await readLake(cutLake)
    const known = knownShare(
      world.markets.map(({ id }) => stepsOf(books, id)),
      reference,
    )
    const why = isTold(recordings, cut) ? whyUndecided(recorded, cut) : 'connections are not told apart'
    const isCounted = variations.length === 0 || why === undefined
    const outcome = { seed, tags, known, provable, isTold: isCounted }
    const excused = MAY_SHOW_MORE.has(why ?? '')
      ? [...differing, ...lost, ...invented]
      : [...differing, ...lost]
    return why === undefined || excused.length === 0
      ? { ...outcome, bytes: [...differing, ...stray], lost, invented, undecided: undefined }
      : {
          ...outcome,
          bytes: stray,
          lost: [],
          invented: invented.filter((one) => !excused.includes(one)),
          undecided: why,
        }
  } catch (error) {
    const failure = `the import fails: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`
    const failures = { bytes: [failure], invented: [failure], lost: [failure] }
    return { seed, tags, ...failures, undecided: undefined, isTold: true, known: 0n, provable }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
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

/** Receive times in whole seconds: a book may be shown that was true within a second, and as much less is known. */
async function comparedRoughly(lake: string, { world }: RecordedWorld): Promise<string[]> {
  const books = await readLake(lake)
  return world.markets.flatMap(({ id }, market) => {
    const truth = world.steps(market)
    const edges = truth.flatMap(({ ts }) => [ts - ROUGH_NS, ts + ROUGH_NS + 1n])
    const wasNear = (text: string, ts: bigint): boolean =>
      truth.some((step, index) => {
        const next = truth[index + 1]?.ts
        return step.text === text && step.ts <= ts + ROUGH_NS && (next === undefined || next > ts - ROUGH_NS)
      })
    return differences(
      truth,
      stepsOf(books, id),
      (_, found, ts) => found === UNKNOWN || wasNear(found, ts),
      edges,
    ).map(({ from, found }) => `invented: ${id} at ${instant(from)}: ${found}`)
  })
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
  for (const isVaried of [false, true]) {
    const name = `${source}${isVaried ? ', written in other ways' : ''}`
    let outcomes: Promise<PiecesOutcome[]> | undefined
    // Three tests look at the same cases.
    const all = (t: TestContext): Promise<PiecesOutcome[]> => (outcomes ??= runAll(t, source, isVaried))
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

    test(`${name}: files cut, ordered and imported in any way give the bytes of one import`, (t) =>
      check(t, ({ bytes }) => bytes))
    test(`${name}: after any cut no book is shown that the recordings do not prove`, (t) =>
      check(t, ({ invented }) => invented))
    test(`${name}: after any cut every book that the recordings prove is known`, async (t) => {
      await check(t, ({ lost }) => lost)
      for (const { seed, undecided } of await all(t))
        if (undecided !== undefined) t.diagnostic(`seed ${seed}: ${undecided}`)
      const told = (await all(t)).filter((outcome) => outcome.isTold)
      const known = told.reduce((sum, outcome) => sum + outcome.known, 0n)
      const provable = told.reduce((sum, outcome) => sum + outcome.provable, 0n)
      t.diagnostic(`${told.length} cases: known ${known} of ${provable} ns`)
      assert.ok(known * 1_000n >= provable * 995n, `known ${known} of ${provable} ns`)
    })
  }
}

async function runAll(t: TestContext, source: LobSource, isVaried: boolean): Promise<PiecesOutcome[]> {
  const root = await workDirectory(t)
  const outcomes: PiecesOutcome[] = []
  for (const seed of seedsOf(1, 30, ONCE_FAILED[source])) {
    const variations = isVaried ? someVariations(source, new SeededRandom(seed + 4_000_000)) : []
    outcomes.push(await runCase(join(root, String(seed)), source, seed, variations))
  }
  return outcomes
}
