// Reads a date's file of the lake back into a recording that goes on with it: its records, where its strands ended, and
// the books that it began with.

import { existsSync } from 'node:fs'
import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { SIDE_BID } from '../../shared/lob-v1.ts'
import { addDays } from '../../shared/utc-date.ts'
import { booksAtStart } from '../import/lake-dates.ts'
import { outlineOfFile, restoreRecords } from '../import/lake-records.ts'
import { MarketFold, RECORDING_OVER, STRAND_OVER } from '../lake/market-fold.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import type { LiveStrands, StrandEnd } from './live-strands.ts'

export interface DateRestart {
  readonly lake: string
  readonly source: LobSource
  readonly date: string
  readonly recording: SeriesRecording
  readonly strands: LiveStrands
}

/** Records that are held before they spill: some 50 MB. */
const HELD_RECORDS_MAX = 1_000_000

/** Returns the markets at the date's start, by index. Rejects with an error that names a file which cannot be read. */
export async function restoreDate({
  lake,
  source,
  date,
  recording,
  strands,
}: DateRestart): Promise<MarketFold[]> {
  const path = lobFilePath(lake, source, recording.series, date)
  const nextPath = lobFilePath(lake, source, recording.series, addDays(date, 1))
  const outline = await outlineOfFile(path)
  if (outline === undefined) throw new Error(`${path} was changed while it was read`)
  const next = existsSync(nextPath) ? await outlineOfFile(nextPath).catch(() => undefined) : undefined
  const spans = outline.strands
  const ends = strands.goOnFrom({ name: path, date, spans }, next?.strands ?? [])
  const sink = new SpillingRecording(recording)
  await restoreRecords({ date, path }, source, sink, ({ strand }) => {
    return [strand - spans.length, { ...spans[strand]! }]
  })
  for (const id of outline.markets) recording.know(id)
  for (const end of ends) for (const id of outline.markets) sink.restore(overRecord(end, id))
  const numberOf = (strand: number): number => strands.strandOf(strand - spans.length)
  const books = new Map(
    (await booksAtStart({ date, path }, outline, numberOf)).map((market) => [market.id, market.books]),
  )
  for (const id of books.keys()) recording.know(id)
  return recording.marketIds().map((id) => {
    const known = books.get(id) ?? []
    return new MarketFold({ serving: known[0]?.strand, isGapped: false, lastTs: 0n, rows: 0, known })
  })
}

function overRecord({ wentOn, ...end }: StrandEnd, marketId: string) {
  return {
    ...end,
    marketId,
    seq: BigInt(end.seq),
    event: wentOn ? RECORDING_OVER : STRAND_OVER,
    side: SIDE_BID,
    price: 0,
    qty: 0,
  }
}

/** A recording whose events do not stay in memory. */
class SpillingRecording implements Pick<SeriesRecording, 'restore'> {
  readonly #recording: SeriesRecording
  #held = 0

  constructor(recording: SeriesRecording) {
    this.#recording = recording
  }

  restore(event: Parameters<SeriesRecording['restore']>[0]): void {
    this.#recording.restore(event)
    if (++this.#held < HELD_RECORDS_MAX) return
    for (const hour of this.#recording.hours.values()) hour.spill()
    this.#held = 0
  }
}
