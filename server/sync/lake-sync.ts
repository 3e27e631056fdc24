// Brings a target up to date with a source: pull (object storage to lake) and push (lake to object storage) are the same
// work. New and changed objects are transferred, several at once. Dates with raw segments are synchronized as their manifests
// say (date-sync.ts), if raw is requested. All other files follow replacement.ts: a pull removes only what a replacement removed
// from object storage (replaced-files.ts), and unless asked, no object is replaced by one that covers less. One object's failure
// stops no other. Samples are never pushed.

import { mkdir } from 'node:fs/promises'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { isChosen, type LakeChoice } from '../lake/lake-choice.ts'
import { asLakeWriteError } from '../lake/lake-write-error.ts'
import { RawFolder } from '../fold/raw-folder.ts'
import { DirectoryStore } from './directory-store.ts'
import { inParallel } from './in-parallel.ts'
import { listAll, type ListedObject } from './object-store.ts'
import { recordedDateOfKey, splitByDate } from './raw-dates.ts'
import { removeReplacedFiles } from './replaced-files.ts'
import { writeOutcome } from './sync-journal.ts'
import type { LakeSyncResult } from './sync-report.ts'
import { type RecordedDate, type TransferOptions, Transfers } from './transfers.ts'

export type { LakeSyncResult } from './sync-report.ts'
export type { SyncProgress } from './transfers.ts'

const HELD = 'object storage holds raw segments of its date; push without --no-raw'

export interface LakeSyncOptions
  extends Omit<TransferOptions, 'clock' | 'signal'>, Partial<Pick<TransferOptions, 'clock' | 'signal'>> {
  /** Whether raw segments are synchronized too: a push does it by default, a pull does not. */
  readonly raw?: boolean
  /** The files that a pull transfers; null for all. */
  readonly choice?: LakeChoice | null
  /** Folds dates of which each side has segments that the other lacks. `null`: no date is folded. */
  readonly folder?: RawFolder | null
  /** Only the raw segments and derived files of these dates. */
  readonly onlyDates?: ((date: RecordedDate) => boolean) | undefined
}

/**
 * Synchronizes once. Resolves also when objects failed (see the result); rejects when a side cannot be listed or the
 * signal aborts. The next run continues where this one stopped. The time of a run without failures is kept for /health.
 */
export async function syncLake(options: LakeSyncOptions): Promise<LakeSyncResult> {
  return await synced(options).catch((error: unknown) => {
    throw asLakeWriteError(error, options.lake)
  })
}

async function synced(options: LakeSyncOptions): Promise<LakeSyncResult> {
  const { lake, remote, direction, onlyDates, progress, clock = SYSTEM_CLOCK } = options
  const { signal = new AbortController().signal } = options
  const isPush = direction === 'push'
  if (!isPush) await mkdir(lake, { recursive: true })
  const raw = options.raw ?? isPush
  // A push without raw must know which dates object storage has raw of.
  const [own, others] = await Promise.all([
    listAll(new DirectoryStore(lake), signal, { raw }),
    listAll(remote, signal, { raw: raw || isPush }),
  ])
  const [source, target] = isPush ? [own, others] : [others, own]
  return await Transfers.run({ ...options, clock, signal }, async (transfers) => {
    const { report } = transfers
    const isOfDates = (key: string): boolean => {
      if (onlyDates === undefined) return true
      const date = recordedDateOfKey(key)
      return date !== undefined && onlyDates(date)
    }
    if (!isPush) {
      const ownOfDates = new Map([...own].filter(([key]) => isOfDates(key)))
      for (const key of await removeReplacedFiles(transfers, ownOfDates, others)) own.delete(key)
    }
    const split = splitByDate({ local: own, remote: others })
    for (const { side, key } of raw ? split.misnamed : [])
      report.conflictReasons.set(key, misnamedReason(`${side === 'local' ? lake : remote.name}/${key}`))
    const dates = raw ? split.dates.filter((date) => onlyDates?.(date) ?? true) : []
    if (dates.length > 0) {
      // A server has no raw: it does not load the fold.
      const { syncDates } = await import('./date-sync.ts')
      const folder = options.folder === undefined ? new RawFolder(lake, { shareMax: 1 }) : options.folder
      await syncDates(transfers, folder ?? undefined, dates)
    }
    const { choice } = options
    const isWanted = (key: string): boolean =>
      (isPush || choice === undefined || choice === null || isChosen(choice, key)) && isOfDates(key)
    const isPlain = ({ key }: ListedObject): boolean =>
      isWanted(key) && !(raw && split.isOfDate(key)) && !transfers.isNoted(key, own.get(key), others.get(key))
    const plain = [...source.values()].filter(isPlain)
    progress?.onPlan?.({
      objects: plain.length,
      sizeBytes: plain.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    })
    await inParallel(plain, { parallel: options.parallel, signal }, async ({ key }) => {
      const heldBecause = !raw && isPush && split.isOfDate(key) ? HELD : undefined
      await transfers.transfer(key, { isPresent: target.has(key), heldBecause })
    })
    report.objectCount = [...source.keys()].filter(isWanted).length
    if (report.failures.length === 0 && onlyDates === undefined)
      await writeOutcome(lake, { lastSyncMs: clock.nowMs(), fileCount: report.objectCount })
  })
}

function misnamedReason(path: string): string {
  return `${path} is misnamed: a segment is called <recorder>-<hour>-<digest>.ndjson.gz. Rename or remove it.`
}
