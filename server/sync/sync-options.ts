// The options of `bookcast serve` that keep its lake up to date with object storage, from text to checked values.

import {
  choiceOption,
  dateOption,
  integerOption,
  type OptionDeclaration,
  type OptionText,
  type ParsedOptions,
  urlOption,
} from '../options/options.ts'
import { CONFIGURED_TIMEOUT_MS_MAX, SYNC_INTERVAL_MS } from '../../shared/limits.ts'
import type { LakeChoice } from '../lake/lake-choice.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import { UsageError } from '../options/usage-error.ts'
import { parsePlace } from './sync-place.ts'
import type { S3Settings } from './sync-target.ts'

export interface SyncConfig extends S3Settings {
  /** The files to pull; null for all. */
  readonly choice?: LakeChoice | null
  /** `s3://bucket/prefix` or a directory. */
  readonly from: string
  readonly intervalMs?: number
}

/** Options for the access to object storage. */
export const S3_OPTIONS = [
  { name: 's3-endpoint', placeholder: '<url>', description: "address of an S3 service other than Amazon's" },
  {
    name: 's3-path-style',
    placeholder: '<yes|no>',
    description: 'put the bucket in the path, not in the host name. Default: yes with --s3-endpoint',
  },
] as const satisfies readonly OptionDeclaration[]

/** Options for the access to object storage, and for the interval of synchronizations. */
export const OBJECT_STORE_OPTIONS = [
  {
    name: 'sync-interval-ms',
    placeholder: '<ms>',
    description: 'pause between two synchronizations with object storage',
    default: String(SYNC_INTERVAL_MS),
  },
  ...S3_OPTIONS,
] as const satisfies readonly OptionDeclaration[]

/** Options for the files that a replica pulls. */
export const CHOICE_OPTIONS = [
  {
    name: 'sync-series',
    placeholder: '<list>',
    description: 'pull only order books, trades and candles of these series, comma-separated. Default: all',
  },
  {
    name: 'sync-from-date',
    placeholder: '<date>',
    description: 'pull only files of this UTC date (YYYY-MM-DD) and later ones. Default: all',
  },
] as const satisfies readonly OptionDeclaration[]

export const SYNC_OPTIONS = [
  {
    name: 'sync-from',
    placeholder: '<place>',
    description: 's3://bucket/prefix or a directory: the server keeps the lake up to date from it',
  },
  ...CHOICE_OPTIONS,
  ...OBJECT_STORE_OPTIONS,
] as const satisfies readonly OptionDeclaration[]

/** Null if the lake is not synchronized. */
export function readSync(options: ParsedOptions): SyncConfig | null {
  const from = options.get('sync-from')
  const choice = readChoice(options, from === undefined ? '--sync-from' : undefined)
  if (from === undefined) return null
  return { from: from.text, choice, intervalMs: readSyncInterval(options), ...readPlace(from, options) }
}

/**
 * The files to pull; null for all.
 * @param lacking the missing option without which nothing is pulled
 * @throws {UsageError}
 */
export function readChoice(options: ParsedOptions, lacking?: string): LakeChoice | null {
  const series = options.get('sync-series')
  for (const option of [series, options.get('sync-from-date')])
    if (option !== undefined && lacking !== undefined)
      throw new UsageError(`${option.origin} needs ${lacking}`)
  const names = series?.text.split(',').map((name) => name.trim())
  if (names?.every(isSeriesName) === false)
    throw new UsageError(
      `${series!.origin} takes series, comma-separated, not ${JSON.stringify(series!.text)}`,
    )
  const fromDate = dateOption(options.get('sync-from-date')) ?? null
  return names === undefined && fromDate === null ? null : { series: names ?? null, fromDate }
}

/** @throws {UsageError} */
export function readSyncInterval(options: ParsedOptions): number {
  return integerOption(options.demand('sync-interval-ms'), 1_000, CONFIGURED_TIMEOUT_MS_MAX)
}

/**
 * The settings for the access to an option's place.
 * @throws {UsageError} if the option does not name a place
 */
export function readPlace(place: OptionText, options: ParsedOptions): S3Settings {
  const endpoint = options.get('s3-endpoint')
  const pathStyle = options.get('s3-path-style')
  const settings = {
    endpoint: endpoint && urlOption(endpoint, ['http:', 'https:']),
    pathStyle: pathStyle && choiceOption(pathStyle, ['yes', 'no']) === 'yes',
  }
  if (parsePlace(place.text) === undefined) {
    throw new UsageError(
      `${place.origin} takes s3://bucket/prefix or a directory, not ${JSON.stringify(place.text)}`,
    )
  }
  return settings
}
