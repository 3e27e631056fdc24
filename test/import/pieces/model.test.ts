// The oracle itself: what the reference derives from recordings is the truth, and today's import of one connection, uncut,
// agrees with it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UNKNOWN, differences } from './book-steps.ts'
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
import { possibleFaults, withFaults } from './faults.ts'
import { inventedBooks } from './invented-books.ts'
import { readLake } from './lake-reader.ts'
import type { Message } from './recorded-frames.ts'
import { recordedWorld } from './recording-model.ts'
import { referenceOf } from './reference.ts'
import { SeededRandom } from './seeded-random.ts'

const MINUTE_NS = 60_000_000_000n

for (const source of ['kalshi', 'polymarket'] as const) {
  test(`${source}: every book that the reference knows was the true book at that instant`, () => {
    let known = 0n
    for (const seed of seedsOf(3, 40)) {
      const { world, recordings } = recordedWorld(source, seed)
      const reference = referenceOf(recordings, world.markets.length)
      for (const [market, steps] of reference.steps.entries()) {
        const wrong = differences(world.steps(market), steps, (a, b) => b === UNKNOWN || a === b)
        assert.deepEqual(wrong, [], `seed ${seed}`)
      }
      known += knownShare(reference.steps, reference)
    }
    assert.ok(known > 0n)
  })

  // So a product that reads carefully can pass: what is asked for is possible, and the tolerance is enough.
  test(`${source}: a careful reading of recordings with faults invents nothing`, () => {
    const kinds = possibleFaults(source).filter((kind) => !kind.startsWith('receive time'))
    const counts = new Map(kinds.map((kind) => [kind, 0]))
    for (const seed of seedsOf(6, 80)) {
      const { world, recordings } = recordedWorld(source, seed)
      const random = new SeededRandom(seed)
      const kind = kinds[seed % kinds.length]!
      const faulty = recordings.map((recording) => withFaults(recording, kind, random))
      counts.set(kind, counts.get(kind)! + faulty.reduce((sum, { count }) => sum + count, 0))
      for (const { recording, lateSpans } of faulty) {
        const read = { ...recording, messages: carefully(recording.messages) }
        const reference = referenceOf([read], world.markets.length)
        assert.deepEqual(inventedBooks(reference.steps, world, lateSpans), [], `seed ${seed}, ${kind}`)
      }
    }
    for (const [kind, count] of counts)
      assert.ok(kind === 'none' || count > 0 || seedsOf(6, 80).length < 80, kind)
  })

  test(`${source}: one connection, imported whole, gives the reference's books`, async (t) => {
    const outcomes: CaseOutcome[] = []
    for (const seed of seedsOf(3, 30)) {
      const { world, recordings } = recordedWorld(source, seed, true)
      const { messages, form } = recordings[0]!
      const one = { form, messages: messages.filter((message) => message.connection === 0) }
      const reference = referenceOf([one], world.markets.length)
      const directory = await workDirectory(t)
      const imports = [[{ recording: one, messages: one.messages }]]
      const books = await readLake(await lakeOf(directory, world, imports, new SeededRandom(seed)))
      const failures = bookFailures(books, world, reference)
      const lakeSteps = world.markets.map(({ id }) => stepsOf(books, id))
      if (failures.length === 0) {
        assert.equal(knownShare(lakeSteps, reference), knownShare(reference.steps, reference), `seed ${seed}`)
      }
      outcomes.push({ seed, tags: [`wrapper=${form.wrapper}`, `integer=${form.isInteger}`], failures })
    }
    const report = failureReport(outcomes)
    assert.ok(report === undefined, report)
  })
}

// Each message once, in the order of arrival, and an exchange time that is far from it does not count.
function carefully(messages: readonly Message[]): Message[] {
  return [...new Set(messages)]
    .toSorted((a, b) => (a.recvTs === b.recvTs ? 0 : a.recvTs < b.recvTs ? -1 : 1))
    .map((message) => {
      const { ts, recvTs, parts } = message
      const distance = ts === undefined || parts[0]?.kind === 'book' ? 0n : ts - recvTs
      return distance > MINUTE_NS || -distance > MINUTE_NS ? { ...message, ts: recvTs } : message
    })
}
