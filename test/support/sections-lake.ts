// A lake with every case that sections have to handle: two dates of keyframed hours and one of a foreign file, carried-over books,
// a market that begins and one that pauses within an hour, and a silent one.

import { EVENT_ADD, EVENT_CLEAR, EVENT_GAP, EVENT_SET } from '../../shared/lob-v1.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import { PLAIN_FOREIGN_FILE, writeForeignLakeFile } from './lob-files.ts'
import { bookEvent, DAY_START, HOUR, SECOND, SERIES, writeEvents } from './recorded-events.ts'

export const SECTION_DATES = ['2026-07-01', '2026-07-02', '2026-07-03'] as const
export const BUSY = `${SERIES}-26JUL01-B80.5`
const SILENT = `${SERIES}-26JUL01-B82.5`
const LATE = `${SERIES}-26JUL02-B84.5`
const CONTRACT = 1_000_000
const MINUTE = 60n * SECOND
const DAY = 24n * HOUR

function quotes(id: string, ts: bigint, bid: number, ask: number): BookEvent[] {
  return [
    bookEvent(id, ts, EVENT_CLEAR),
    bookEvent(id, ts, EVENT_SET, 0, bid * 100, 10 * CONTRACT),
    bookEvent(id, ts, EVENT_SET, 1, ask * 100, 20 * CONTRACT),
  ]
}

function recordedEvents(): BookEvent[] {
  const events = [
    ...quotes(BUSY, DAY_START + 10n * MINUTE, 40, 42),
    ...quotes(SILENT, DAY_START + 3n * HOUR + 7n * SECOND, 1, 99),
    ...quotes(LATE, DAY_START + 30n * HOUR + 25n * MINUTE, 55, 54),
    // A pause across the end of an hour.
    bookEvent(LATE, DAY_START + 32n * HOUR + 50n * MINUTE, EVENT_GAP),
    ...quotes(LATE, DAY_START + 33n * HOUR + 10n * MINUTE, 60, 61),
  ]
  for (let step = 0; step < 500; step++) {
    const ts =
      DAY_START + 11n * MINUTE + BigInt(step) * 5n * MINUTE + BigInt((step * 7919) % 1000) * 1_000_000n
    const cents = (step & 1 ? 42 : 1) + ((step * 31) % 40)
    events.push(bookEvent(BUSY, ts, EVENT_ADD, step & 1, cents * 100, ((step % 9) + 1) * CONTRACT))
  }
  return events.toSorted((a, b) => (a.ts < b.ts ? -1 : Number(a.ts > b.ts)))
}

/** Writes the lake's three dates; the third one continues the books of the second and has no keyframes. */
export async function writeSectionsLake(lake: string): Promise<void> {
  await writeEvents(lake, recordedEvents(), {}, DAY_START + 2n * DAY - 1n)
  const third = DAY_START + 2n * DAY
  const later = Array.from({ length: 200 }, (_, step) =>
    bookEvent(
      step % 3 === 0 ? LATE : BUSY,
      third + BigInt(step) * 6n * MINUTE,
      EVENT_SET,
      step & 1,
      ((step & 1 ? 50 : 10) + (step % 30)) * 100,
      step * CONTRACT,
    ),
  )
  writeForeignLakeFile(
    lake,
    { source: 'kalshi', series: SERIES, date: SECTION_DATES[2] },
    later,
    PLAIN_FOREIGN_FILE,
  )
}

/**
 * Writes one date of markets with full books that do not change after midnight: rows are long and quickly made. Returns the number
 * of rows at one a second.
 */
export async function writeStillLake(lake: string, markets: number): Promise<number> {
  const events = Array.from({ length: markets }, (_, market) => {
    const id = `${SERIES}-26JUL01-B${70 + market}.5`
    return [
      bookEvent(id, DAY_START, EVENT_CLEAR),
      ...Array.from({ length: 98 }, (_unused, level) =>
        bookEvent(
          id,
          DAY_START,
          EVENT_SET,
          level < 49 ? 0 : 1,
          (level + 1) * 100,
          (1_000_000 + level * 1000 + market) * CONTRACT,
        ),
      ),
    ]
  }).flat()
  await writeEvents(lake, events, {}, DAY_START + DAY - 1n)
  return markets * 86_400
}
