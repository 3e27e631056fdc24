// A file's records on their way back into a recording: as the feed told them, each with the span that it came with.

import { EVENT_ADD, EVENT_CLEAR, EVENT_SET, PRICE_UNITS_PER_DOLLAR, SIDE_ASK } from '../../shared/lob-v1.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { earlier } from '../../shared/utc-date.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import { LobFileEvidence } from '../lake/lob-file-evidence.ts'
import type { LakeDateOutline, LakeRecord } from '../lake/lob-file-evidence.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import { dayOf } from './series-spans.ts'

/** A date's file in the lake, or a copy of one. */
export interface LakeFile {
  readonly date: string
  readonly path: string
}

/** What a record's span says of it. `fromTs` becomes the earliest time of its records where it is not known. */
export interface RestoredSpan {
  readonly sid: number | null
  readonly isTurned: boolean | null
  fromTs: bigint | undefined
}

/** The span of a record, and its number in the recording. */
export type SpanOfRecord = (record: LakeRecord) => readonly [number: number, span: RestoredSpan]

/** What a file was made of; undefined where it keeps no evidence. Throws an error that names a file which cannot be read. */
export async function outlineOfFile(path: string): Promise<LakeDateOutline | undefined> {
  const file = await LobFileEvidence.open(path)
  try {
    return await file?.outline()
  } finally {
    await file?.close()
  }
}

/** Adds every record of the file to the recording. Throws an error that names a file which cannot be read. */
export async function restoreRecords(
  { date, path }: LakeFile,
  source: LobSource,
  recording: Pick<SeriesRecording, 'restore'>,
  spanOf: SpanOfRecord,
): Promise<void> {
  const { hasNoLeg } = exchangeOf(source)
  const file = await LobFileEvidence.open(path)
  if (file === undefined) throw new Error(`${path} was changed while it was merged with`)
  try {
    await file.read(
      (record) => {
        const [number, span] = spanOf(record)
        const toldTs = toldTime(record, span)
        if (span.fromTs === undefined || toldTs < span.fromTs) span.fromTs = toldTs
        const price = toldPrice(record, hasNoLeg && span.isTurned !== true)
        const seq = span.sid === null ? 0n : record.seq
        recording.restore({ ...record, marketId: record.market, price, seq, span: number })
      },
      () => undefined,
      dayOf(date).start,
    )
  } finally {
    await file.close()
  }
}

/** The time as its message had it: a snapshot that was put later has its receipt alone. */
function toldTime({ event, ts, recvTs }: LakeRecord, { sid }: RestoredSpan): bigint {
  const isSnapshot = event === EVENT_CLEAR || event === EVENT_SET
  return sid !== null && isSnapshot ? earlier(ts, recvTs) : ts
}

/** The price as its message had it: on the `no` leg where the exchange has not turned it. */
function toldPrice({ event, side, price }: LakeRecord, isInverted: boolean): number {
  const isLevel = event === EVENT_SET || event === EVENT_ADD
  return isLevel && isInverted && side === SIDE_ASK ? PRICE_UNITS_PER_DOLLAR - price : price
}
