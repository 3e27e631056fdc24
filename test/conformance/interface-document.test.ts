// The other direction: every row of every table in the interface document has a row in the conformance tests, so that a row
// added or changed in the document fails here. The document is not part of the project; it is read if it is next to the
// checkout.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { LOB_PARAMETERS, MARKET_PARAMETERS, SERIES_PARAMETERS } from './catalogue-parameter-rows.ts'
import { plainRow, tablesOf } from './contract-table.ts'
import { LIMIT_ROWS } from './limit-rows.ts'
import {
  CANDLE_PARAMETERS,
  CLIMATE_PARAMETERS,
  GAP_PARAMETERS,
  OBSERVATION_PARAMETERS,
} from './record-parameter-rows.ts'
import { RESOURCES } from './resource-rows.ts'
import { FORMAT_ROWS, STATUS_ROWS } from './status-rows.ts'
import { CLIMATE_REPORT_TYPES, STATE_ROWS, UNIT_ROWS } from './value-rows.ts'

interface QuotedRow {
  readonly contract: string
}

function quoted(section: string, rows: readonly QuotedRow[]): readonly (readonly [string, string])[] {
  return rows.map(({ contract }) => [section, plainRow(contract)])
}

const ENDPOINTS = [
  CANDLE_PARAMETERS,
  OBSERVATION_PARAMETERS,
  CLIMATE_PARAMETERS,
  LOB_PARAMETERS,
  GAP_PARAMETERS,
  SERIES_PARAMETERS,
  MARKET_PARAMETERS,
]

/** Section and row of everything that the conformance tests cover. */
const TESTED: readonly (readonly [string, string])[] = [
  ...RESOURCES.flatMap(({ section, rows }) => quoted(section, rows)),
  ...quoted('2.2 Observation', UNIT_ROWS),
  ...quoted('2.3 Climate record', CLIMATE_REPORT_TYPES),
  ...quoted('3. States and transitions', STATE_ROWS),
  ...ENDPOINTS.flatMap(({ section, rows }) => quoted(section, rows)),
  ...quoted('4.4 GET /api/v1/lob', FORMAT_ROWS),
  ...quoted('7. Errors', STATUS_ROWS),
  ...quoted('8. Limits', LIMIT_ROWS),
]

/** Finds `shared/spec/<name>` in a directory above the built file. */
function specPath(name: string): string | undefined {
  for (let directory = dirname(fileURLToPath(import.meta.url)); ; directory = dirname(directory)) {
    const path = join(directory, 'shared', 'spec', name)
    if (existsSync(path)) return path
    if (directory === dirname(directory)) return undefined
  }
}

test('every row of the interface document has a row in the conformance tests, and the other way round', (t) => {
  const path = specPath('interface.md')
  if (path === undefined) return t.skip('the interface document is not beside this checkout')
  const documented = tablesOf(readFileSync(path, 'utf8')).flatMap(({ section, rows }) =>
    rows.map((row) => `${section}: ${row}`),
  )
  assert.ok(documented.length > 120, `${documented.length} rows are found`)
  const tested = new Set(TESTED.map(([section, row]) => `${section}: ${row}`))
  assert.deepEqual(
    documented.filter((row) => !tested.has(row)),
    [],
    'rows without a test',
  )
  const isDocumented = new Set(documented)
  assert.deepEqual(
    [...tested].filter((row) => !isDocumented.has(row)),
    [],
    'tests of rows that the document does not have',
  )
})

test('tables are read with their section, without header and rule', () => {
  const document =
    '# 1. A\n| Name | Type |\n|---|:-:|\n| a  |  b |\ntext\n## 1.1 B\n\n| x |\n|-|\n| y |\n| z |\n'
  assert.deepEqual(tablesOf(document), [
    { section: '1. A', rows: ['| a | b |'] },
    { section: '1.1 B', rows: ['| y |', '| z |'] },
  ])
})
