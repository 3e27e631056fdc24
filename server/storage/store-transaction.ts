// A transaction for the stores' write functions: statements, and the datasets they changed. The versions of those datasets are
// raised together at the end, in a fixed order, so that writers of several datasets cannot deadlock.

import { listValue, type SqlStatement, sql } from '../../shared/sql/statement.ts'

/** The datasets with a version (table data_versions). */
export type DatasetName = 'series' | 'markets' | 'candles' | 'observations' | 'climate' | 'lake_manifest'

export class StoreTransaction {
  readonly #run: <Row>(statement: SqlStatement) => Promise<readonly Row[]>
  readonly #changed = new Set<DatasetName>()

  constructor(run: <Row>(statement: SqlStatement) => Promise<readonly Row[]>) {
    this.#run = run
  }

  run<Row>(statement: SqlStatement): Promise<readonly Row[]> {
    return this.#run<Row>(statement)
  }

  /** Raises the dataset's version when the transaction commits. */
  markChanged(dataset: DatasetName): void {
    this.#changed.add(dataset)
  }

  /** The statement that raises the versions, or undefined if nothing changed. Run it last. */
  versionUpdate(): SqlStatement | undefined {
    if (this.#changed.size === 0) return undefined
    const changed = listValue([...this.#changed])
    return sql`UPDATE data_versions SET version = version + 1, changed_at = clock_timestamp()
      FROM (SELECT dataset FROM data_versions WHERE dataset = ANY (${changed}) ORDER BY dataset FOR UPDATE) changed
      WHERE data_versions.dataset = changed.dataset`
  }
}
