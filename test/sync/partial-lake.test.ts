// A replica with a part of the lake: it pulls only its selection and answers requests for anything else with `not_held`.

import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { isChosen } from '../../server/lake/lake-choice.ts'
import { bookcast } from '../support/program.ts'
import { readTree, writeTree } from '../support/lake-tree.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const place = storeOfThisFile()
const CHOICE = { series: ['KXHIGHNY', 'highest-temperature-in-nyc'], fromDate: '2026-07-02' }
const ARGS = ['--sync-series', CHOICE.series.join(','), '--sync-from-date', CHOICE.fromDate]

test('a replica holds its selection, and every request for the rest gets not_held', async (t) => {
  const [source, lake] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await cp(SAMPLE_LAKE, source, { recursive: true })
  const records = {
    // A fill reads up to a year before the range.
    'candles/series=KXHIGHNY/month=2025-05/candles.parquet': 'z',
    'candles/series=KXHIGHNY/month=2025-07/candles.parquet': 'a',
    'candles/series=KXHIGHNY/month=2026-06/candles.parquet': 'b',
    'candles/series=KXHIGHCHI/month=2026-07/candles.parquet': 'c',
    'trades/source=kalshi/series=KXHIGHNY/date=2026-06-30/trades.parquet': 'f',
    'trades/source=kalshi/series=KXHIGHCHI/date=2026-07-02/trades.parquet': 'g',
    'observations/station=NYC/year=2026/observations.parquet': 'd',
    'observations/station=NYC/year=2024/observations.parquet': 'e',
  }
  await writeTree(source, records)
  assert.equal((await bookcast(['sync', '--lake', lake, '--from', source, ...ARGS])).code, 0)
  const held = Object.keys(await readTree(source)).filter((key) => isChosen(CHOICE, key))
  assert.deepEqual(Object.keys(await readTree(lake)).toSorted(), held.toSorted())
  assert.deepEqual(
    held.filter((key) => key in records),
    [
      'candles/series=KXHIGHNY/month=2025-07/candles.parquet',
      'candles/series=KXHIGHNY/month=2026-06/candles.parquet',
      'observations/station=NYC/year=2026/observations.parquet',
    ],
  )
  assert.equal(held.filter((key) => key.startsWith('lob/')).length, 4)
  assert.equal(held.filter((key) => key.startsWith('trades/')).length, 2)

  const sync = { from: join(source), choice: CHOICE }
  const { url } = await startSampleServer(t, { lake, sync }, undefined, place.store.postgres.address)
  const tail = 'hour=18&interval=3600'
  const token = `0x${'1'.repeat(64)}`
  for (const [target, code] of [
    [`lob?series=KXHIGHNY&date=2026-07-02&${tail}`, undefined],
    [`lob?market=KXHIGHNY-26JUL02-B80.5&date=2026-07-02&${tail}`, undefined],
    [`lob?series=KXHIGHNY-26JUL02&date=2026-07-02&${tail}`, undefined],
    [`lob?source=polymarket&series=highest-temperature-in-nyc&date=2026-07-03&${tail}`, undefined],
    [`lob?market=KXHIGHNY-26JUL02-B1&date=2026-07-02&${tail}`, 'unknown_market'],
    [`lob?series=KXHIGHNY&date=2026-07-01&${tail}`, 'not_held'],
    [`lob?series=KXHIGHNY&from=2026-07-01&to=2026-07-02&interval=3600`, 'not_held'],
    [`lob?series=KXHIGHCHI&date=2026-07-02&${tail}`, 'not_held'],
    [`lob?market=KXHIGHCHI-26JUL02-B80.5&date=2026-07-02&${tail}`, 'not_held'],
    [`lob?source=polymarket&market=${token}&date=2026-07-02&${tail}`, 'not_held'],
    ['trades?series=KXHIGHNY&date=2026-07-02', undefined],
    ['trades?market=KXHIGHNY-26JUL02-B1&date=2026-07-02', 'unknown_market'],
    ['trades?series=KXHIGHNY&date=2026-07-01', 'not_held'],
    ['trades?event=KXHIGHCHI-26JUL02&date=2026-07-02', 'not_held'],
    [`trades?source=polymarket&market=${token}&date=2026-07-02`, 'not_held'],
    ['files?dataset=trades&series=KXHIGHNY&from=2026-07-02', undefined],
    ['files?dataset=lob&series=KXHIGHNY&from=2026-07-02', undefined],
    ['files?dataset=lob&from=2026-07-02', 'not_held'],
    ['files?dataset=observations&from=2026-07-01', 'not_held'],
    ['series', undefined],
  ] as const) {
    const response = await fetch(`${url}/api/v1/${target}`)
    const body = await response.text()
    assert.equal(
      response.status === 200 ? undefined : (JSON.parse(body) as { code: string }).code,
      code,
      target,
    )
    if (code === 'not_held') assert.equal(response.status, 503)
    const isOfAll = target.startsWith('files?dataset=lob&from')
    assert.equal(body.includes('ask another one, or name a series that it holds.'), isOfAll)
  }
})

test('an invalid selection is refused, and the error names the option', async (t) => {
  const lake = await temporaryDirectory(t)
  const from = ['--sync-from', lake]
  for (const [args, text] of [
    [['--sync-series', 'A'], '--sync-series needs --sync-from'],
    [[...from, '--sync-series', 'A,,B'], '--sync-series takes series, comma-separated, not "A,,B"'],
    [
      [...from, '--sync-from-date', '2026-02-30'],
      '--sync-from-date must be a date (YYYY-MM-DD), not "2026-02-30"',
    ],
  ] as const) {
    const { code, stderr } = await bookcast(['serve', '--lake', lake, '--check-config', ...args])
    assert.equal(code, 2)
    assert.ok(stderr.includes(text), stderr)
  }
  const pushed = await bookcast(['sync', '--lake', lake, '--to', lake, '--sync-series', 'A'])
  assert.deepEqual([pushed.code, pushed.stderr.includes('--sync-series needs --from')], [2, true])
})
