// The server's part of the entity tags of record answers: the versions of the store's datasets from which an answer is made.
// They are read after the request came, and before its rows or while nothing changed (named-answer.ts). So a tag is never
// newer than the bytes. The thread that plans the answer adds the query and the lake files. An answer whose range moves with
// the clock has no tag, nor has any answer while the store is unreachable.

import type { RecordQuery, RecordValidation, RememberedVersions } from '../../shared/record-task.ts'
import type { DataVersions } from '../catalogue/catalogue-feed.ts'
import type { FreshVersions } from '../catalogue/fresh-versions.ts'
import type { CachePolicy } from '../http/cache-policy.ts'
import type { Validator } from '../http/endpoint.ts'
import type { DatasetName } from '../storage/store-transaction.ts'

export interface RecordValidatorOptions {
  /** The last versions of the store; empty while it is unreachable. */
  readonly versions: () => DataVersions
  /** Asks the store for its current versions; undefined without a store. */
  readonly fresh?: FreshVersions | undefined
  readonly cachePolicy: CachePolicy
  /** The program's version: another one may produce other bytes. */
  readonly version: string
}

const DATASETS: Readonly<Record<RecordQuery['kind'], readonly DatasetName[]>> = {
  candles: ['candles', 'lake_manifest', 'markets', 'series'],
  observations: ['observations', 'lake_manifest'],
  climate: ['climate'],
  'climate-gaps': ['climate'],
  trades: [],
  coverage: [],
  gaps: [],
}

/** The datasets that threads cache. */
const REMEMBERED: readonly DatasetName[] = ['series', 'lake_manifest']

export class RecordValidators {
  readonly #options: RecordValidatorOptions

  constructor(options: RecordValidatorOptions) {
    this.#options = options
  }

  /** The last versions of the store; empty while it is unreachable. */
  get known(): DataVersions {
    return this.#options.versions()
  }

  /** The current versions; undefined when the store is unreachable or slow. */
  async fresh(): Promise<DataVersions | undefined> {
    return this.#options.fresh?.()
  }

  /** The versions of the datasets that threads cache. */
  rememberedOf(versions: DataVersions): RememberedVersions {
    return { series: versions.get('series') ?? null, manifest: versions.get('lake_manifest') ?? null }
  }

  /** Whether answers are made of the lake and the catalogue alone, independent of the store. */
  isLakeAlone(kind: RecordQuery['kind']): boolean {
    return DATASETS[kind].length === 0
  }

  /** Whether all inputs of an answer have the same versions. */
  areSame(kind: RecordQuery['kind'], left: DataVersions, right: DataVersions): boolean {
    const datasets = [...DATASETS[kind], ...REMEMBERED]
    return datasets.every((dataset) => left.get(dataset) === right.get(dataset))
  }

  /** The inputs of an answer's identity, with the identities that are held; null if it cannot have an identity. */
  validationOf(
    kind: RecordQuery['kind'],
    versions: DataVersions,
    holders: Pick<RecordValidation, 'held' | 'kept'>,
  ): RecordValidation | null {
    const known = DATASETS[kind].map((dataset) => versions.get(dataset))
    if (known.includes(undefined)) return null
    const { version } = this.#options
    return { seed: [version, ...known].join(' '), lakeSeed: version, ...holders }
  }

  validatorOf(identity: string): Validator {
    return { etag: `"${identity}"`, cacheControl: this.#options.cachePolicy.revalidate }
  }
}
