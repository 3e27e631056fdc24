// What `--from` and `--to` name: `s3://bucket/prefix` or a directory.

import { DirectoryStore } from './directory-store.ts'
import type { ObjectStore } from './object-store.ts'
import { S3Store } from './s3-store.ts'

export interface S3Settings {
  readonly endpoint?: string | undefined
  readonly region?: string | undefined
  readonly pathStyle?: boolean | undefined
}

const S3_URL = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/

/** The place a text names, or undefined for an `s3:` address without a valid bucket. Opens no connection. */
export function openObjectStore(place: string, settings: S3Settings = {}): ObjectStore | undefined {
  if (!place.startsWith('s3:')) return new DirectoryStore(place)
  const match = S3_URL.exec(place)
  if (match?.[1] === undefined) return undefined
  const prefix = (match[2] ?? '').replaceAll(/^\/+|\/+$/g, '')
  return new S3Store({ bucket: match[1], prefix, ...settings })
}
