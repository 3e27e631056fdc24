// A date with raw segments as both sides hold it at one look: what is listed, and what the manifests say.

import { readdir } from 'node:fs/promises'
import { lobSourceDirectory, rawKey } from '../../shared/lake-layout.ts'
import { DamagedManifestError, parseManifest, type DateManifest } from '../raw/date-manifest.ts'
import { listAll, type ListedObject, type ObjectStore, readTail } from './object-store.ts'
import { addRaw, countingSegments, type DateSide, placeOfRawKey, type RawDate } from './raw-dates.ts'
import { damagedObject, type RawTransfers } from './raw-transfers.ts'
import { SyncConflict } from './sync-report.ts'

/** Larger objects are not manifests of ours. */
const MANIFEST_BYTES_MAX = 256 * 1024 * 1024

/** The manifest of one side. */
export interface SideManifest {
  readonly manifest: DateManifest
  readonly text: string
  readonly version: string
}

export interface DateView extends RawDate {
  readonly own: SideManifest | undefined
  readonly others: SideManifest | undefined
  /** Names that the manifests of the higher epoch list, without superseded ones. */
  readonly counting: ReadonlySet<string>
  /** Names that either manifest lists. */
  readonly listed: ReadonlySet<string>
  /** The higher one. */
  readonly epoch: number
}

/** Reads the manifests of a date. @throws {SyncConflict} */
export async function viewOf(transfers: RawTransfers, date: RawDate): Promise<DateView> {
  const own = await readManifest(transfers, transfers.local, date, date.local.manifest)
  const others = await readManifest(transfers, transfers.remote, date, date.remote.manifest)
  const counting = countingSegments(own?.manifest, others?.manifest)
  return {
    ...date,
    own,
    others,
    counting: new Set(counting.map(({ name }) => name)),
    listed: new Set([...namesIn(own), ...namesIn(others)]),
    epoch: Math.max(epochOf(own), epochOf(others)),
  }
}

async function readManifest(
  { local, options: { signal } }: RawTransfers,
  store: ObjectStore,
  { source, date }: RawDate,
  object: ListedObject | undefined,
): Promise<SideManifest | undefined> {
  if (object === undefined) return undefined
  const name = `${store.name}/${object.key}`
  try {
    if (object.sizeBytes > MANIFEST_BYTES_MAX)
      throw new DamagedManifestError(name, `it has ${object.sizeBytes} bytes`)
    const text = (await readTail(store, object, signal)(0)).toString('utf8')
    const manifest = parseManifest(name, text)
    if (manifest.source !== source || manifest.date !== date)
      throw new DamagedManifestError(name, `it belongs to ${manifest.source} ${manifest.date}`)
    return { manifest, text, version: object.version }
  } catch (error) {
    if (!(error instanceof DamagedManifestError)) throw error
    throw store === local
      ? new SyncConflict(object.key, error.message, { cause: error })
      : damagedObject(object.key, error)
  }
}

/** The names of the segments that a manifest lists. */
export function namesIn(side: SideManifest | undefined): readonly string[] {
  return side?.manifest.segments.map(({ name }) => name) ?? []
}

export function epochOf(side: SideManifest | undefined): number {
  return side?.manifest.epoch ?? 0
}

/** Lists again what both sides hold of a date. */
export async function listAgain({ local, remote, options }: RawTransfers, date: RawDate): Promise<void> {
  const { lake, signal } = options
  const prefix = rawKey(date.source, date.date, '')
  const sides = [
    [local, date.local],
    [remote, date.remote],
  ] as const
  for (const [store, side] of sides) {
    side.segments.clear()
    side.manifest = side.state = undefined
    for (const object of (await listAll(store, signal, { raw: true, prefix })).values()) {
      const place = placeOfRawKey(object.key)
      if (place !== undefined) addRaw(side, object, place.name)
    }
  }
  const known = [...date.local.files.keys(), ...date.remote.files.keys()]
  for (const key of new Set([...known, ...(await localFileKeys(lake, date))])) {
    setFile(date.local, key, await local.stat(key))
    setFile(date.remote, key, await remote.head(key, signal))
  }
}

async function localFileKeys(lake: string, { source, date }: RawDate): Promise<string[]> {
  const names = await readdir(lobSourceDirectory(lake, source)).catch(() => [])
  const series = names.filter((name) => name.startsWith('series='))
  return series.map((name) => `lob/source=${source}/${name}/date=${date}.parquet`)
}

function setFile({ files }: DateSide, key: string, object: ListedObject | undefined): void {
  if (object === undefined) files.delete(key)
  else files.set(key, object)
}

/** Whether nothing is to be done for a date, as far as the journal knows. */
export function isNoted(transfers: RawTransfers, { local, remote, date }: RawDate): boolean {
  const { notes, isPush } = transfers
  const [own, other] = [objectsOf(local), objectsOf(remote)]
  for (const key of new Set([...own.keys(), ...other.keys()])) {
    // Old order-book files may have been pruned in the lake that pushes.
    if (isPush && !own.has(key) && remote.files.has(key) && !transfers.isOpen(date)) continue
    if (!notes.isEqual(key, own.get(key), other.get(key))) return false
  }
  return true
}

function objectsOf({ segments, manifest, state, files }: DateSide): ReadonlyMap<string, ListedObject> {
  const objects = new Map(files)
  for (const object of [...segments.values(), manifest, state])
    if (object !== undefined) objects.set(object.key, object)
  return objects
}
