// What a thread knows of the lake's manifest. An entry only ever moves rows from the relational store to the lake, so a
// plan made from an old manifest stays right for everything it finds cold, without asking again. Whoever also reads the
// store checks afterwards that the manifest is still the same, and plans anew when it is not. A request that knows of
// another version of the manifest than the one remembered has it read anew, so that threads plan alike.

import type { RecordDataset } from '../../shared/lake-layout.ts'
import { type KeysetOptions, keysetPages, type KeysetRead } from '../../shared/sql/keyset-pages.ts'
import {
  generationOf,
  ManifestChanged,
  manifestCheckpoint,
  type PartitionSelection,
  partitionsOf,
  type RegisteredPartition,
  type WithGeneration,
} from '../../shared/sql/manifest-queries.ts'
import type { RunStatement } from '../../shared/sql/statement.ts'

const EVERYTHING = { scopes: null, fromMs: 0, toMs: Date.UTC(9999, 0) } as const

export class ManifestCache {
  /** What is asked of the store: every partition of the dataset. */
  readonly selection: PartitionSelection
  #partitions: readonly RegisteredPartition[] | undefined
  /** The version that a request knew of before they were read. */
  #version: string | null = null

  constructor(dataset: RecordDataset) {
    this.selection = { dataset, ...EVERYTHING }
  }

  /**
   * Every partition of the dataset, as of some moment: not before the manifest had `version`, where one is known and the
   * store answers.
   */
  async partitions(run: RunStatement, version: string | null): Promise<readonly RegisteredPartition[]> {
    const known = this.#partitions
    if (known !== undefined && (version === null || version === this.#version)) return known
    try {
      this.#partitions = await run<RegisteredPartition>(partitionsOf(this.selection))
      this.#version = version
      return this.#partitions
    } catch (error) {
      if (known === undefined) throw error
      return known
    }
  }

  /** Throws ManifestChanged when a partition was registered since `partitions` was read. */
  async check(run: RunStatement, partitions: readonly RegisteredPartition[]): Promise<void> {
    await manifestCheckpoint(run, this.selection, generationOf(partitions))()
  }

  /**
   * Pages of the store's rows, none of them empty. Each was read while the manifest was as planned with.
   * @throws {ManifestChanged}
   */
  async *pages<Row extends WithGeneration, Key>(
    run: RunStatement,
    planned: readonly RegisteredPartition[],
    read: KeysetRead<Row, Key>,
    options: KeysetOptions<Key>,
  ): AsyncGenerator<readonly Row[], void, void> {
    const generation = generationOf(planned)
    let isEndSeen = false
    for await (const page of keysetPages(run, read, options)) {
      if (page[0]?.generation !== generation) throw new ManifestChanged(this.selection)
      isEndSeen = page.length < options.batchUnits
      yield page
    }
    // A batch without a row ended this, and told no generation.
    if (!isEndSeen) await this.check(run, planned)
  }

  /** The next plan asks the store. */
  forget(): void {
    this.#partitions = undefined
  }
}
