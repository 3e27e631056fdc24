import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import * as fc from 'fast-check'
import type { WrittenLobFile } from '../../server/lake/lob-publication.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import {
  EVENT_ADD as ADD,
  EVENT_CLEAR as CLEAR,
  EVENT_GAP as GAP,
  EVENT_SET as SET,
} from '../../shared/lob-v1.ts'
import { applyNaively, bookText, readRows, replayRows } from '../support/lob-rows.ts'
import type { NaiveBook } from '../support/lob-rows.ts'
import { DAY_START, HOUR, SECOND, bookEvent, writeEvents } from '../support/recorded-events.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

interface Step {
  readonly market: number
  readonly kind: number
  readonly side: number
  readonly price: number
  /** The quantity of the level after the change, so that none falls below zero. */
  readonly level: number
  readonly seconds: number
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    market: fc.nat(3),
    kind: fc.oneof(
      { weight: 1, arbitrary: fc.constantFrom(CLEAR, GAP) },
      { weight: 8, arbitrary: fc.constantFrom(SET, ADD) },
    ),
    side: fc.nat(1),
    price: fc.constantFrom(50, 100, 4550, 9999),
    level: fc.nat(4),
    seconds: fc.oneof(fc.constant(0), fc.nat(900), fc.nat(20_000)),
  }),
  { maxLength: 120 },
)

function streamOf(list: readonly Step[]): BookEvent[] {
  const books = new Map<string, NaiveBook>()
  let ts = DAY_START
  return list.map(({ market, kind, side, price, level, seconds }) => {
    ts += BigInt(seconds) * SECOND
    const marketId = `M${market}`
    const before = books.get(marketId)?.get(`${side}:${price}`) ?? 0n
    const qty = kind === ADD ? level - Number(before) : level
    const event = bookEvent(marketId, ts, kind, side, price, qty)
    books.set(marketId, applyNaively(books.get(marketId), kind, side, price, BigInt(event.qty)))
    return event
  })
}

function replayEvents(events: readonly BookEvent[]): Map<string, NaiveBook> {
  const books = new Map<string, NaiveBook>()
  for (const { marketId, event, side, price, qty } of events) {
    books.set(marketId, applyNaively(books.get(marketId), event, side, price, BigInt(qty)))
  }
  return books
}

// The file alone, read from any hour on, must end with the books of the whole stream at the end of its date.
async function checkFile(file: WrittenLobFile, events: readonly BookEvent[]): Promise<void> {
  const rows = await readRows(file.path)
  const dayStart = BigInt(Date.parse(`${file.date}T00:00:00Z`)) * 1_000_000n
  const expected = replayEvents(events.filter(({ ts }) => ts < dayStart + 24n * HOUR))
  for (let from = dayStart; from < dayStart + 24n * HOUR; from += HOUR) {
    if (from < file.coversFrom || from > file.coversTo) continue
    const replayed = replayRows(rows.filter((row) => row.ts >= from))
    for (const [market, book] of expected) {
      assert.equal(bookText(replayed.get(market)), bookText(book), `${market} from ${from}`)
    }
  }
}

test('replaying any file from any of its hours gives the books of the whole stream', async (t) => {
  const root = await temporaryDirectory(t)
  let run = 0
  const property = fc.asyncProperty(
    steps,
    fc.constantFrom(3, 1000),
    fc.constantFrom(1, 2, 1000),
    async (list, groupRows, passRows) => {
      const events = streamOf(list)
      const lake = join(root, String(run++))
      const files = await writeEvents(lake, events, { bounds: { groupRows, passRows, spillBytes: 48 * 70 } })
      let recorded = 0
      for (const file of files) {
        await checkFile(file, events)
        // Keyframes alone have no sequence number.
        recorded += (await readRows(file.path)).filter((row) => row.seq !== 0n).length
      }
      assert.equal(recorded, events.length)
      const left = await entriesBelow(lake)
      assert.ok(!left.some((name) => name.includes('.tmp')), left.join())
    },
  )
  await fc.assert(property, { numRuns: 60, seed: 20260701 })
})
