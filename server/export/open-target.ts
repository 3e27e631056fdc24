// Opens the target named by `--out`.

import { parsePlace } from '../sync/sync-place.ts'
import type { S3Settings } from '../sync/sync-target.ts'
import { DirectoryTarget } from './directory-target.ts'
import type { ExportTarget } from './export-target.ts'
import { S3Target } from './s3-target.ts'

/** Opens no connection. `text` must be a place as sync-options.ts takes it. */
export function openExportTarget(text: string, settings: S3Settings = {}): ExportTarget {
  const place = parsePlace(text)
  if (place === undefined) throw new Error(`${text} is neither s3://bucket/prefix nor a directory`)
  return place.kind === 's3' ? new S3Target({ ...place, ...settings }) : new DirectoryTarget(place.path)
}
