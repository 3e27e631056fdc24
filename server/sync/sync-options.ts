// The options of `bookcast serve` that keep its lake up to date with object storage, from text to checked values.

import {
  integerOption,
  type OptionDeclaration,
  type OptionText,
  type ParsedOptions,
} from '../options/options.ts'
import { CONFIGURED_TIMEOUT_MS_MAX, SYNC_INTERVAL_MS } from '../../shared/limits.ts'
import { UsageError } from '../options/usage-error.ts'
import { parsePlace } from './sync-place.ts'
import type { S3Settings } from './sync-target.ts'

export interface SyncConfig extends S3Settings {
  /** `s3://bucket/prefix` or a directory. */
  readonly from: string
  readonly intervalMs?: number
}

/** How object storage is reached. */
export const S3_OPTIONS = [
  {
    name: 's3-endpoint',
    placeholder: '<url>',
    description: "address of an S3 service other than Amazon's",
    env: 'BOOKCAST_S3_ENDPOINT',
  },
  {
    name: 's3-path-style',
    placeholder: '<yes|no>',
    description: 'put the bucket in the path, not in the host name. Default: yes with --s3-endpoint',
    env: 'BOOKCAST_S3_PATH_STYLE',
  },
] as const satisfies readonly OptionDeclaration[]

/** How object storage is reached, and how often. */
export const OBJECT_STORE_OPTIONS = [
  {
    name: 'sync-interval-ms',
    placeholder: '<ms>',
    description: 'pause between two synchronizations with object storage',
    env: 'BOOKCAST_SYNC_INTERVAL_MS',
    default: String(SYNC_INTERVAL_MS),
  },
  ...S3_OPTIONS,
] as const satisfies readonly OptionDeclaration[]

export const SYNC_OPTIONS = [
  {
    name: 'sync-from',
    placeholder: '<place>',
    description: 's3://bucket/prefix or a directory: the server keeps the lake up to date from it',
    env: 'BOOKCAST_SYNC_FROM',
  },
  ...OBJECT_STORE_OPTIONS,
] as const satisfies readonly OptionDeclaration[]

/** Null when the lake is not kept up to date. */
export function readSync(options: ParsedOptions): SyncConfig | null {
  const from = options.get('sync-from')
  if (from === undefined) return null
  return { from: from.text, intervalMs: readSyncInterval(options), ...readPlace(from, options) }
}

/** @throws {UsageError} */
export function readSyncInterval(options: ParsedOptions): number {
  return integerOption(options.demand('sync-interval-ms'), 1_000, CONFIGURED_TIMEOUT_MS_MAX)
}

/**
 * How to reach the place that an option names.
 * @throws {UsageError} when it names none
 */
export function readPlace(place: OptionText, options: ParsedOptions): S3Settings {
  const settings = {
    endpoint: readEndpoint(options.get('s3-endpoint')),
    pathStyle: readPathStyle(options.get('s3-path-style')),
  }
  if (parsePlace(place.text) === undefined) {
    throw new UsageError(
      `${place.origin} takes s3://bucket/prefix or a directory, not ${JSON.stringify(place.text)}`,
    )
  }
  return settings
}

/** @throws {UsageError} */
function readEndpoint(option: OptionText | undefined): string | undefined {
  if (option === undefined || /^https?:\/\/[^/]/.test(option.text)) return option?.text
  throw new UsageError(`${option.origin} takes an http or https address, not ${JSON.stringify(option.text)}`)
}

/** @throws {UsageError} */
function readPathStyle(option: OptionText | undefined): boolean | undefined {
  if (option === undefined) return undefined
  if (option.text === 'yes' || option.text === 'no') return option.text === 'yes'
  throw new UsageError(`${option.origin} takes yes or no, not ${JSON.stringify(option.text)}`)
}
