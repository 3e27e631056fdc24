// The rows of one partition as a reader gets them: those of the lake's file and those of the relational store. If a row is in both,
// the two are merged as in compaction.

import { join } from 'node:path'
import { periodInstants, type RecordDataset, recordFileName } from '../../shared/lake-layout.ts'
import { readHotRows } from '../compaction/hot-rows.ts'
import { PartitionDraft } from '../compaction/partition-draft.ts'
import { RECORD_TABLES, type RecordRow } from '../compaction/record-table.ts'
import { readPartitions } from '../storage/manifest-store.ts'
import type { VerifyContext } from './finding.ts'

/** Selects rows and what to compute of them: `SELECT <columns> … GROUP BY ALL`, in DuckDB's SQL. */
export interface MergedSelection {
  readonly dataset: RecordDataset
  readonly scope: string
  /** `2026-07` or `2026`. */
  readonly period: string
  readonly columns: string
}

/** Throws if rows have moved to a lake that is not given, or if the lake's file is outdated or cannot be read. */
export async function mergedRows(
  { postgres, lake, signal }: VerifyContext,
  { dataset, scope, period, columns }: MergedSelection,
): Promise<readonly RecordRow[]> {
  const table = RECORD_TABLES.find((each) => each.dataset === dataset)
  if (table === undefined) throw new RangeError(`there is no dataset ${dataset}`)
  const { fromMs, toMs } = periodInstants(period)
  const draft = await PartitionDraft.open(table)
  try {
    const [partition] = (await readPartitions(postgres, { dataset, scopes: [scope], fromMs, toMs })).filter(
      ({ period_start, cut_over }) => period_start === fromMs && cut_over > period_start,
    )
    if (partition !== undefined) {
      const name = recordFileName(dataset, scope, period)
      if (lake === null) throw new Error(`rows have moved to ${name}: name the lake that has it with --lake`)
      const path = join(lake, ...name.split('/'))
      const { revision } = await draft.loadCold(path)
      if (revision < partition.revision)
        throw new Error(`${path} is older than the file in the manifest: bring the lake up to date first`)
    }
    for await (const rows of readHotRows(postgres, table, { dataset, scope, fromMs, toMs }, signal)) {
      await draft.addHot(rows)
    }
    await draft.mergeCommon()
    return await draft.select(columns)
  } finally {
    draft.close()
  }
}
