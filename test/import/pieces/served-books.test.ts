// The server's answers for recordings with faults: at every tick of every interval a row is the true book (with the tolerance of
// faults.ts) or an unknown one, and it agrees with the lake's files. `PIECES_RUNS` sets the number of
// cases, `PIECES_SEED` runs one.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import type { LobSource } from '../../../shared/lob-sources.ts'
import { startTestServer } from '../../support/test-server.ts'
import { UNKNOWN, textAt } from './book-steps.ts'
import type { BookStep } from './book-steps.ts'
import { failureReport, instant, lakeOf, seedsOf, stepsOf, workDirectory } from './case-runs.ts'
import type { CaseOutcome } from './case-runs.ts'
import { randomCut } from './cuts.ts'
import { possibleFaults, withFaults } from './faults.ts'
import { inventedBooks } from './invented-books.ts'
import { readLake } from './lake-reader.ts'
import { recordedWorld } from './recording-model.ts'
import { SeededRandom } from './seeded-random.ts'

interface ServedLevel {
  readonly price: number
  readonly qty: number
}

interface ServedRow {
  readonly ts: number
  readonly market_id: string
  readonly bids: readonly ServedLevel[]
  readonly asks: readonly ServedLevel[]
}

async function runCase(
  t: TestContext,
  directory: string,
  source: LobSource,
  seed: number,
): Promise<CaseOutcome & { readonly rows: number }> {
  const { world, recordings } = recordedWorld(source, seed)
  const random = new SeededRandom(seed + 3_000_000)
  // If a first book has a wrong receive time and its connection has no later message, no neighbour shows it.
  const kind = random.pick(possibleFaults(source).filter((fault) => fault !== 'receive time'))
  const faulty = recordings.map((recording) => withFaults(recording, kind, random))
  const cut = randomCut(
    world,
    faulty.map(({ recording }) => recording),
    // At the end of a piece, no neighbour shows a wrong clock.
    random.pick(['whole', 'connection']),
    random,
  )
  const lake = await lakeOf(directory, world, cut.imports, random)
  const books = await readLake(lake)
  const service = await startTestServer(t, { lake }, { worker: 'real' })
  const failures: string[] = []
  let rows = 0
  try {
    for (const [index, date] of books.dates.entries()) {
      for (const query of queriesOf(random, date, books.dates[index + 1])) {
        const served = new Map<string, BookStep[]>()
        for (const series of new Set(world.markets.map((market) => market.series))) {
          const url = `${service.url}/api/v1/lob?source=${source}&series=${series}&${query}&levels=50&format=ndjson`
          for (const row of await rowsOf(url)) {
            rows++
            const ts = BigInt(row.ts)
            const text = servedText(row)
            const told = centsOf(textAt(stepsOf(books, row.market_id), ts))
            if (text !== told)
              failures.push(`${query}: ${row.market_id} at ${instant(ts)}: ${text} for ${told}`)
            const steps = served.get(row.market_id) ?? []
            served.set(row.market_id, steps)
            // Said of this instant alone.
            steps.push({ ts, text }, { ts: ts + 1n, text: UNKNOWN })
          }
        }
        const found = world.markets.map(({ id }) => served.get(id) ?? [])
        const late = faulty.flatMap(({ lateSpans }) => lateSpans)
        failures.push(...inventedBooks(found, world, late, centsOf).map((text) => `${query}: ${text}`))
      }
    }
  } finally {
    await service.server.close()
    await rm(directory, { recursive: true, force: true })
  }
  return { seed, tags: [`fault=${kind}`, `cut=${cut.kind}`], failures, rows }
}

/** An hour at each second, a day at some seconds, and two days at some minutes. */
function queriesOf(random: SeededRandom, date: string, next: string | undefined): string[] {
  return [
    `date=${date}&hour=${random.int(0, 23)}&interval=1`,
    `date=${date}&interval=${random.int(2, 59)}`,
    `from=${date}&to=${next ?? date}&interval=${random.int(60, 3600)}`,
  ]
}

async function rowsOf(url: string): Promise<ServedRow[]> {
  const response = await fetch(url)
  const text = await response.text()
  if (response.status === 404) return []
  assert.equal(response.status, 200, `${url}: ${text}`)
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ServedRow)
}

/** A row's levels in whole cents and contracts; a row without any says that nothing is known, or the book is empty. */
function servedText({ bids, asks }: ServedRow): string {
  const levels = [
    ...bids.map((level) => ({ side: 0, ...level })),
    ...asks.map((level) => ({ side: 1, ...level })),
  ]
  return textOf(levels.map(({ side, price, qty }) => [`${side}:${price}`, qty]))
}

/** An exact book as rows show it: levels summed by cent, bids down and asks up, whole contracts. */
function centsOf(exact: string): string {
  const ofCent = new Map<string, bigint>()
  for (const level of exact.split(' ')) {
    const [, side, price, qty] = /^([01]):(\d+)=(\d+)$/.exec(level) ?? []
    if (qty === undefined) continue
    const cents = side === '0' ? Math.floor(Number(price) / 100) : Math.ceil(Number(price) / 100)
    if (cents <= 0 || cents >= 100) continue
    const key = `${side}:${cents}`
    ofCent.set(key, (ofCent.get(key) ?? 0n) + BigInt(qty))
  }
  return textOf([...ofCent].map(([key, qty]) => [key, Number(qty / 1_000_000n)] as const))
}

function textOf(levels: readonly (readonly [key: string, qty: number])[]): string {
  const shown = levels.filter(([, qty]) => qty > 0).map(([key, qty]) => `${key}=${qty}`)
  return shown.length === 0 ? UNKNOWN : shown.toSorted().join(' ')
}

for (const source of ['kalshi', 'polymarket'] as const) {
  test(`${source}: at every interval each row served is a book that truly was, and what the lake says`, async (t) => {
    const root = await workDirectory(t)
    const outcomes: (CaseOutcome & { readonly rows: number })[] = []
    for (const seed of seedsOf(1, 9)) outcomes.push(await runCase(t, join(root, String(seed)), source, seed))
    const report = failureReport(outcomes)
    assert.ok(report === undefined, report)
    assert.ok(outcomes.some(({ rows }) => rows > 0))
  })
}
