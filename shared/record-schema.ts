// The records of the data endpoints: one list of fields for each. The parameter `columns`, the four output formats and the OpenAPI
// document are derived from it. Columns are declared nowhere else.

import { CANDLE_FIELDS } from './candle.ts'
import { CLIMATE_FIELDS } from './climate.ts'
import { COVERAGE_FIELDS, GAP_FIELDS } from './coverage.ts'
import { OBSERVATION_FIELDS } from './observation.ts'
import { LAKE_DATASETS, type LakeDataset } from './lake-layout.ts'
import type { RecordField } from './record-field.ts'
import { TRADE_FIELDS } from './trade-fields.ts'

/** A run of missing climate dates (contract.md 21). */
// oxfmt-ignore
const CLIMATE_GAP_FIELDS = [
  { name: 'station_code', type: 'string', unit: 'none', nullable: false, meaning: 'Station code' },
  { name: 'gap_start', type: 'date', unit: 'none', nullable: false, meaning: 'First missing date' },
  { name: 'gap_end', type: 'date', unit: 'none', nullable: false, meaning: 'Last missing date' },
  { name: 'missing_days', type: 'integer', unit: 'none', nullable: false, meaning: 'Number of missing days' },
] as const satisfies readonly RecordField[]

export const RECORD_FIELDS = {
  candles: CANDLE_FIELDS,
  observations: OBSERVATION_FIELDS,
  climate: CLIMATE_FIELDS,
  'climate-gaps': CLIMATE_GAP_FIELDS,
  trades: TRADE_FIELDS,
  coverage: COVERAGE_FIELDS,
  gaps: GAP_FIELDS,
} as const satisfies Record<string, readonly RecordField[]>

export type RecordKind = keyof typeof RECORD_FIELDS

/** The dataset of the lake that the records come from; undefined if there is none. */
export function datasetOf(kind: RecordKind): LakeDataset | undefined {
  if (kind === 'coverage' || kind === 'gaps') return 'lob'
  return LAKE_DATASETS.find((dataset) => dataset === kind)
}

/** The fields of the given columns, in their order. */
export function fieldsOf(kind: RecordKind, columns: readonly string[]): readonly RecordField[] {
  const byName = new Map<string, RecordField>(RECORD_FIELDS[kind].map((field) => [field.name, field]))
  return columns.map((name) => {
    const field = byName.get(name)
    if (field === undefined) throw new Error(`${kind} have no column ${name}`)
    return field
  })
}
