// A date keeps the trades that only the segments of a neighbouring date had, after that date was sealed.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { sealDate } from '../../server/raw/date-removal.ts'
import { framesText, seriesText } from '../../server/raw/segment-lines.ts'
import { SegmentWriter } from '../../server/raw/segment-writer.ts'
import type { TradesSource } from '../../server/ingest/exchange/trades-sources.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { tradesKey } from '../../shared/lake-layout.ts'
import { fetchTrades, foldAll, frameOf, randomTrades } from './random-trades.ts'
import type { TrueTrade } from './random-trades.ts'
import { readTrades } from './trade-rows.ts'

const DATES = ['2026-06-30', '2026-07-01', '2026-07-02'] as const
const [BEFORE, DATE, AFTER] = DATES
const MARKETS = { kalshi: 'KXHIGHNY-26JUL01-B80.5', polymarket: '0xaa:11' } as const
const SERIES = { kalshi: 'KXHIGHNY', polymarket: 'ELECTION' } as const
const CONNECTION = 'rec1/1/0/1'

/** Writes a recorder's hour with trades at these times. */
async function record(
  lake: string,
  source: TradesSource,
  place: { readonly date: string; readonly hour: number },
  trades: readonly TrueTrade[],
): Promise<void> {
  const writer = await SegmentWriter.open(lake, { source, recorder: 'rec1' })
  const market = MARKETS[source]
  const from = trades[0]!.us * 1000n
  writer.add(seriesText(from, new Map([[market, SERIES[source]]])), from)
  for (const trade of trades) {
    const n = Number((trade.us / 1000n) % 1_000_000_000n)
    const recvTs = trade.us * 1000n + 9_000_000_000n
    const frame = JSON.stringify(frameOf(source, trade, n))
    writer.add(framesText(recvTs, frame, false, { connection: CONNECTION, n }), recvTs)
  }
  await writer.finish({ ...place, recorder: 'rec1' })
}

test('trades that are filed under a neighbouring date stay after it was sealed', async (t) => {
  const root = await temporaryDirectory(t)
  for (const source of ['kalshi', 'polymarket'] as const) {
    const lake = join(root, source)
    const at = (time: string): TrueTrade => ({
      ...randomTrades(source, 1, 1)[0]!,
      market: MARKETS[source],
      us: BigInt(Date.parse(`${time}Z`)) * 1000n,
      id: time,
    })
    // The first hour of a date has late trades of the date before, and its last hour the first trades of the next one.
    const [first, last] = [at(`${DATE}T00:00:09`), at(`${DATE}T23:59:59`)]
    const noon = at(`${DATE}T12:00:00`)
    await record(lake, source, { date: BEFORE, hour: 23 }, [at(`${BEFORE}T23:30:00`), first])
    await record(lake, source, { date: DATE, hour: 12 }, [noon])
    await record(lake, source, { date: AFTER, hour: 0 }, [last, at(`${AFTER}T00:30:00`)])
    await foldAll(lake, source)
    const path = join(lake, tradesKey(source, SERIES[source], DATE))
    const whole = await readFile(path)
    assert.equal((await readTrades(lake, source)).length, 5)
    for (const date of [BEFORE, AFTER]) assert.ok(await sealDate(lake, source, date))
    const signal = new AbortController().signal
    await foldRawDates({ lake, source, dates: [DATE] }, {}, signal)
    assert.ok((await readFile(path)).equals(whole), source)
    // A row of REST is one with the message of the sealed date.
    await fetchTrades(lake, source, [first, last, at(`${DATE}T13:00:00`)], {
      date: DATE,
      series: SERIES[source],
    })
    await foldRawDates({ lake, source, dates: [DATE] }, {}, signal)
    const rows = (await readTrades(lake, source)).filter(
      ({ ts }) => ts / 1000n >= first.us && ts / 1000n <= last.us,
    )
    assert.deepEqual(
      rows.map(({ origin }) => origin),
      ['ws', 'ws', 'rest', 'ws'],
      source,
    )
  }
})
