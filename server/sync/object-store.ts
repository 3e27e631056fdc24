// The interface of a place with objects by key: an S3 bucket below a prefix, or a directory. Keys
// are relative, with forward slashes. A store shows an object only when it is whole.

import type { Readable } from 'node:stream'
import { lakePartitionOfKey, migratedKey } from '../../shared/lake-layout.ts'
import { OldLayoutError } from '../lake/old-layout.ts'
import { bytesOf } from './transfer-pump.ts'

/** Objects below one prefix; a larger listing is refused. A lake of 100 series for 10 years has 400,000. */
export const SYNC_OBJECTS_MAX = 5_000_000
/** An object of a listing. */
export interface ListedObject {
  readonly key: string
  readonly sizeBytes: number
  /** Changes whenever the content does: an ETag or, of a file, its size, modification time and inode. */
  readonly version: string
}

/** An object and the digests of its bytes, in lower-case hexadecimal; null if the store does not have them. */
export interface ObjectHead extends ListedObject {
  readonly sha256: string | null
  readonly md5: string | null
  /** The number of first bytes that are probably the same as in the version before. */
  readonly prefixBytes?: number
}

export interface WrittenObject {
  readonly version: string
  readonly sha256: string
}

export interface WriteOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with the number of bytes that are already present, then with the number of each further chunk. */
  readonly onBytes?: ((count: number) => void) | undefined
  /** Called with the content's SHA-256 before it may become visible under its key. */
  readonly beforeVisible?: ((sha256: string) => Promise<void>) | undefined
  /**
   * The version to replace; null if there must be no object. If the store has another version, the write rejects with
   * ObjectChanged. Some services ignore this.
   */
  readonly replaces?: string | null | undefined
  /** Whether the first bytes may be copied from the version that is replaced, instead of being transferred again. */
  readonly reusesPrefix?: boolean
}

/** Opens an object's bytes from an offset. Rejects with ObjectChanged if the object was replaced. */
export type OpenBytes = (offset: number, signal?: AbortSignal) => Promise<Readable>

/** The options of a listing. */
export interface ListOptions {
  /** Also raw segments, manifests and fold states. */
  readonly raw?: boolean
  /** Only keys that begin with it. It ends with a slash. */
  readonly prefix?: string
}

export interface ObjectStore {
  /** For messages. */
  readonly name: string
  /** Lake files, and raw files on demand. */
  list(signal?: AbortSignal, options?: ListOptions): AsyncIterable<ListedObject>
  /** Undefined when there is none. */
  head(key: string, signal?: AbortSignal): Promise<ObjectHead | undefined>
  /** The object's bytes from an offset. Rejects with ObjectChanged if its version has changed. */
  get(object: ListedObject, offset: number, signal?: AbortSignal): Promise<Readable>
  /**
   * Writes an object with the size and digests of `head`, or rejects and leaves the one before. Rejects with
   * DamagedTransfer when the bytes that arrived are not those. A directory rejects with UnreadableObject.
   */
  put(head: ObjectHead, open: OpenBytes, options?: WriteOptions): Promise<WrittenObject>
  /** Removes an object; does nothing if there is none. */
  remove(key: string, signal?: AbortSignal): Promise<void>
  close(): void
}

/** The object was replaced or removed since it was listed or read. */
export class ObjectChanged extends Error {
  constructor(key: string) {
    super(`${key} changed during its transfer`)
    this.name = 'ObjectChanged'
  }
}

/** The bytes that arrived are not the object's. */
export class DamagedTransfer extends Error {
  constructor(key: string, reason: string) {
    super(`${key} arrived damaged: ${reason}`)
    this.name = 'DamagedTransfer'
  }
}

/** The object cannot be read as a lake file, and would replace a readable one. */
export class UnreadableObject extends Error {
  constructor(key: string) {
    super(`${key} cannot be read`)
    this.name = 'UnreadableObject'
  }
}

export const RAW_PREFIX = 'raw/'
const RAW_NAME = /\/(?:manifest\.json|fold\.json\.gz|[^/]+\.ndjson\.gz)$/
const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._=+@-]*$/

/**
 * Whether a key names a file of a dataset, also in the layout of version 0.1. Synchronization ignores all other objects, such as
 * exports and temporary files.
 */
export function isLakeKey(key: string): boolean {
  return lakePartitionOfKey(key) !== undefined || (migratedKey(key) !== undefined && isPlainKey(key))
}

function isPlainKey(key: string): boolean {
  return key.length <= 1024 && key.split('/').every((segment) => SEGMENT.test(segment))
}

/** Whether a key is in the raw folder: segments, manifests and fold states, also misnamed segments. */
export function isRawKey(key: string): boolean {
  return key.startsWith(RAW_PREFIX) && RAW_NAME.test(key) && isPlainKey(key)
}

/** Whether a listing with these options contains the key. */
export function isListed(key: string, { raw = false, prefix = '' }: ListOptions = {}): boolean {
  return key.startsWith(prefix) && (isLakeKey(key) || (raw && isRawKey(key)))
}

/** Whether both sides are known to hold the same bytes. */
export function isEqual(a: ObjectHead, b: ObjectHead): boolean {
  if (a.sizeBytes !== b.sizeBytes) return false
  if (a.sha256 !== null && b.sha256 !== null) return a.sha256 === b.sha256
  return a.md5 !== null && a.md5 === b.md5
}

/** All objects of a store by key. @throws {OldLayoutError} */
export async function listAll(
  store: ObjectStore,
  signal: AbortSignal | undefined,
  options: ListOptions = {},
): Promise<Map<string, ListedObject>> {
  const objects = new Map<string, ListedObject>()
  for await (const object of store.list(signal, options)) {
    if (objects.size === SYNC_OBJECTS_MAX)
      throw new Error(`${store.name} has more than ${SYNC_OBJECTS_MAX} objects`)
    if (migratedKey(object.key) !== undefined) throw new OldLayoutError(store.name, object.key)
    objects.set(object.key, object)
  }
  return objects
}

/** Reads an object from an offset to its end. */
export function readTail(
  store: ObjectStore,
  object: ListedObject,
  signal: AbortSignal | undefined,
): (offset: number) => Promise<Buffer> {
  return async (offset) => bytesOf(await store.get(object, offset, signal), signal)
}
