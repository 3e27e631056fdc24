// Answers that several threads make: their sections in order are byte for byte what one thread writes, and a thread that
// cannot make the same answer as the leader makes nothing.

import assert from 'node:assert/strict'
import { readFileSync, renameSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { CHUNK_BYTES, CHUNK_WINDOW } from '../../shared/limits.ts'
import { type LobQuery, SNAPSHOT_COLUMNS } from '../../shared/lob-task.ts'
import { bodyOfShares, collectShares, TINY_SHARES, type SharedAnswer } from '../support/lob-shares.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { DAY_START, HOUR, pathOfDate, SERIES } from '../support/recorded-events.ts'
import { BUSY, SECTION_DATES, writeSectionsLake, writeStillLake } from '../support/sections-lake.ts'
import { lakeOfThisFile, temporaryDirectory } from '../support/temporary-lake.ts'
import { LOB_SECTIONS_ROWS_MIN } from '../../workers/lob/task.ts'

const SECTIONS = lakeOfThisFile(writeSectionsLake)
const QUERY = lobQuery({ series: SERIES, dates: SECTION_DATES, format: 'ndjson' })

const assistantSections = ({ shares }: SharedAnswer): number =>
  shares.slice(1).reduce((sum, { sections }) => sum + sections.length, 0)

/** Picks that vary by turn but are the same in each run. */
function picks(): (count: number) => number {
  let turn = 0
  return (count) => (turn++ * 7919) % count
}

const CASES: readonly (readonly [string, Partial<LobQuery>])[] = [
  ['ndjson', {}],
  ['csv', { format: 'csv' }],
  ['one market', { series: null, market: BUSY }],
  ['a date with keyframes', { dates: [SECTION_DATES[0]] }],
  ['a date of a foreign file that goes on with carried books', { dates: [SECTION_DATES[2]] }],
  ['dates of which the middle one is not asked for', { dates: [SECTION_DATES[0], SECTION_DATES[2]] }],
  ['one hour of every date', { hour: 8, intervalS: 30 }],
  ['the hour in which a market pauses', { dates: [SECTION_DATES[1]], hour: 8, intervalS: 1 }],
  ['7 s', { intervalS: 7, dates: [SECTION_DATES[1]] }],
  ['1000 s', { intervalS: 1000 }],
  ['3599 s', { intervalS: 3599 }],
  ['3600 s', { intervalS: 3600, format: 'csv' }],
  ['one level', { levels: 1, format: 'csv' }],
  ['50 levels', { levels: 50 }],
  ['50 levels in csv', { levels: 50, format: 'csv' }],
  ['only bids in csv', { columns: ['bids'], format: 'csv' }],
  ['only the mid', { columns: ['mid'] }],
  ['columns in another order', { columns: SNAPSHOT_COLUMNS.toReversed() }],
]

for (const [what, part] of CASES) {
  test(`the sections of three threads join to the answer of one: ${what}`, async () => {
    const lake = SECTIONS.path
    const query = { ...QUERY, ...part }
    const expected = await collectLob(lake, query)
    assert.equal(expected.failure, undefined, expected.failure?.detail)
    for (const threads of [1, 3]) {
      const answer = await collectShares(lake, query, { threads, pick: picks() })
      assert.ok(bodyOfShares(answer).equals(expected.body))
      assert.equal(answer.head?.rows, expected.endRows)
      assert.ok(threads === 1 || assistantSections(answer) > 0)
    }
  })
}

test('a market that closes within an hour ends there, whichever thread makes the hour', async () => {
  const lake = SECTIONS.path
  const closesAtMs = { [BUSY]: Number((DAY_START + 20n * HOUR) / 1_000_000n) + 90_000 }
  const catalogue = { series: SERIES, markets: null, closesAtMs }
  const expected = await collectLob(lake, QUERY, { catalogue })
  const answer = await collectShares(lake, QUERY, { threads: 3, pick: picks(), task: { catalogue } })
  assert.ok(bodyOfShares(answer).equals(expected.body))
  assert.ok(expected.endRows! < (await collectLob(lake, QUERY)).endRows!)
})

test('no thread exceeds its window of chunks, and no section exceeds its bound', async () => {
  const lake = SECTIONS.path
  const query = { ...QUERY, intervalS: 5, levels: 50 }
  const sectionChunksMax = 3
  const answer = await collectShares(lake, query, {
    threads: 4,
    bounds: { rowsMin: 2, sectionChunksMax },
    pick: picks(),
  })
  assert.ok(bodyOfShares(answer).equals((await collectLob(lake, query)).body))
  const [leader, ...assistants] = answer.shares
  // The leader may have started before it received its window of one.
  assert.ok(leader!.chunksUnderWay <= CHUNK_WINDOW)
  for (const { chunksUnderWay } of assistants) assert.ok(chunksUnderWay <= 2)
  for (const chunks of answer.chunks.values()) {
    assert.ok(chunks.length <= sectionChunksMax + 1)
    for (const chunk of chunks) assert.ok(chunk.length <= CHUNK_BYTES)
  }
})

test('only ndjson and csv answers of many rows or events are shared', async (t) => {
  const lake = await temporaryDirectory(t)
  const rows = await writeStillLake(lake, 1)
  const query = lobQuery({ series: SERIES, dates: [SECTION_DATES[0]], levels: 1, columns: ['mid'] })
  const sectionsOf = async (part: Partial<LobQuery>): Promise<number | undefined> => {
    const { head } = await collectLob(lake, { ...query, ...part })
    return head?.sections?.count
  }
  assert.ok(rows >= LOB_SECTIONS_ROWS_MIN)
  assert.equal(await sectionsOf({ intervalS: 1, format: 'ndjson' }), 24)
  assert.equal(await sectionsOf({ intervalS: 1, format: 'csv' }), 24)
  assert.equal(await sectionsOf({ intervalS: 1, format: 'parquet' }), undefined)
  assert.equal(await sectionsOf({ intervalS: 5, format: 'ndjson' }), undefined)
  assert.equal(await sectionsOf({ intervalS: 2, format: 'json' }), undefined)
})

test('an answer of few rows is shared if it is made from many events', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeSectionsLake(lake)
  const query = { ...QUERY, intervalS: 3600 }
  const expected = await collectLob(lake, query)
  const shares = async (rowsMin: number): Promise<SharedAnswer> =>
    await collectShares(lake, query, { threads: 3, bounds: { ...TINY_SHARES, rowsMin }, pick: picks() })
  const answer = await shares(expected.endRows! + 1)
  assert.ok(assistantSections(answer) > 0)
  assert.ok(bodyOfShares(answer).equals(expected.body))
  assert.equal((await shares(1_000_000)).head?.sections, null)
})

/** Collects an answer; after the leader's head, `happen` changes the second date's file. */
async function answerAfter(
  t: Parameters<typeof temporaryDirectory>[0],
  happen: (path: string) => void,
): Promise<{ answer: SharedAnswer; expected: Buffer }> {
  const lake = await temporaryDirectory(t)
  await writeSectionsLake(lake)
  const { body } = await collectLob(lake, QUERY)
  const path = pathOfDate(lake, SECTION_DATES[1])
  const answer = await collectShares(lake, QUERY, { threads: 3, pick: picks(), onHead: () => happen(path) })
  return { answer, expected: body }
}

/** Replaces a file without changing the opened one. */
function replace(path: string, bytes: Uint8Array): void {
  writeFileSync(`${path}.new`, bytes)
  renameSync(`${path}.new`, path)
}

for (const [what, happen] of [
  [
    'is replaced by that of another date',
    (path) => replace(path, readFileSync(path.replace('07-02', '07-01'))),
  ],
  ['is replaced by a truncated one', (path) => replace(path, readFileSync(path).subarray(0, 1000))],
  ['is replaced by no parquet file', (path) => replace(path, Buffer.from('{}'))],
  ['is removed', (path) => rmSync(path)],
] as const satisfies readonly (readonly [string, (path: string) => void])[]) {
  test(`assistants make nothing and the answer is complete when a file ${what}`, async (t) => {
    const { answer, expected } = await answerAfter(t, happen)
    assert.equal(assistantSections(answer), 0)
    for (const { rows, failure } of answer.shares.slice(1)) {
      assert.equal(failure, undefined)
      assert.equal(rows, 0)
    }
    assert.ok(bodyOfShares(answer).equals(expected))
  })
}

test('assistants make sections when a file is replaced by the same bytes', async (t) => {
  const { answer, expected } = await answerAfter(t, (path) => replace(path, readFileSync(path)))
  assert.ok(assistantSections(answer) > 0)
  assert.ok(bodyOfShares(answer).equals(expected))
})

test('assistants that plan a smaller answer below the sharing limit make nothing', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeSectionsLake(lake)
  const query = { ...QUERY, dates: SECTION_DATES.slice(0, 2) }
  const expected = await collectLob(lake, query)
  const answer = await collectShares(lake, query, {
    threads: 3,
    bounds: { ...TINY_SHARES, rowsMin: expected.endRows! },
    onHead: () => rmSync(pathOfDate(lake, SECTION_DATES[1])),
  })
  assert.ok(expected.endRows! > 2 && answer.shares.length === 3)
  for (const { messages } of answer.shares.slice(1)) assert.deepEqual(messages, [{ kind: 'end', rows: 0 }])
  assert.ok(bodyOfShares(answer).equals(expected.body))
})

test('assistants make nothing if the client already holds the changed answer', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeSectionsLake(lake)
  const path = pathOfDate(lake, SECTION_DATES[1])
  const expected = await collectLob(lake, QUERY)
  const answer = await collectShares(lake, QUERY, {
    threads: 2,
    onHead: () => rmSync(path),
    assistantTask: { validation: { seed: 'test', held: ['*'] } },
  })
  assert.deepEqual(answer.shares[1]!.messages, [{ kind: 'end', rows: 0 }])
  assert.ok(bodyOfShares(answer).equals(expected.body))
})

test('a file that is changed in place fails every thread that has taken a section of it', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeSectionsLake(lake)
  const path = pathOfDate(lake, SECTION_DATES[1])
  let turn = 0
  const answer = await collectShares(lake, QUERY, {
    threads: 3,
    pick: (count) => {
      // By now all threads have sections of the first date.
      if (turn++ === 12) utimesSync(path, new Date(0), new Date(0))
      return turn % count
    },
  })
  assert.ok(assistantSections(answer) > 0)
  const codes = answer.shares.map(({ failure }) => failure?.code)
  assert.ok(codes.includes('lake_file_changed'))
  for (const { failure, rows } of answer.shares) assert.ok((failure === undefined) !== (rows === undefined))
})

test('a file that is truncated while it is read fails every thread that has taken a section', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeSectionsLake(lake)
  const query = { ...QUERY, dates: [SECTION_DATES[0]] }
  let turn = 0
  const answer = await collectShares(lake, query, {
    threads: 2,
    pick: (count) => {
      if (turn++ === 8) truncateSync(pathOfDate(lake, SECTION_DATES[0]), 20)
      return turn % count
    },
  })
  assert.ok(assistantSections(answer) > 0)
  for (const { failure, rows } of answer.shares) {
    assert.ok(failure?.code === 'lake_file_invalid' || failure?.code === 'lake_file_changed')
    assert.equal(rows, undefined)
  }
})
