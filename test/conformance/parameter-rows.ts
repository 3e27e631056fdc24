// Section 4 of the interface: the content of a parameter table's row, and how a test calls the row's endpoint.

import assert from 'node:assert/strict'
import type { ConformanceService, JsonRecord } from '../support/conformance-service.ts'
import { fetchRows, type PlainRow } from '../support/record-rows.ts'
import type { RecordKind } from '../../shared/record-schema.ts'

/** Noon of a sample day: the clock of the tests, so that "24 hours ago" and "today" have data. */
export const NOW = '2026-07-02T12:00:00Z'

export class Ask {
  readonly service: ConformanceService
  readonly #path: string
  readonly #kind: RecordKind | undefined

  constructor(service: ConformanceService, path: string, kind?: RecordKind) {
    this.service = service
    this.#path = path
    this.#kind = kind
  }

  target(query: string): string {
    return query === '' ? this.#path : `${this.#path}?${query}`
  }

  readonly rows = (query: string): Promise<readonly JsonRecord[]> => this.service.rows(this.target(query))

  readonly text = (query: string): Promise<string> => this.service.text(this.target(query))

  readonly response = (query: string): Promise<Response> => this.service.get(this.target(query))

  /** Records in any format, read by independent readers. */
  readonly decoded = async (query: string): Promise<readonly PlainRow[]> => {
    assert.ok(this.#kind !== undefined)
    return (await fetchRows(this.service.url + this.target(query), this.#kind)).rows
  }

  /** The values of one field, in the order of the answer. */
  readonly values = async (query: string, field: string): Promise<readonly unknown[]> =>
    (await this.rows(query)).map((row) => row[field])
}

export interface ParameterRow {
  /** The row as quoted from the interface. */
  readonly contract: string
  /** A request without the parameter, and the default written out; both give the same bytes. */
  readonly default?: { readonly base: string; readonly written: string }
  /** Checks the effect of the parameter on responses. */
  readonly effect: (ask: Ask) => Promise<void>
  /** Invalid values, each refused by the parameter's name; appended to `base`. */
  readonly refused: readonly string[]
}

export interface EndpointParameters {
  /** The heading in the interface. */
  readonly section: string
  readonly path: string
  readonly kind?: RecordKind
  /** A request that is complete except for the parameter under test, for the refusals. */
  readonly base: string
  readonly rows: readonly ParameterRow[]
}

/** Asserts that `rows` is a non-empty subsequence of `all`. */
export function assertPart(
  rows: readonly JsonRecord[],
  all: readonly JsonRecord[],
  isWanted: (row: JsonRecord) => boolean,
): void {
  const expected = all.filter(isWanted)
  assert.ok(expected.length > 0 && expected.length < all.length, 'the condition tells some from others')
  assert.deepEqual(rows, expected)
}

/** The text's zone offset: `Z` or `-04:00`. */
export function offsetOf(text: unknown): string {
  return /(?:Z|[+-]\d\d:\d\d)$/.exec(String(text))?.[0] ?? ''
}

export function instants(rows: readonly JsonRecord[], field: string): readonly number[] {
  return rows.map((row) => Date.parse(String(row[field])))
}

/** Asserts that every format has the rows of json. */
export async function assertFormatsAgree(ask: Ask, query: string): Promise<void> {
  const expected = await ask.decoded(`${query}&format=json`)
  assert.ok(expected.length > 0)
  for (const format of ['csv', 'ndjson', 'parquet'])
    assert.deepEqual(await ask.decoded(`${query}&format=${format}`), expected, format)
}

/** Asserts that every format has only the requested columns, in the requested order. */
export async function assertColumns(ask: Ask, query: string, columns: readonly string[]): Promise<void> {
  const whole = await ask.rows(query)
  const some = await ask.rows(`${query}&columns=${columns.join(',')}`)
  assert.ok(some.length > 0)
  assert.deepEqual(
    some.map((row) => Object.entries(row)),
    whole.map((row) => columns.map((column) => [column, row[column]])),
  )
  const csv = await ask.text(`${query}&columns=${columns.join(',')}&format=csv`)
  assert.equal(csv.slice(0, csv.indexOf('\n')), columns.join(','))
}

/** Asserts that `limit` returns the first rows and `offset` the rows after them. */
export async function assertPages(ask: Ask, query: string): Promise<void> {
  const all = await ask.rows(`${query}&limit=10000`)
  assert.ok(all.length > 4)
  assert.deepEqual(await ask.rows(`${query}&limit=3`), all.slice(0, 3))
  assert.deepEqual(await ask.rows(`${query}&limit=3&offset=2`), all.slice(2, 5))
  assert.deepEqual(await ask.rows(`${query}&limit=10000&offset=0`), all)
  assert.deepEqual(await ask.rows(`${query}&offset=${all.length}`), [])
}
