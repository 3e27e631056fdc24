// Book events for tests of the lake's writers, and a recording of them.

import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import type { WrittenLobFile } from '../../server/lake/lob-publication.ts'
import type { LobRecordingWriterOptions } from '../../server/lake/lob-recording-writer.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { EVENT_CLEAR as CLEAR, EVENT_GAP as GAP } from '../../shared/lob-v1.ts'

export const SECOND = 1_000_000_000n
export const HOUR = 3600n * SECOND
/** 2026-07-01T00:00:00Z. */
export const DAY_START = BigInt(Date.parse('2026-07-01T00:00:00Z')) * 1_000_000n
export const SERIES = 'KXHIGHNY'

/** One event; side, price and quantity only matter for `set` and `add`. */
export function bookEvent(
  marketId: string,
  ts: bigint,
  event: number,
  side = 0,
  price = 0,
  qty = 0,
): BookEvent {
  const level = event === CLEAR || event === GAP ? { side: 0, price: 0, qty: 0 } : { side, price, qty }
  return { marketId, ts, recvTs: ts + 5n, seq: 7n, event, ...level }
}

/** Writes the events of one series into the lake; `coversTo` is the recording's end if it is later than the last event. */
export async function writeEvents(
  lake: string,
  events: readonly BookEvent[],
  options: Partial<LobRecordingWriterOptions> = {},
  coversTo?: bigint,
): Promise<WrittenLobFile[]> {
  const writer = new LobRecordingWriter({ lake, source: 'kalshi', ...options })
  for (const event of events) writer.append(SERIES, event)
  if (coversTo !== undefined) writer.cover(SERIES, coversTo)
  return await writer.finish()
}

export function pathOfDate(lake: string, date: string): string {
  return lobFilePath(lake, 'kalshi', SERIES, date)
}
