// What the index of candle files costs: a file whose footer lists its markets is not scanned, and no file is read twice however
// many there are.

import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { PartitionDraft } from '../../server/compaction/partition-draft.ts'
import { RECORD_TABLES, type RecordRow } from '../../server/compaction/record-table.ts'
import { CandleIndex } from '../../workers/records/candle-index.ts'
import { DuckLake } from '../../workers/records/duck-lake.ts'
import { FileChecks } from '../../workers/records/file-checks.ts'
import { findParts, type LakePart } from '../../workers/records/lake-partitions.ts'
import { candleSet } from '../support/candle-sets.ts'
import { withDuckDb } from '../support/duckdb.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const JULY_MS = Date.UTC(2026, 6, 1)
const DAY_MS = 86_400_000
const ALL = { dataset: 'candles', scopes: null, fromMs: 0, toMs: Date.UTC(2100, 0) } as const
const NEVER = new AbortController().signal
const inLake = (lake: string, scope: string, month: string): string =>
  join(lake, 'candles', `series=${scope}`, `month=${month}/candles.parquet`)

class CountedDuckDb extends DuckLake {
  statements = 0

  override heldChunks(...query: Parameters<DuckLake['heldChunks']>): ReturnType<DuckLake['heldChunks']> {
    this.statements += 1
    return super.heldChunks(...query)
  }
}

/** Writes candles of a month as compaction does. */
async function compacted(path: string, fromMs = JULY_MS): Promise<void> {
  mkdirSync(dirname(path), { recursive: true })
  const draft = await PartitionDraft.open(RECORD_TABLES[0]!)
  await draft.addHot(candleSet(1, fromMs, 5) as unknown as RecordRow[])
  await draft.mergeCommon()
  await draft.write(path, 1n)
  draft.close()
}

test('a file whose footer lists its markets is indexed from the footer, with the same result as from its rows', async (t) => {
  const lake = await temporaryDirectory(t)
  const [told, silent] = ['KXA', 'KXB'].map((scope) => inLake(lake, scope, '2026-07')) as [string, string]
  await compacted(told)
  mkdirSync(dirname(silent), { recursive: true })
  await withDuckDb((connection) =>
    connection.run(`COPY (SELECT * FROM read_parquet('${told}')) TO '${silent}' (FORMAT parquet)`),
  )
  const duck = new CountedDuckDb()
  const index = new CandleIndex(duck, new FileChecks())
  const [a, b] = findParts(lake, ALL, []) as [LakePart, LakePart]
  const fromFooter = await index.of(a, NEVER)
  assert.equal(duck.statements, 1)
  const fromRows = await index.of(b, NEVER)
  assert.ok(fromFooter.spans.length > 20)
  assert.deepEqual(fromFooter.spans, fromRows.spans)
  assert.deepEqual(fromFooter.toMs, fromRows.toMs)
  // The footer describes the whole file, so a clipped part is indexed from its rows.
  const clipped = { ...a, toMs: JULY_MS + 2 * DAY_MS, isRegistered: true }
  const part = await index.of(clipped, NEVER)
  assert.ok(part.isClipped)
  assert.ok(part.spans.every(({ lastMs }) => lastMs < clipped.toMs))
})

test('no file is read twice, however many files one request needs', async (t) => {
  const lake = await temporaryDirectory(t)
  const first = inLake(lake, 'KX0', '2026-07')
  await compacted(first)
  for (let number = 1; number < 600; number += 1) {
    const path = inLake(lake, `KX${number}`, '2026-07')
    mkdirSync(dirname(path), { recursive: true })
    copyFileSync(first, path)
  }
  const duck = new CountedDuckDb()
  const index = new CandleIndex(duck, new FileChecks())
  const statements: number[] = []
  for (let round = 0; round < 2; round += 1) {
    for (const part of findParts(lake, ALL, [])) await index.of(part, NEVER)
    statements.push(duck.statements)
  }
  assert.deepEqual(statements, [600, 600])
})

test('markets that several files of a series share are known until a file is replaced', async (t) => {
  const lake = await temporaryDirectory(t)
  const [july, august] = ['2026-07', '2026-08'].map((month) => inLake(lake, 'KXA', month)) as [string, string]
  await compacted(july)
  const index = new CandleIndex(new DuckLake(), new FileChecks())
  const sharedOf = async (): Promise<(readonly [shared: number, all: number])[]> => {
    const parts = []
    for (const part of findParts(lake, ALL, [])) parts.push(await index.of(part, NEVER))
    const shared = index.sharedSpans(parts)
    return parts.map((indexed) => [shared.get(indexed)!.length, indexed.spans.length])
  }
  const [[alone, all] = [0, 0]] = await sharedOf()
  assert.ok(alone === 0 && all > 20)
  await compacted(august, Date.UTC(2026, 7, 1))
  for (const [shared, each] of await sharedOf()) assert.equal(shared, each)
})

test('a plan keeps its shared markets while another request rereads its file', async (t) => {
  const lake = await temporaryDirectory(t)
  await compacted(inLake(lake, 'KXA', '2026-07'))
  const index = new CandleIndex(new DuckLake(), new FileChecks())
  const [part] = findParts(lake, ALL, []) as [LakePart]
  const before = await index.of(part, NEVER)
  const shared = index.sharedSpans([before])
  const after = await index.of({ ...part, isRegistered: true }, NEVER)
  assert.deepEqual(index.sharedSpans([after]).get(after), [])
  assert.deepEqual(shared.get(before), [])
  assert.deepEqual(index.sharedSpans([before]).get(before), before.spans)
})
