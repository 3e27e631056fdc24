// Synchronizes raw segments and what is derived from them, date by date, oldest first, since a date begins with the books of
// the date before.
//
// The order of writes is the same in both directions: segments, order-book files, fold state, manifest. So a manifest never
// promises more than its files, wherever a process is killed. Each write names the version that it replaces. If another
// writer was faster, the date is looked at again.
//
// Removal is an epoch. A manifest with a higher epoch than the other side's removes from that side every segment that it does
// not list, and such segments are never copied. In the bucket the manifest is written before the segments are removed, so that
// a killed push cannot undo the removal; in the lake the segments are removed first, so that no fold reads them again. Segments
// that no manifest lists are folded where no epoch was raised, and removed from the bucket where one was.

import { rawKey, RAW_MANIFEST_NAME } from '../../shared/lake-layout.ts'
import { SYNC_ATTEMPTS_MAX } from '../../shared/limits.ts'
import { MergeBusy } from '../fold/series-lock.ts'
import { backOffMs, TRANSFER_BACK_OFF } from '../tasks/back-off.ts'
import { DateSettlement } from './date-settlement.ts'
import { replacedSince } from './object-store.ts'
import { dateIdOfKey, type RawDate } from './raw-dates.ts'
import type { RawFolder } from './raw-folder.ts'
import { type RawTransferOptions, RawTransfers } from './raw-transfers.ts'
import { SyncConflict } from './sync-report.ts'

/** So often a date is tried of which a listed segment is missing. */
const LOOKS_FOR_MISSING = 3
/** Passes over all dates, at most: a fold may change dates that were looked at before. */
const PASSES_MAX = 3

export interface RawSyncOptions extends RawTransferOptions {
  /** Undefined where nothing is folded. */
  readonly folder: RawFolder | undefined
  /** Brings over an order-book file of a date without manifests. */
  readonly bringOver: (key: string) => Promise<void>
}

/** Synchronizes dates, in the given order. What fails is in the report. */
export async function syncRawDates(options: RawSyncOptions, dates: readonly RawDate[]): Promise<void> {
  const { signal, remote } = options
  const transfers = new RawTransfers(options)
  const settlement = new DateSettlement(transfers, options.folder, options.bringOver)
  for (let pass = 1; pass <= PASSES_MAX; pass++) {
    const before = settlement.foldCount
    for (const date of dates) {
      signal.throwIfAborted()
      await settleDate(settlement, options, date, pass > 1)
    }
    if (settlement.foldCount === before) break
  }
  for (let look = 1; look <= PASSES_MAX && transfers.written.size > 0; look++) {
    const replaced = await replacedSince(remote, transfers.written, signal)
    const ids = new Set(replaced.map(dateIdOfKey))
    for (const date of dates)
      if (ids.has(`${date.source} ${date.date}`)) await settleDate(settlement, options, date, true)
  }
}

/** One date, tried again a bounded number of times. Its failure stops no other date. */
async function settleDate(
  settlement: DateSettlement,
  { signal, report, clock }: RawSyncOptions,
  date: RawDate,
  isAgain: boolean,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await settlement.settle(date, isAgain || attempt > 1)
      return
    } catch (error) {
      signal.throwIfAborted()
      // Another process writes to the series: the next synchronization goes on.
      if (error instanceof MergeBusy) return
      const attemptsMax =
        error instanceof SyncConflict ? (error.mayPass ? LOOKS_FOR_MISSING : 1) : SYNC_ATTEMPTS_MAX
      if (attempt >= attemptsMax) {
        report.addError(rawKey(date.source, date.date, RAW_MANIFEST_NAME), error)
        return
      }
      await clock.sleep(backOffMs(TRANSFER_BACK_OFF, attempt), signal)
    }
  }
}
