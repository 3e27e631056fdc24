// How many pages are decoded before the first rows of a large answer are sent: the rest of the hour waits.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { EVENT_ADD, EVENT_CLEAR } from '../../shared/lob-v1.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import { pageCompressors } from '../../shared/lob-file/decompress.ts'
import { type CollectedAnswer, collectLob, lobQuery } from '../support/lob-worker.ts'
import { bookEvent, DAY_START, HOUR, SERIES, writeEvents } from '../support/recorded-events.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DATE = '2026-07-01'
const GROUP_ROWS = 4096
const MARKETS = [0, 1, 2, 3, 4, 5].map((number) => `${SERIES}-26JUL01-B${70 + number}.5`)
const HOURS = 8
const COVERS_TO = DAY_START + BigInt(HOURS) * HOUR - 1n
/** Events of each market. */
const EVENTS = 12_000
/** Occurs once in each row of csv and json, and not in the csv header. */
const ROW = /KXHIGHNY/g
const CONTRACT = 1_000_000
/** Columns that a replay needs, each with at most a dictionary page and a page of values. */
const PAGES_PER_GROUP = 12

/** Six equally busy markets: an hour has two row groups and a bit. */
function busyHours(): BookEvent[] {
  return Array.from({ length: EVENTS }, (_, index) =>
    MARKETS.map((id, market) => {
      const ts = DAY_START + (BigInt(index) * BigInt(HOURS) * HOUR) / BigInt(EVENTS) + BigInt(market)
      const cents = (index & 1 ? 50 : 1) + ((index * 31) % 49)
      return index === 0
        ? bookEvent(id, DAY_START, EVENT_CLEAR)
        : bookEvent(id, ts, EVENT_ADD, index & 1, cents * 100, (1 + ((index * 7919) % 997)) * CONTRACT)
    }),
  ).flat()
}

interface Watched {
  readonly answer: CollectedAnswer
  /** Pages unpacked before the first chunk was sent, and in total. */
  readonly firstPages: number
  readonly pages: number
  readonly firstRows: number
}

async function watch(t: TestContext, lake: string, query: Partial<LobQuery>): Promise<Watched> {
  let pages = 0
  let firstPages: number | undefined
  const unpack = pageCompressors.ZSTD
  const unpacking = t.mock.method(pageCompressors, 'ZSTD', (input: Uint8Array, length: number) => {
    pages++
    return unpack(input, length)
  })
  try {
    const answer = await collectLob(
      lake,
      lobQuery({ series: SERIES, dates: [DATE], intervalS: 1, format: 'ndjson', ...query }),
      { onChunkSent: () => (firstPages ??= pages) },
    )
    assert.equal(answer.failure, undefined)
    const first = answer.body.subarray(0, answer.chunks[0])
    return { answer, firstPages: firstPages!, pages, firstRows: first.toString().match(ROW)?.length ?? 0 }
  } finally {
    unpacking.mock.restore()
  }
}

test('the first rows of a day are sent before its first row group is decoded', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeEvents(lake, busyHours(), { bounds: { groupRows: GROUP_ROWS } }, COVERS_TO)
  for (const query of [
    {},
    { levels: 50 },
    { format: 'csv' as const },
    { hour: 5 },
    { series: null, market: MARKETS[2]! },
    { format: 'json' as const, series: null, market: MARKETS[1]! },
  ]) {
    const { firstPages, firstRows, pages } = await watch(t, lake, query)
    const what = JSON.stringify(query)
    assert.ok(firstRows >= 1, `${what}: the first chunk has a row`)
    assert.ok(firstPages <= PAGES_PER_GROUP, `${what}: ${firstPages} of ${pages} pages came first`)
    assert.ok(pages > 3 * firstPages, `${what}: ${firstPages} of ${pages} pages came first`)
  }
})

test('an answer whose first rows were sent early equals the answers of its hours joined', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeEvents(lake, busyHours(), { bounds: { groupRows: GROUP_ROWS } }, COVERS_TO)
  const query = { series: null, market: MARKETS[1]! }
  const day = await watch(t, lake, query)
  const hours: Buffer[] = []
  for (let hour = 0; hour < HOURS; hour++) {
    const { answer, firstPages, pages } = await watch(t, lake, { ...query, hour })
    assert.equal(firstPages, pages, 'a small answer is made at once')
    hours.push(answer.body)
  }
  assert.ok(day.firstPages < day.pages)
  assert.ok(day.answer.body.equals(Buffer.concat(hours)))
})
