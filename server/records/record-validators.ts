// The server's part in the entity tags of record answers: which versions of the store's datasets an answer is made from.
// They are read after the request came, and before its rows or while nothing changed (named-answer.ts), so a tag is never
// newer than the bytes; the thread that plans the answer adds the query and the lake files. An answer whose range moves with
// the clock has no tag, and none has while the store is away.

import type { RecordQuery, RecordValidation, RememberedVersions } from '../../shared/record-task.ts'
import type { DataVersions } from '../catalogue/catalogue-feed.ts'
import type { FreshVersions } from '../catalogue/fresh-versions.ts'
import type { CachePolicy } from '../http/cache-policy.ts'
import type { Validator } from '../http/endpoint.ts'
import type { DatasetName } from '../storage/store-transaction.ts'

export interface RecordValidatorOptions {
  /** What the store said last; empty while it is away. */
  readonly versions: () => DataVersions
  /** Asks the store for them; nothing where there is no store. */
  readonly freshVersions?: FreshVersions | undefined
  readonly cachePolicy: CachePolicy
  /** The version of the program: another one may write other bytes. */
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

/** The datasets of which threads remember something. */
const REMEMBERED: readonly DatasetName[] = ['series', 'lake_manifest']

export class RecordValidators {
  readonly #options: RecordValidatorOptions

  constructor(options: RecordValidatorOptions) {
    this.#options = options
  }

  /** The versions that the store said last; empty while it is away. */
  get known(): DataVersions {
    return this.#options.versions()
  }

  /** The versions as they are now; nothing when the store is away or slow. */
  async fresh(): Promise<DataVersions | undefined> {
    return this.#options.freshVersions?.now()
  }

  /** The versions of what threads remember. */
  rememberedOf(versions: DataVersions): RememberedVersions {
    return { series: versions.get('series') ?? null, manifest: versions.get('lake_manifest') ?? null }
  }

  /** Whether answers are made of the lake and the catalogue alone, whatever the store holds. */
  isLakeAlone(kind: RecordQuery['kind']): boolean {
    return DATASETS[kind].length === 0
  }

  /** Whether all that an answer depends on has the same versions. */
  areSame(kind: RecordQuery['kind'], left: DataVersions, right: DataVersions): boolean {
    const datasets = [...DATASETS[kind], ...REMEMBERED]
    return datasets.every((dataset) => left.get(dataset) === right.get(dataset))
  }

  /** What the answer to a query is named by, and who holds which; null when it cannot be named. */
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
