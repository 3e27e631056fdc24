// Order-book files of a date were pruned locally but kept in object storage: a replacement must not silently remove a series there.

import assert from 'node:assert/strict'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { MissingSeriesError } from '../../server/fold/fold-raw-dates.ts'
import { bookcast } from '../support/program.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { lobFilePath, rawDateDirectory } from '../../shared/lake-layout.ts'
import { FOLD_STATE_NAME, readFoldState, stageFoldState } from '../../server/fold/fold-state.ts'

const DATE = '2026-06-24'
const OTHER = 'KXHIGHCHI-26JUN24-T90'

const linesOf = (sid: number, ticker: string): string[] =>
  [
    snapshot(1, { market_ticker: ticker, yes: [[40, 9]], ts_ms: MS }, sid),
    delta(2, { market_ticker: ticker, ts_ms: MS + 9000 }, sid),
  ].map((frame) => JSON.stringify(frame))

async function run(...args: string[]): Promise<void> {
  const { code, stderr } = await bookcast(args)
  assert.equal(code, 0, stderr)
}

/** A lake with two series that has pushed its date, and a replacement that lacks one of them. */
async function pushedLake(t: TestContext, isSealed = false) {
  const [lake, place] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const lines = [...linesOf(1, T), ...linesOf(2, OTHER)]
  const push = () => run('sync', '--lake', lake, '--to', place)
  const replace = (replacing = linesOf(1, T)) =>
    runImport(lake, 'kalshi', { lines: replacing }, { replace: true })
  await runImport(lake, 'kalshi', { lines })
  if (isSealed) await run('prune', '--lake', lake, '--keep-raw', '2', '--apply')
  await push()
  const files = async (): Promise<string[]> =>
    (await entriesBelow(place)).filter((name) => name.endsWith('.parquet'))
  return { lake, place, lines, push, replace, files }
}

for (const isSealed of [false, true])
  test(`a pruned series is not lost to a replacement that lacks it${isSealed ? ', after a seal' : ''}`, async (t) => {
    const { lake, place, lines, push, replace, files } = await pushedLake(t, isSealed)
    const before = await files()
    await run('prune', '--lake', lake, '--before', '2026-07-01', '--kept-in', place, '--apply')
    await assert.rejects(replace(), MissingSeriesError)
    await push()
    assert.deepEqual(await files(), before)
    await replace(lines)
    await push()
    assert.deepEqual(await files(), before)
    // Give up the series.
    await run('prune', '--lake', lake, '--before', '2026-07-01', '--kept-in', place, '--apply')
    await rm(join(rawDateDirectory(lake, 'kalshi', DATE), FOLD_STATE_NAME))
    await replace()
    await push()
    assert.equal((await files()).length, 1)
  })

test('a series is not lost to a replacement that lacks it if a prune was interrupted after its file', async (t) => {
  const { lake, push, replace, files } = await pushedLake(t)
  const before = await files()
  await rm(lobFilePath(lake, 'kalshi', 'KXHIGHCHI', DATE))
  await assert.rejects(replace(), MissingSeriesError)
  await push()
  assert.deepEqual(await files(), before)
})

test('a date whose markets were followed and never known can be replaced', async (t) => {
  const lake = await temporaryDirectory(t)
  const change = delta(2, { delta_fp: '0.00', ts_ms: MS })
  await runImport(lake, 'kalshi', { lines: [JSON.stringify(change)] })
  assert.deepEqual(
    (await entriesBelow(lake)).filter((name) => name.endsWith('.parquet')),
    [],
  )
  const { files } = await runImport(lake, 'kalshi', { lines: linesOf(1, T) }, { replace: true })
  assert.equal(files.length, 1)
})

test('the series of a pruned date of an earlier version are those of its markets', async (t) => {
  const { lake, place, lines, push, replace, files } = await pushedLake(t)
  const before = await files()
  await run('prune', '--lake', lake, '--before', '2026-07-01', '--kept-in', place, '--apply')
  const directory = rawDateDirectory(lake, 'kalshi', DATE)
  const { series: _, ...state } = (await readFoldState(directory))!
  const { temporary, path } = await stageFoldState(directory, state)
  await rename(temporary, path)
  await assert.rejects(replace(), MissingSeriesError)
  await replace(lines)
  await push()
  assert.deepEqual(await files(), before)
})
