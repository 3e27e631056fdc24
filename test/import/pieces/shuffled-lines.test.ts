// Files whose lines stand in any order: reversed, shuffled within a window or over the whole file, blocks of them swapped,
// the connections of several recorders among each other. No recorder writes such files, but tools that sort, split and
// join do. At every instant each market is unknown, or its book is the one that truly was; or the import refuses the file
// by its name. `PIECES_RUNS` sets the number of cases, `PIECES_SEED` runs one.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LobSource } from '../../../shared/lob-sources.ts'
import { UNKNOWN } from './book-steps.ts'
import { failureReport, lakeOf, seedsOf, stepsOf, workDirectory } from './case-runs.ts'
import type { CaseOutcome } from './case-runs.ts'
import { inventedBooks } from './invented-books.ts'
import { readLake } from './lake-reader.ts'
import type { Message } from './recorded-frames.ts'
import { recordedWorld } from './recording-model.ts'
import type { Recording } from './recording-model.ts'
import { SeededRandom } from './seeded-random.ts'

const ORDERS = [
  'reversed',
  'blocks',
  'within 10',
  'within 100',
  'within 1000',
  'any',
  'one moved',
  'recorders by time',
  'recorders in turn',
  'recorders at random',
] as const
type Order = (typeof ORDERS)[number]

interface ShuffledOutcome extends CaseOutcome {
  readonly order: Order
  /** Whether the lake knows any book. */
  readonly isKnown: boolean
}

/** Without sequence numbers, a few lines out of place show nothing, nor do lines of several recorders sorted by time. */
const UNNUMBERED_ORDERS: readonly Order[] = ['reversed', 'within 10', 'within 100', 'within 1000', 'any']

async function runCase(directory: string, source: LobSource, seed: number): Promise<ShuffledOutcome> {
  const orders = source === 'kalshi' ? ORDERS : UNNUMBERED_ORDERS
  const order = orders[seed % orders.length]!
  // Blocks of two subscriptions may fit by chance. Then messages of one keep the other known.
  const { world, recordings, features } = recordedWorld(source, seed, order === 'blocks')
  const random = new SeededRandom(seed + 3_000_000)
  const files = reordered(recordings, order, random)
  const tags = [
    `order=${order}`,
    `recorders=${features.recorders}`,
    `sids=${features.sids}`,
    ...(features.hasMarks ? ['marks'] : []),
    ...(features.hasTrades ? ['trades'] : []),
    ...(features.hasResnapshots ? ['resnapshots'] : []),
  ]
  try {
    const pieces = files.map((recording) => ({ recording, messages: recording.messages }))
    const books = await readLake(await lakeOf(directory, world, [pieces], random))
    const lakeSteps = world.markets.map(({ id }) => stepsOf(books, id))
    const isKnown = lakeSteps.flat().some(({ text }) => text !== UNKNOWN)
    return { seed, tags, failures: inventedBooks(lakeSteps, world, []), order, isKnown }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    const failures = /\.ndjson(\.gz)?: it goes back/.test(text)
      ? []
      : [`the import fails: ${text.slice(0, 300)}`]
    return { seed, tags, failures, order, isKnown: false }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function reordered(recordings: readonly Recording[], order: Order, random: SeededRandom): Recording[] {
  if (order.startsWith('recorders')) return [together(recordings, order, random)]
  return recordings.map((recording) => ({
    ...recording,
    messages: inOrder(recording.messages, order, random),
  }))
}

function inOrder(messages: readonly Message[], order: Order, random: SeededRandom): readonly Message[] {
  switch (order) {
    case 'reversed':
      return messages.toReversed()
    case 'blocks':
      return random.shuffled(blocksOf(messages, Math.ceil(messages.length / random.int(2, 8)))).flat()
    case 'within 10':
      return within(messages, 10, random)
    case 'within 100':
      return within(messages, 100, random)
    case 'within 1000':
      return within(messages, 1000, random)
    case 'any':
      return random.shuffled(messages)
    default: {
      const moved = random.pick(messages)
      const rest = messages.filter((message) => message !== moved)
      return rest.toSpliced(random.int(0, rest.length), 0, moved)
    }
  }
}

function blocksOf(messages: readonly Message[], size: number): Message[][] {
  const count = Math.ceil(messages.length / size)
  return Array.from({ length: count }, (_, index) => messages.slice(index * size, (index + 1) * size))
}

function within(messages: readonly Message[], window: number, random: SeededRandom): Message[] {
  return blocksOf(messages, window).flatMap((block) => random.shuffled(block))
}

/**
 * The lines of several recorders in one file, each recorder's in their order. Those of other subscriptions are left out:
 * nothing distinguishes them from subscriptions of one connection.
 */
function together(recordings: readonly Recording[], order: Order, random: SeededRandom): Recording {
  const sidOf = ({ messages }: Recording): number | undefined => messages.find(({ seq }) => seq === 1)?.sid
  const alike = recordings.filter((recording) => sidOf(recording) === sidOf(recordings[0]!))
  const waiting = alike.map(({ messages }) => [...messages])
  const messages: Message[] = []
  for (let turn = 0; waiting.some((list) => list.length > 0); turn++) {
    const filled = waiting.filter((list) => list.length > 0)
    const next =
      order === 'recorders in turn'
        ? filled[turn % filled.length]!
        : order === 'recorders at random'
          ? random.pick(filled)
          : filled.reduce((a, b) => (a[0]!.recvTs <= b[0]!.recvTs ? a : b))
    messages.push(next.shift()!)
  }
  return { ...recordings[0]!, messages }
}

test('kalshi: lines in any order show no book that never was', async (t) => {
  const root = await workDirectory(t)
  const outcomes: ShuffledOutcome[] = []
  for (const seed of seedsOf(6, 60)) outcomes.push(await runCase(join(root, String(seed)), 'kalshi', seed))
  const report = failureReport(outcomes)
  assert.ok(report === undefined, report)
  // A single line, or a few long stretches, cost no more than what they part.
  const lost = outcomes.filter(
    ({ order, isKnown }) => (order === 'one moved' || order === 'blocks') && !isKnown,
  )
  assert.deepEqual(lost, [])
})

test('polymarket: a file whose lines are out of order again and again shows no book that never was', async (t) => {
  const root = await workDirectory(t)
  const outcomes: ShuffledOutcome[] = []
  for (const seed of seedsOf(6, 60))
    outcomes.push(await runCase(join(root, String(seed)), 'polymarket', seed))
  const report = failureReport(outcomes)
  assert.ok(report === undefined, report)
})
