// The server's part in the entity tags of record answers: which versions of the store's datasets an answer is made from.
// They are looked up before the request is handed on, so a tag is never newer than the bytes; the thread that plans the
// answer adds the query and the lake files. An answer whose range moves with the clock has no tag, and none has while the
// store is away.

import type { RecordQuery, RecordValidation } from '../../shared/record-task.ts'
import type { DataVersions } from '../catalogue/catalogue-feed.ts'
import type { CachePolicy } from '../http/cache-policy.ts'
import type { Validator } from '../http/endpoint.ts'
import { heldIdentities } from '../http/etag.ts'
import type { DatasetName } from '../storage/store-transaction.ts'

export interface RecordValidatorOptions {
  /** What the store said last; empty while it is away. */
  readonly versions: () => DataVersions
  readonly cachePolicy: CachePolicy
  /** The version of the program: another one may write other bytes. */
  readonly version: string
}

const DATASETS: Readonly<Record<RecordQuery['kind'], readonly DatasetName[]>> = {
  candles: ['candles', 'lake_manifest', 'markets', 'series'],
  observations: ['observations', 'lake_manifest'],
  climate: ['climate'],
  'climate-gaps': ['climate'],
}

export class RecordValidators {
  readonly #options: RecordValidatorOptions

  constructor(options: RecordValidatorOptions) {
    this.#options = options
  }

  /** The version of the catalogue's series; null while it is not known. */
  get seriesVersion(): string | null {
    return this.#options.versions().get('series') ?? null
  }

  /** What the answer to a query is named by, and what the client holds; null when it cannot be named. */
  validationOf(kind: RecordQuery['kind'], ifNoneMatch: string): RecordValidation | null {
    const versions = this.#options.versions()
    const known = DATASETS[kind].map((dataset) => versions.get(dataset))
    if (known.includes(undefined)) return null
    return {
      seed: [this.#options.version, ...known].join(' '),
      held: ifNoneMatch === '' ? [] : heldIdentities(ifNoneMatch),
    }
  }

  validatorOf(identity: string): Validator {
    return { etag: `"${identity}"`, cacheControl: this.#options.cachePolicy.revalidate }
  }
}
