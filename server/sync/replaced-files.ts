// A lake without raw segments has no manifests to follow. Before a pull, it removes each pulled file that a replacement of its date
// has removed from the remote place. Files that this lake made or imported stay.

import { existsSync } from 'node:fs'
import {
  type DerivedFile,
  derivedFileOfKey,
  RAW_MANIFEST_NAME,
  rawDateDirectory,
} from '../../shared/lake-layout.ts'
import { BUSY_WAIT_MS_MAX, MergeBusy, withLock } from '../fold/series-lock.ts'
import type { ListedObject } from './object-store.ts'
import { RawDate } from './raw-dates.ts'
import type { Transfers } from './transfers.ts'

type Objects = ReadonlyMap<string, ListedObject>

/**
 * Removes the pulled files that a replacement has removed from the remote place. A file stays if the place has no other of its source
 * and date: then the whole date may be gone for another reason.
 * @returns the keys of the files that it removed
 */
export async function removeReplacedFiles(
  transfers: Transfers,
  own: Objects,
  others: Objects,
): Promise<ReadonlySet<string>> {
  const removed = new Set<string>()
  const missing = [...own.keys()].flatMap((key) => {
    const file = others.has(key) || !transfers.hasWritten(key) ? undefined : derivedFileOfKey(key)
    return file === undefined ? [] : [{ key, file }]
  })
  if (missing.length === 0) return removed
  const held = new Set([...others.keys()].map((key) => dateOf(derivedFileOfKey(key))))
  const replaced = new Map<string, boolean>()
  for (const { key, file } of missing.filter((one) => held.has(dateOf(one.file))))
    await transfers.retry(key, async () => {
      const isReplaced = replaced.get(dateOf(file)) ?? (await wasReplaced(transfers, file))
      replaced.set(dateOf(file), isReplaced)
      if (isReplaced && (await removePulled(transfers, key, file))) removed.add(key)
    })
  return removed
}

function dateOf(file: DerivedFile | undefined): string {
  return file === undefined ? '' : `${file.source} ${file.date}`
}

/** Whether the remote manifest shows that the date was replaced. */
async function wasReplaced(transfers: Transfers, { source, date }: DerivedFile): Promise<boolean> {
  const both = new RawDate(source, date)
  const key = both.key(RAW_MANIFEST_NAME)
  const object = await transfers.remote.head(key, transfers.options.signal)
  if (object === undefined) return false
  both.remote.objects.set(key, object)
  await both.readManifests(transfers)
  return both.remote.replacementEpoch > 0
}

/** Removes the file, unless it has changed since the pull or the lake has raw segments of its date. Returns whether it was removed. */
async function removePulled(
  transfers: Transfers,
  key: string,
  { source, date }: DerivedFile,
): Promise<boolean> {
  const { lake, signal } = transfers.options
  const work = async (): Promise<boolean> => {
    if (existsSync(rawDateDirectory(lake, source, date)) || !(await transfers.isPulled(key))) return false
    await transfers.remove(transfers.local, key)
    return true
  }
  try {
    return await withLock({ lake, source }, { waitMs: BUSY_WAIT_MS_MAX, signal }, work)
  } catch (error) {
    // Another process writes to the lake: the next pull looks again.
    if (error instanceof MergeBusy) return false
    throw error
  }
}
