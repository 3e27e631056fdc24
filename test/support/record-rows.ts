// Responses of the record endpoints in every format as the same plain rows: numbers, texts, booleans, null, and instants as
// milliseconds since the epoch. The readers are independent of Bookcast: JSON.parse, hyparquet, and a small csv reader.

import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { parquetReadObjects } from 'hyparquet'
import type { RecordField } from '../../shared/record-field.ts'
import { fieldsOf, RECORD_FIELDS, type RecordKind } from '../../shared/record-schema.ts'
import { IS_FULL_EFFORT } from './effort.ts'
import { arrayBufferOf, queryWithDuckDb } from './parquet-readers.ts'

export type PlainRow = Readonly<Record<string, string | number | boolean | null>>

export interface RecordPageAnswer {
  readonly rows: PlainRow[]
  readonly next: string | null
}

/** Codings have their own tests; compression took longer than most responses here. */
const CODINGS: Readonly<Record<string, string>> = IS_FULL_EFFORT ? {} : { 'accept-encoding': 'identity' }

/** Fetches an address and decodes the response; fails the test unless the status is 200. */
export async function fetchRows(address: string, kind: RecordKind): Promise<RecordPageAnswer> {
  const response = await fetch(address, { headers: CODINGS })
  const body = Buffer.from(await response.arrayBuffer())
  assert.equal(response.status, 200, `${address}: ${body.toString('utf8', 0, 500)}`)
  const { searchParams, origin } = new URL(address)
  const columns = searchParams.get('columns')?.split(',') ?? RECORD_FIELDS[kind].map(({ name }) => name)
  const fields = fieldsOf(kind, columns)
  const format = searchParams.get('format') ?? 'json'
  const link = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
  return {
    rows: await decode(format, body, fields),
    next: link === undefined ? null : new URL(link, origin).href,
  }
}

/** Follows the links between pages and joins the rows. */
export async function fetchAllPages(address: string, kind: RecordKind, pagesMax = 1000): Promise<PlainRow[]> {
  const rows: PlainRow[] = []
  let next: string | null = address
  for (let page = 0; next !== null; page++) {
    assert.ok(page < pagesMax, 'the pages have no end')
    const answer: RecordPageAnswer = await fetchRows(next, kind)
    rows.push(...answer.rows)
    next = answer.next
  }
  return rows
}

async function decode(format: string, body: Buffer, fields: readonly RecordField[]): Promise<PlainRow[]> {
  if (format === 'parquet') return parquetRows(body, fields)
  assert.ok(isUtf8(body))
  const text = body.toString()
  if (format === 'json') return (JSON.parse(text) as PlainRow[]).map((row) => plainRow(row, fields))
  if (format === 'ndjson') {
    const lines = text.split('\n')
    assert.equal(lines.pop(), '', 'ndjson ends with a line feed')
    return lines.map((line) => plainRow(JSON.parse(line) as PlainRow, fields))
  }
  return csvRows(text, fields)
}

/** Checks names, order and types of a json record. */
function plainRow(row: PlainRow, fields: readonly RecordField[]): PlainRow {
  const names = Object.keys(row)
  // Compared one by one, because there are many rows.
  if (names.length !== fields.length || fields.some(({ name }, index) => name !== names[index]))
    assert.deepEqual(
      names,
      fields.map(({ name }) => name),
    )
  const plain: Record<string, PlainRow[string]> = {}
  for (const field of fields) plain[field.name] = plainValue(row[field.name] ?? null, field)
  return plain
}

const TYPES = {
  string: 'string',
  date: 'string',
  instant: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
}

function plainValue(
  value: string | number | boolean | null,
  field: RecordField,
): string | number | boolean | null {
  if (value === null) {
    assert.ok(field.nullable, `${field.name} is null`)
    return null
  }
  if (typeof value !== TYPES[field.type]) assert.equal(typeof value, TYPES[field.type], field.name)
  if (field.type === 'integer') assert.ok(Number.isSafeInteger(value), field.name)
  return field.type === 'instant' ? instant(String(value)) : value
}

/** Instants read so far, by their text, because most rows of a test share them. */
const INSTANTS = new Map<string, number>()

function instant(text: string): number {
  const known = INSTANTS.get(text)
  if (known !== undefined) return known
  assert.match(text, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?(Z|[+-]\d\d:\d\d)$/)
  const ms = Date.parse(text)
  INSTANTS.set(text, ms)
  return ms
}

function csvRows(text: string, fields: readonly RecordField[]): PlainRow[] {
  const [header, ...lines] = csvLines(text)
  assert.deepEqual(
    header?.map(({ text: name }) => name),
    fields.map(({ name }) => name),
  )
  return lines.map((cells) => {
    assert.equal(cells.length, fields.length)
    return Object.fromEntries(fields.map((field, index) => [field.name, csvValue(cells[index]!, field)]))
  })
}

function csvValue(cell: CsvCell, field: RecordField): string | number | boolean | null {
  if (cell.text === '' && !cell.isQuoted) return plainValue(null, field)
  if (field.type === 'boolean') return cell.text === 'true'
  if (field.type === 'number' || field.type === 'integer') return Number(cell.text)
  return field.type === 'instant' ? instant(cell.text) : cell.text
}

interface CsvCell {
  readonly text: string
  readonly isQuoted: boolean
}

/** RFC 4180 with LF. */
function csvLines(text: string): CsvCell[][] {
  const lines: CsvCell[][] = []
  let line: CsvCell[] = []
  const cell = /(?:"((?:[^"]|"")*)"|([^",\n]*))([,\n])/gy
  for (;;) {
    const match = cell.exec(text)
    if (match === null) break
    const quoted = match[1]
    line.push({
      text: quoted === undefined ? (match[2] ?? '') : quoted.replaceAll('""', '"'),
      isQuoted: quoted !== undefined,
    })
    if (match[3] === '\n') {
      lines.push(line)
      line = []
    }
  }
  assert.equal(line.length, 0, 'csv ends with a line feed')
  return lines
}

async function parquetRows(body: Uint8Array, fields: readonly RecordField[]): Promise<PlainRow[]> {
  const rows = await parquetReadObjects({ file: arrayBufferOf(body) })
  const [count] = await queryWithDuckDb(body, 'SELECT count(*) AS n FROM file')
  assert.equal(count, JSON.stringify({ n: String(rows.length) }), 'two readers agree on the number of rows')
  return rows.map((row) =>
    Object.fromEntries(fields.map((field) => [field.name, parquetValue(row[field.name], field)])),
  )
}

function parquetValue(value: unknown, field: RecordField): string | number | boolean | null {
  if (value === null || value === undefined) return plainValue(null, field)
  if (field.type === 'instant') {
    assert.ok(value instanceof Date, field.name)
    return value.getTime()
  }
  if (field.type === 'date') {
    assert.ok(value instanceof Date, field.name)
    return value.toISOString().slice(0, 10)
  }
  if (field.isWide === true) {
    assert.equal(typeof value, 'bigint', field.name)
    return Number(value)
  }
  return plainValue(value as string | number | boolean, field)
}
