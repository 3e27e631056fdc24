// Raw segments of the dates that are being recorded. Before a collector records, it pulls the segments of today and yesterday from
// object storage, so that a collector that takes over continues where the other one ended. While it records, new segments of the
// recorder reach object storage within seconds, without a listing.

import { rawKey } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays, utcDateOf } from '../../shared/utc-date.ts'
import { segmentsOnDisk } from '../raw/date-manifest.ts'
import type { Clock } from '../tasks/clock.ts'
import { syncLake } from './lake-sync.ts'
import type { ObjectStore } from './object-store.ts'
import { hourKeyOf, isOpenDate, pullState } from './raw-dates.ts'
import { type LakeSyncResult, SyncConflict } from './sync-report.ts'
import { type RecordedDate, Transfers } from './transfers.ts'

/** How often new raw segments are pushed. With slices of 15 s, a message is in object storage within 30 s. */
export const RAW_PUSH_INTERVAL_MS = 5_000

export interface OpenDatesOptions {
  readonly lake: string
  readonly remote: ObjectStore
  /** The sources that are recorded. */
  readonly sources: readonly LobSource[]
  readonly clock: Clock
  readonly signal: AbortSignal
}

/**
 * Pulls raw segments, manifests and derived files of the open dates, also those of version 0.1, whose rows the recorder keeps. Nothing
 * is folded.
 */
export async function pullOpenDates(options: OpenDatesOptions): Promise<LakeSyncResult> {
  const { sources, clock } = options
  await pullOpeningStates(options)
  return await syncLake({
    ...options,
    direction: 'pull',
    raw: true,
    folder: null,
    onlyDates: isRecorded(sources, clock),
  })
}

/** Whether a recorder of these sources may write to a date. */
export function isRecorded(sources: readonly LobSource[], clock: Clock): (date: RecordedDate) => boolean {
  return ({ source, date }) => sources.includes(source) && isOpenDate(date, clock.nowMs())
}

/** Pulls the fold state with which the first open date begins, if the lake has nothing of the date before. */
async function pullOpeningStates(options: OpenDatesOptions): Promise<void> {
  const { sources, clock } = options
  const date = addDays(utcDateOf(clock.nowMs()), -2)
  await Transfers.run({ ...options, direction: 'pull' }, async (transfers) => {
    for (const source of sources)
      await pullState(transfers, source, date).catch((error: unknown) => {
        // It is damaged, and the lake's is not.
        if (!(error instanceof SyncConflict)) throw error
      })
  })
}

/** Pushes segments of recorders that this lake has not pushed. It lists no objects. */
export async function pushNewSegments(options: OpenDatesOptions): Promise<LakeSyncResult> {
  const { lake, sources, clock, signal } = options
  return await Transfers.run({ ...options, direction: 'push' }, async (transfers) => {
    const { journal, report } = transfers
    const today = utcDateOf(clock.nowMs())
    for (const source of sources) {
      for (const date of [addDays(today, -1), today]) {
        for (const name of await segmentsOnDisk(lake, source, date)) {
          signal.throwIfAborted()
          const key = rawKey(source, date, name)
          const isNew = (journal.get(key)?.targetVersion ?? null) === null
          if (!isNew || hourKeyOf(name) === undefined) continue
          // The next push tries a failed one again.
          await transfers.pushSegment(key).catch((error: unknown) => report.addError(key, error))
        }
      }
    }
  })
}
