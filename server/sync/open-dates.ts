// Raw segments of the dates that are being recorded. Before a collector records, it pulls what object storage holds of today and of
// the day before, so that a collector that takes over goes on where the other one ended. While it records, new segments of the
// recorder reach object storage within seconds, without a listing.

import { rawKey } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays, utcDateOf } from '../../shared/utc-date.ts'
import { segmentsOnDisk } from '../raw/date-manifest.ts'
import type { Clock } from '../tasks/clock.ts'
import { syncLake } from './lake-sync.ts'
import type { ObjectStore } from './object-store.ts'
import { hourKeyOf, isOpenDate } from './raw-dates.ts'
import { RawTransfers } from './raw-transfers.ts'
import { SyncJournal } from './sync-journal.ts'
import { type LakeSyncResult, SyncReport } from './sync-report.ts'

export interface OpenDatesOptions {
  readonly lake: string
  readonly remote: ObjectStore
  /** The sources that are recorded. */
  readonly sources: readonly LobSource[]
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Pulls raw segments, manifests and derived files of the open dates. Nothing is folded. */
export async function pullOpenDates(options: OpenDatesOptions): Promise<LakeSyncResult> {
  const { sources, clock } = options
  return await syncLake({
    ...options,
    direction: 'pull',
    raw: true,
    folder: null,
    onlyDates: ({ source, date }) => sources.includes(source) && isOpenDate(date, clock.nowMs()),
  })
}

/** Pushes segments of recorders that this lake has not pushed. It lists no objects. */
export async function pushNewSegments(options: OpenDatesOptions): Promise<LakeSyncResult> {
  const { lake, remote, sources, clock, signal } = options
  const report = new SyncReport()
  const journal = await SyncJournal.open(lake, `push ${remote.name}`)
  try {
    const transfers = new RawTransfers({ ...options, journal, report, direction: 'push' })
    const today = utcDateOf(clock.nowMs())
    for (const source of sources) {
      for (const date of [addDays(today, -1), today]) {
        for (const name of await segmentsOnDisk(lake, source, date)) {
          signal.throwIfAborted()
          const key = rawKey(source, date, name)
          const isNew = (journal.get(key)?.targetVersion ?? null) === null
          if (!isNew || hourKeyOf(name) === undefined) continue
          try {
            await transfers.pushSegment(key)
          } catch (error) {
            signal.throwIfAborted()
            // The next push tries it again.
            report.addError(key, error)
          }
        }
      }
    }
    return report.result(report.transferredCount)
  } finally {
    await journal.close()
  }
}
