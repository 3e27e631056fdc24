// A thread's copy of the lake's manifest. Entries only move rows from the relational store to the lake, so a plan from an old
// manifest remains right for all rows that it finds in the lake. A request that also reads the store checks afterwards that the
// manifest is unchanged, and plans again if not. If a request knows another version than the cached one, the manifest is read
// again, so that all threads plan alike.

import type { RecordDataset } from '../../shared/lake-layout.ts'
import { type KeysetOptions, keysetPages, type KeysetRead } from '../../shared/sql/keyset-pages.ts'
import {
  generationColumn,
  generationOf,
  ManifestChanged,
  partitionsOf,
  type RegisteredPartition,
  type WithGeneration,
} from '../../shared/sql/manifest-queries.ts'
import { type RunStatement, type SqlStatement, sql } from '../../shared/sql/statement.ts'

const EVERYTHING = { scopes: null, fromMs: 0, toMs: Date.UTC(9999, 0) } as const

export class ManifestCache {
  readonly #dataset: RecordDataset
  #partitions: readonly RegisteredPartition[] | undefined
  /** The version that a request knew before the partitions were read. */
  #version: string | null = null

  constructor(dataset: RecordDataset) {
    this.#dataset = dataset
  }

  /**
   * Every partition of the dataset. They are at least as new as `version`, if that is known and the store answers; otherwise they
   * may be older.
   */
  async partitions(run: RunStatement, version: string | null): Promise<readonly RegisteredPartition[]> {
    const known = this.#partitions
    if (known !== undefined && (version === null || version === this.#version)) return known
    try {
      this.#partitions = await run<RegisteredPartition>(
        partitionsOf({ dataset: this.#dataset, ...EVERYTHING }),
      )
      this.#version = version
      return this.#partitions
    } catch (error) {
      if (known === undefined) throw error
      return known
    }
  }

  /** Throws ManifestChanged if a partition has been registered since `partitions` was read. */
  async check(run: RunStatement, partitions: readonly RegisteredPartition[]): Promise<void> {
    const [newest] = await run<WithGeneration>(sql`SELECT ${generationColumn(this.#dataset)}`)
    if (newest?.generation !== generationOf(partitions)) throw new ManifestChanged(this.#dataset)
  }

  /** The number of rows that a statement counts in the store. Throws ManifestChanged. */
  async count(
    run: RunStatement,
    planned: readonly RegisteredPartition[],
    statement: SqlStatement,
  ): Promise<number> {
    const [row] = await run<{ readonly rows: bigint }>(statement)
    await this.check(run, planned)
    return Number(row?.rows ?? 0)
  }

  /**
   * Pages of the store's rows, none of them empty. Each was read under the planned manifest.
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
      if (page[0]?.generation !== generation) throw new ManifestChanged(this.#dataset)
      isEndSeen = page.length < options.batchUnits
      yield page
    }
    // The last batch was empty, so it had no row with the generation.
    if (!isEndSeen) await this.check(run, planned)
  }

  /** Clears the cache: the next plan reads the manifest again. */
  forget(): void {
    this.#partitions = undefined
  }
}
