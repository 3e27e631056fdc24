// One connection lasts for days while markets open and end: the recorder keeps state only for the open ones.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { readCheckpoint } from '../../server/recorder/checkpoint.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { aliveMark } from '../../server/feed/wal-mark.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { runs } from '../support/effort.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { type ScriptRecord, writeWal } from '../support/wal-script.ts'

const START_MS = Date.parse('2026-06-24T01:00:00Z')
const DAYS = runs(3, 5)
const TOKENS_A_DAY = 6
const MARKET = `0x${'ab'.repeat(32)}`
const SERIES = 'highest-temperature-in-nyc'
const CLOCK_MS = 30_000

const tokensOf = (day: number): string[] =>
  Array.from({ length: TOKENS_A_DAY }, (_, index) => String(10_000 + day * 100 + index))

const bookOf = (token: string, ms: number): object => ({
  event_type: 'book',
  market: MARKET,
  asset_id: token,
  timestamp: String(ms),
  bids: [{ price: '0.4', size: '5' }],
  asks: [],
})

/** One connection follows a day's tokens from the start of the day to the start of the next one. */
function recordsOf(day: number): ScriptRecord[] {
  const ms = START_MS + day * MS_PER_DAY
  const entries = Object.fromEntries(tokensOf(day).map((token) => [`${MARKET}:${token}`, SERIES]))
  const left = {
    type: 'unsubscribe',
    assets_ids: tokensOf(day - 1),
    operation: 'unsubscribe',
    initial_dump: true,
  }
  return [
    { kind: WAL_KIND.series, ms, frame: entries },
    { ms: ms + 10, frame: tokensOf(day).map((token) => bookOf(token, ms)) },
    ...(day === 0 ? [] : [{ kind: WAL_KIND.command, ms: ms + 20, frame: left }]),
    ...Array.from({ length: MS_PER_DAY / CLOCK_MS - 1 }, (_, tick) => ms + (tick + 1) * CLOCK_MS).flatMap(
      (at) => [
        { kind: WAL_KIND.mark, ms: at, frame: aliveMark(at) },
        { kind: WAL_KIND.clock, ms: at },
      ],
    ),
  ]
}

test('the recorder drops the books of ended markets while its connection stays open', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  const workDirectory = join(lake, '.recorder')
  const kept: number[][] = []
  const start = [{ kind: WAL_KIND.start, ms: START_MS - 1 }]
  let limit = await writeWal(workDirectory, 'polymarket', start)
  const fold = await LiveFold.open({ lake, source: 'polymarket', workDirectory })
  for (let day = 0; day < DAYS; day++) {
    limit = await writeWal(workDirectory, 'polymarket', recordsOf(day))
    while (await fold.advance(limit));
    const state = await readCheckpoint(join(workDirectory, 'polymarket-latest.checkpoint'))
    assert.ok(state !== undefined)
    const followed = state.dates.flatMap(({ chains }) => chains.map((chain) => chain.followed.length))
    const [series] = state.series
    kept.push([Math.max(...followed), series?.recording.markets.length ?? 0, series?.folds.length ?? 0])
  }
  const { tally, badLines } = fold.figures
  assert.deepEqual([[...tally.gaps], badLines], [[['no longer followed', (DAYS - 1) * TOKENS_A_DAY]], 0])
  await fold.close()
  // The open date's file still has rows of the previous day, so the recorder keeps two days.
  for (const [tokens, markets, folds] of kept.slice(1))
    assert.ok(
      tokens! <= TOKENS_A_DAY && markets! <= 2 * TOKENS_A_DAY && folds! <= 2 * TOKENS_A_DAY,
      kept.join(' | '),
    )
})
