// Opens the places of `--from` and `--to`.

import { DirectoryStore } from './directory-store.ts'
import type { ObjectStore } from './object-store.ts'
import { S3Store, type S3StoreOptions } from './s3-store.ts'
import { parsePlace } from './sync-place.ts'
import { TailedStore } from './tailed-store.ts'

export type S3Settings = Omit<S3StoreOptions, 'bucket' | 'prefix'>

/** Opens the place that a text names, without a connection. @throws {Error} for an `s3:` address without a valid bucket */
export function openObjectStore(text: string, settings: S3Settings = {}): ObjectStore {
  const place = parsePlace(text)
  if (place === undefined) throw new Error(`${text} is not a place: give s3://bucket/prefix or a directory`)
  return place.kind === 's3'
    ? new TailedStore(new S3Store({ ...place, ...settings }))
    : new DirectoryStore(place.path)
}
