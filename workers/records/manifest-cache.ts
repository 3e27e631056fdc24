// What a thread knows of the lake's manifest. An entry only ever moves rows from the relational store to the lake, so a
// plan made from an old manifest stays right for everything it finds cold, without asking again. Whoever also reads the
// store checks afterwards that the manifest is still the same, and plans anew when it is not.

import type { RecordDataset } from '../../shared/lake-layout.ts'
import {
  generationOf,
  manifestCheckpoint,
  partitionsOf,
  type RegisteredPartition,
} from '../../shared/sql/manifest-queries.ts'
import type { RunStatement } from '../../shared/sql/statement.ts'

const EVERYTHING = { scopes: null, fromMs: 0, toMs: Date.UTC(9999, 0) } as const

export class ManifestCache {
  readonly #dataset: RecordDataset
  #partitions: readonly RegisteredPartition[] | undefined

  constructor(dataset: RecordDataset) {
    this.#dataset = dataset
  }

  /** Every partition of the dataset, as of some moment. */
  async partitions(run: RunStatement): Promise<readonly RegisteredPartition[]> {
    this.#partitions ??= await run<RegisteredPartition>(
      partitionsOf({ dataset: this.#dataset, ...EVERYTHING }),
    )
    return this.#partitions
  }

  /** Throws ManifestChanged when a partition was registered since `partitions` was read. */
  async check(run: RunStatement, partitions: readonly RegisteredPartition[]): Promise<void> {
    await manifestCheckpoint(run, { dataset: this.#dataset, ...EVERYTHING }, generationOf(partitions))()
  }

  /** The next plan asks the store. */
  forget(): void {
    this.#partitions = undefined
  }
}
