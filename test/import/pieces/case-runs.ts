// Runs cases and keeps score: which seeds fail, how, and what the failing ones have in common.

import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { utcDateOf } from '../../../shared/utc-date.ts'
import { IS_FULL_EFFORT, runs } from '../../support/effort.ts'
import { UNKNOWN, differences, knownNs } from './book-steps.ts'
import type { BookStep } from './book-steps.ts'
import { importLake } from './import-lake.ts'
import type { LakeBooks } from './lake-reader.ts'
import type { FilePiece } from './cuts.ts'
import { writePieces } from './cuts.ts'
import type { KnownSpan, Reference } from './reference.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { TrueWorld } from './true-world.ts'

const SHOWN_FAILURES = 5
/** The longest delay of a message. */
const WAY_MS = 2000

/**
 * Cases of a test: `PIECES_SEED` runs that one alone (`17`) or those (`101-200`), `PIECES_RUNS` so many from seed 1 on,
 * whatever the effort; else `found` come too, which once failed: the last of them alone in the quick gear.
 */
export function seedsOf(quick: number, full: number, found: readonly number[] = []): number[] {
  const only = process.env['PIECES_SEED']
  if (only === undefined) {
    const foundNow = IS_FULL_EFFORT ? found : found.slice(-1)
    return [...new Set([...seedsBetween(1, runs(quick, full, 'PIECES_RUNS')), ...foundNow])]
  }
  const [first = NaN, last = first] = only.split('-').map(Number)
  return seedsBetween(first, last)
}

function seedsBetween(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

export interface CaseOutcome {
  readonly seed: number
  /** What the case has in it, as `name=value`. */
  readonly tags: readonly string[]
  /** What is wrong; none when the case passes. */
  readonly failures: readonly string[]
}

/** `undefined` when every case passed; else which failed, the first in full, and how often each tag failed. */
export function failureReport(outcomes: readonly CaseOutcome[]): string | undefined {
  const failed = outcomes.filter(({ failures }) => failures.length > 0)
  if (failed.length === 0) return undefined
  const lines = [`${failed.length} of ${outcomes.length} cases fail; run one again with PIECES_SEED=<seed>`]
  for (const { seed, tags, failures } of failed.slice(0, SHOWN_FAILURES)) {
    lines.push(`seed ${seed} (${tags.join(' ')}):`)
    for (const failure of failures.slice(0, 3)) lines.push(`  ${failure}`)
  }
  lines.push(
    `failing seeds: ${failed
      .slice(0, 40)
      .map(({ seed }) => seed)
      .join(' ')}`,
    'failed/all by tag:',
  )
  const tags = new Set(outcomes.flatMap((outcome) => outcome.tags))
  for (const tag of [...tags].toSorted()) {
    const count = (list: readonly CaseOutcome[]): number =>
      list.filter((one) => one.tags.includes(tag)).length
    lines.push(`  ${tag}: ${count(failed)}/${count(outcomes)}`)
  }
  return lines.join('\n')
}

/** A directory for a test's lakes, in memory where that is possible: most of a short import is waiting for the disk. */
export async function workDirectory(t: TestContext): Promise<string> {
  const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
  const path = await mkdtemp(join(parent, 'bookcast-pieces-'))
  t.after(() => rm(path, { recursive: true, force: true }))
  return path
}

/** A lake after the imports, one after the other. Rejects with the error of the product. */
export async function lakeOf(
  directory: string,
  world: TrueWorld,
  imports: readonly (readonly FilePiece[])[],
  random: SeededRandom,
): Promise<string> {
  const lake = join(directory, 'lake')
  const lastDate = utcDateOf(Number(world.to / 1_000_000n) + WAY_MS)
  for (const [index, pieces] of imports.entries()) {
    const files = join(directory, `files-${index}`)
    await mkdir(files, { recursive: true })
    await importLake(world.source, lake, await writePieces(files, world, pieces, random), lastDate)
    await rm(files, { recursive: true })
  }
  return lake
}

/** Differences between a lake's books and the reference, as texts. */
export function bookFailures(books: LakeBooks, world: TrueWorld, reference: Reference): string[] {
  return world.markets.flatMap(({ id }, market) => {
    const spans = reference.openSpans[market]!
    const expected = reference.steps[market]!
    return differences(
      expected,
      stepsOf(books, id),
      (wanted, found, ts) => wanted === found || isOpenBook(spans, expected, found, ts),
      spans.flatMap(({ from, to }) => [from, to + 1n]),
    ).map(({ from, to, expected: wanted, found }) => {
      const kind = wanted === UNKNOWN ? 'invented' : found === UNKNOWN ? 'lost' : 'wrong'
      return `${kind}: ${id} from ${instant(from)} to ${instant(to)}: expected ${wanted}, found ${found}`
    })
  })
}

// In an open time, the last known book and an unknown book are both right.
export function isOpenBook(
  spans: readonly KnownSpan[],
  steps: readonly BookStep[],
  found: string,
  ts: bigint,
): boolean {
  const span = spans.find(({ from, to }) => from <= ts && ts <= to)
  if (span === undefined) return false
  const last = steps.findLast((step) => step.ts < span.from && step.text !== UNKNOWN)
  return found === UNKNOWN || found === last?.text
}

/** Known time of all markets together, ns, outside the open times. */
export function knownShare(stepsByMarket: readonly (readonly BookStep[])[], reference: Reference): bigint {
  let sum = 0n
  for (const [market, steps] of stepsByMarket.entries()) {
    const masked = reference.openSpans[market]!.reduce<readonly BookStep[]>(withoutSpan, steps)
    sum += knownNs(masked, masked.at(-1)?.ts ?? 0n)
  }
  return sum
}

function withoutSpan(steps: readonly BookStep[], { from, to }: KnownSpan): BookStep[] {
  const after = steps.findLast((step) => step.ts <= to + 1n)?.text ?? UNKNOWN
  return [
    ...steps.filter((step) => step.ts < from),
    { ts: from, text: UNKNOWN },
    { ts: to + 1n, text: after },
    ...steps.filter((step) => step.ts > to + 1n),
  ]
}

export function stepsOf(books: LakeBooks, id: string): readonly BookStep[] {
  return books.steps.get(id) ?? []
}

export function instant(ts: bigint | undefined): string {
  if (ts === undefined) return 'ever'
  const seconds = new Date(Number(ts / 1_000_000_000n) * 1000).toISOString().slice(0, 19)
  return `${seconds}.${String(ts % 1_000_000_000n).padStart(9, '0')}Z`
}
