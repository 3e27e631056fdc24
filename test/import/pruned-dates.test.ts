// Order-book files of a date were pruned locally but kept in object storage: a replacement must not silently remove a series there.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { MissingSeriesError } from '../../server/fold/fold-raw-dates.ts'
import { ClosedDateError } from '../../server/import/date-rules.ts'
import { bookcast } from '../support/program.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import { FOLD_STATE_NAME } from '../../server/fold/fold-state.ts'

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

for (const isSealed of [false, true])
  test(`a pruned series is not lost to a replacement that lacks it${isSealed ? ', after a seal' : ''}`, async (t) => {
    const [lake, place] = [await temporaryDirectory(t), await temporaryDirectory(t)]
    await runImport(lake, 'kalshi', { lines: [...linesOf(1, T), ...linesOf(2, OTHER)] })
    if (isSealed) await run('prune', '--lake', lake, '--keep-raw', '2', '--apply')
    await run('sync', '--lake', lake, '--to', place)
    const files = async (): Promise<string[]> =>
      (await entriesBelow(place)).filter((name) => name.endsWith('.parquet'))
    const before = await files()
    await run('prune', '--lake', lake, '--before', '2026-07-01', '--kept-in', place, '--apply')
    const replacing = () => runImport(lake, 'kalshi', { lines: linesOf(1, T) }, { replace: true })
    await assert.rejects(replacing(), ClosedDateError)
    await run('sync', '--lake', lake, '--to', place)
    assert.deepEqual(await files(), before)
    // Apply the remedies.
    await run('sync', '--lake', lake, '--from', place, '--raw')
    await assert.rejects(replacing(), MissingSeriesError)
    await run('prune', '--lake', lake, '--before', '2026-07-01', '--kept-in', place, '--apply')
    await rm(join(rawDateDirectory(lake, 'kalshi', DATE), FOLD_STATE_NAME))
    await replacing()
    await run('sync', '--lake', lake, '--to', place)
    assert.equal((await files()).length, 1)
  })
