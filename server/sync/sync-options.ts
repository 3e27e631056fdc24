// The options of `bookcast serve` that keep its lake up to date with object storage, from text to checked values.

import { type OptionDeclaration, type OptionText, type ParsedOptions } from '../commands/options.ts'
import { UsageError } from '../commands/command.ts'
import { openObjectStore, type S3Settings } from './sync-target.ts'

export interface SyncConfig extends S3Settings {
  /** `s3://bucket/prefix` or a directory. */
  readonly from: string
}

export const SYNC_OPTIONS = [
  {
    name: 'sync-from',
    placeholder: '<place>',
    description: 's3://bucket/prefix or a directory from which the lake is kept up to date',
    env: 'BOOKCAST_SYNC_FROM',
  },
  {
    name: 's3-endpoint',
    placeholder: '<url>',
    description: "another S3 service than Amazon's",
    env: 'BOOKCAST_S3_ENDPOINT',
  },
  {
    name: 's3-path-style',
    placeholder: '<yes|no>',
    description: 'the bucket in the path, not in the host name. None: yes with an endpoint of its own',
    env: 'BOOKCAST_S3_PATH_STYLE',
  },
] as const satisfies readonly OptionDeclaration[]

/** Null when the lake is not kept up to date. */
export function readSync(options: ParsedOptions): SyncConfig | null {
  const from = options.get('sync-from')
  if (from === undefined) return null
  const settings = {
    endpoint: readEndpoint(options.get('s3-endpoint')),
    pathStyle: readPathStyle(options.get('s3-path-style')),
  }
  const store = openObjectStore(from.text, settings)
  if (store === undefined) {
    throw new UsageError(
      `${from.origin} takes s3://bucket/prefix or a directory, not ${JSON.stringify(from.text)}`,
    )
  }
  store.close()
  return { from: from.text, ...settings }
}

/** @throws {UsageError} */
export function readEndpoint(option: OptionText | undefined): string | undefined {
  if (option === undefined || /^https?:\/\/[^/]/.test(option.text)) return option?.text
  throw new UsageError(`${option.origin} takes an http or https address, not ${JSON.stringify(option.text)}`)
}

/** @throws {UsageError} */
export function readPathStyle(option: OptionText | undefined): boolean | undefined {
  if (option === undefined) return undefined
  if (option.text === 'yes' || option.text === 'no') return option.text === 'yes'
  throw new UsageError(`${option.origin} takes yes or no, not ${JSON.stringify(option.text)}`)
}
