// Renames the files of a lake of version 0.1 to today's layout, on disk and in object storage. An old name is removed only when the
// new name has the same bytes. So a run that is killed at any time loses nothing, and the next run resumes.

import { createHash } from 'node:crypto'
import { link, mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isErrno } from '../../shared/errno.ts'
import { migratedKey } from '../../shared/lake-layout.ts'
import { haveEqualBytes, syncNames } from '../lake/durable-file.ts'
import { type OldFile, oldFiles } from '../lake/old-layout.ts'
import { inParallel } from './in-parallel.ts'
import { isEqual, ObjectChanged, SYNC_OBJECTS_MAX } from './object-store.ts'
import type { S3ObjectHead, S3Store } from './s3-store.ts'
import { migrateJournals } from './sync-journal.ts'
import { tailKey } from './tailed-store.ts'
import { pumpBytes } from './transfer-pump.ts'

export interface MigrationOptions {
  readonly signal?: AbortSignal | undefined
  /** Called when a file has its new name and no longer its old one. */
  readonly onMoved: (file: OldFile) => void
  /** Called if a file of other bytes already has the new name. Both files stay. */
  readonly onConflict: (file: OldFile) => void
}

/** Renames the files of a lake directory, and their keys in the journals of its synchronizations. */
export async function migrateDirectory(lake: string, options: MigrationOptions): Promise<void> {
  await migrateJournals(lake, migratedKey)
  for await (const files of oldFiles(lake)) {
    options.signal?.throwIfAborted()
    const named: OldFile[] = []
    for (const file of files) {
      if (await haveNewName(join(lake, file.key), join(lake, file.newKey))) named.push(file)
      else options.onConflict(file)
    }
    await syncNames(named.map(({ newKey }) => join(lake, newKey)))
    for (const file of named) {
      await rm(join(lake, file.key))
      options.onMoved(file)
    }
    await syncNames(named.map(({ key }) => join(lake, key)))
  }
}

/** Links a file under its new name, unless that exists. False if a file of other bytes has the new name. */
async function haveNewName(path: string, newPath: string): Promise<boolean> {
  await mkdir(dirname(newPath), { recursive: true })
  try {
    await link(path, newPath)
    return true
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error
    return await haveEqualBytes(path, newPath)
  }
}

/** Renames the objects of a bucket: the service copies each one, the copy is checked, then the old one is removed. */
export async function migrateBucket(store: S3Store, options: MigrationOptions): Promise<void> {
  const { signal } = options
  const files: OldFile[] = []
  for await (const { key } of store.list(signal)) {
    const newKey = migratedKey(key)
    if (newKey === undefined) continue
    if (files.length === SYNC_OBJECTS_MAX)
      throw new Error(`${store.name} has more than ${SYNC_OBJECTS_MAX} objects`)
    files.push({ key, newKey })
  }
  await inParallel(files, { signal }, async (file) => {
    if (await moveObject(store, file, signal)) options.onMoved(file)
    else options.onConflict(file)
  })
}

/** False if an object of other bytes has the new name. */
async function moveObject(
  store: S3Store,
  { key, newKey }: OldFile,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const source = await store.head(key, signal)
  if (source === undefined) return true
  const copied = await copyOf(store, source, newKey, signal)
  if (copied === undefined) return false
  // The tail, which a recorder has uploaded since it wrote the whole object (tailed-store.ts).
  const tail = await store.head(tailKey(key), signal)
  if (tail !== undefined) {
    const continued = { ...tail.metadata, base: copied.version }
    const metadata = tail.metadata['base'] === source.version ? continued : tail.metadata
    if ((await copyOf(store, tail, tailKey(newKey), signal, metadata)) === undefined) return false
    await store.remove(tail.key, signal)
  }
  await store.remove(key, signal)
  return true
}

/** Copies an object, unless the new name exists. Undefined if an object of other bytes has the new name. */
async function copyOf(
  store: S3Store,
  source: S3ObjectHead,
  newKey: string,
  signal: AbortSignal | undefined,
  metadata = source.metadata,
): Promise<S3ObjectHead | undefined> {
  if ((await store.head(newKey, signal)) === undefined) await store.copy(source, newKey, metadata, signal)
  const copied = await store.head(newKey, signal)
  if (copied === undefined) throw new ObjectChanged(newKey)
  return (await haveSameBytes(store, source, copied, signal)) ? copied : undefined
}

/** Compares digests. If one is missing (multipart uploads, objects encrypted with a key), both objects are read. */
async function haveSameBytes(
  store: S3Store,
  a: S3ObjectHead,
  b: S3ObjectHead,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (a.sizeBytes !== b.sizeBytes) return false
  if (a.version === b.version || isEqual(a, b)) return true
  if ((a.sha256 ?? a.md5) !== null && (b.sha256 ?? b.md5) !== null) return false
  const digestOf = async (head: S3ObjectHead): Promise<string> => {
    const hash = createHash('sha256')
    await pumpBytes(await store.get(head, 0, signal), async (chunk) => void hash.update(chunk), signal)
    return hash.digest('hex')
  }
  return (await digestOf(a)) === (await digestOf(b))
}
