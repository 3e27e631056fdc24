// Derives the order-book files of a source again from its raw segments, date by date.

import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { rawDateDirectory, rawKey } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { isErrno } from '../../shared/errno.ts'
import {
  isSealed,
  manifestPath,
  rawDates,
  readManifest,
  segmentsOnDisk,
  unlistedIn,
} from '../raw/date-manifest.ts'
import { DamagedSegmentError, verifySegment } from '../raw/segment-reader.ts'
import { FOLD_VERSION } from './fold-raw-dates.ts'
import type { WrittenLobFile } from '../lake/lob-publication.ts'
import type { WrittenTrades } from '../trades/trades-fold.ts'
import type { DateRule, FoldListeners, Folding } from './fold-order.ts'
import { FOLD_STATE_NAME, hasFoldState } from './fold-state.ts'
import { MERGE_WAIT_MS_MAX, withLock } from './series-lock.ts'

export interface RebuildOptions {
  readonly lake: string
  readonly source: LobSource
  /** UTC dates, both inclusive. With either of them, every date of the range is derived again; without, only those that need it. */
  readonly from: string | undefined
  readonly to: string | undefined
  /** Nothing is written. */
  readonly isDryRun: boolean
  /** Dates are derived without their damaged and missing segments. */
  readonly withoutDamaged: boolean
  readonly folding: Folding
  readonly listeners: FoldListeners
  readonly signal: AbortSignal
}

export interface RebuiltDate {
  readonly files: readonly WrittenLobFile[]
  readonly trades: readonly WrittenTrades[]
  /** Keys of segments that were left out. */
  readonly leftOut: readonly string[]
}

export interface RebuildPlan {
  /** Dates to derive again, ascending. */
  readonly dates: readonly string[]
  /** Dates that cannot be derived again: their raw segments were removed. */
  readonly sealed: readonly string[]
}

/** Which dates are derived again. Throws an error for the user if the lake has none of the range. */
export async function rebuildPlan(options: RebuildOptions): Promise<RebuildPlan> {
  const { lake, source, from, to } = options
  const isAsked = from !== undefined || to !== undefined
  const all = await rawDates(lake, source)
  const wanted = all.filter(
    (date) => (from === undefined || date >= from) && (to === undefined || date <= to),
  )
  if (wanted.length === 0 && isAsked) {
    const span = from === to ? `of ${from}` : `from ${from ?? 'the first date'} to ${to ?? 'the last date'}`
    throw new Error(
      `The lake ${lake} has no raw segments of ${source} ${span}. Pull them from object storage, or import the recordings.`,
    )
  }
  const [dates, sealed]: [string[], string[]] = [[], []]
  for (const date of wanted) {
    const need = await needOf(options, date)
    if (need === 'sealed') sealed.push(date)
    else if (need === 'stale' || isAsked) dates.push(date)
  }
  return { dates, sealed }
}

async function needOf({ lake, source }: RebuildOptions, date: string): Promise<'none' | 'stale' | 'sealed'> {
  const [manifest, names] = [await readManifest(lake, source, date), await segmentsOnDisk(lake, source, date)]
  if (manifest === undefined) return names.length > 0 ? 'stale' : 'none'
  if (isSealed(manifest)) return 'sealed'
  if (manifest.fold > FOLD_VERSION) {
    throw new Error(
      `${source} ${date} was derived by a newer version of Bookcast (fold ${manifest.fold}, this one has ${FOLD_VERSION}). ` +
        'Rebuild it with that version.',
    )
  }
  const isCurrent = manifest.fold === FOLD_VERSION && unlistedIn(manifest, names) === undefined
  return isCurrent && (await hasFoldState(lake, manifest)) ? 'none' : 'stale'
}

/** Derives dates again. A date whose opening state changes is derived too. Each date is published before the next is read. */
export async function* rebuildDates(
  options: RebuildOptions,
  dates: readonly string[],
): AsyncGenerator<RebuiltDate> {
  const { lake, source, isDryRun, folding, listeners, signal } = options
  const done = new Set<string>()
  // A fold also derives the trades of a neighbouring date, whose own fold may follow.
  const reported = new Set<string>()
  // A fold reads the segments of neighbouring dates too.
  const rules = new Map<string, DateRule & { readonly omitted: readonly string[] }>()
  for (const date of options.withoutDamaged ? dates : [])
    rules.set(date, { added: [], omitted: await damagedSegments(options, date) })
  for (const date of dates) {
    if (done.has(date)) continue
    const { files, trades: all } = await folding(
      { lake, source, dates: [date], rules, isDryRun },
      listeners,
      signal,
    )
    const folded = [...new Set([date, ...files.map((file) => file.date)])]
    const leftOut: string[] = []
    for (const one of folded) {
      done.add(one)
      const omitted = rules.get(one)?.omitted ?? []
      if (!isDryRun && omitted.length > 0) await setAside(options, one, omitted)
      leftOut.push(...omitted.map((name) => rawKey(source, one, name)))
    }
    const trades = all.filter(({ path }) => !reported.has(path))
    for (const { path } of trades) reported.add(path)
    yield { files, trades, leftOut }
  }
}

async function damagedSegments({ lake, source, signal }: RebuildOptions, date: string): Promise<string[]> {
  const manifest = await readManifest(lake, source, date)
  const listed = manifest?.segments.map(({ name }) => name) ?? []
  const names = new Set([...listed, ...(await segmentsOnDisk(lake, source, date))])
  const damaged: string[] = []
  for (const name of names) {
    try {
      await verifySegment(join(rawDateDirectory(lake, source, date), name), { signal })
    } catch (error) {
      if (!(error instanceof DamagedSegmentError)) throw error
      damaged.push(name)
    }
  }
  return damaged
}

/**
 * Renames damaged segments, so that they are no longer segments. A date that has none left loses its manifest and its state: what is
 * fetched again can be added to it, and its order-book files stay as files without raw segments.
 */
async function setAside(
  { lake, source, signal }: RebuildOptions,
  date: string,
  names: readonly string[],
): Promise<void> {
  const directory = rawDateDirectory(lake, source, date)
  await withLock({ lake, source }, { waitMs: MERGE_WAIT_MS_MAX, signal }, async () => {
    for (const name of names) {
      try {
        await rename(join(directory, name), join(directory, `${name}.damaged`))
      } catch (error) {
        if (!isErrno(error, 'ENOENT')) throw error
      }
    }
    if ((await segmentsOnDisk(lake, source, date)).length > 0) return
    // The manifest last: without it a killed run's successor would not see that the date has lost its state.
    await rm(join(directory, FOLD_STATE_NAME), { force: true })
    await rm(manifestPath(lake, source, date), { force: true })
  })
}
