// Delimited text of the archives, without quoting: neither archive quotes, and both replace their delimiter inside values. Lines
// are read one by one, so that a year's file is not copied into an array of lines.

import { UpstreamError } from '../upstream/upstream-error.ts'

/** Characters of one line of an archive. */
const ARCHIVE_LINE_CHARACTERS_MAX = 64 * 1024

/** Values of one row by column name; `undefined` for a column that the file does not have. */
export type ArchiveRow = (column: string) => string | undefined

/**
 * One item per data line: null if it does not have as many values as the header. Empty lines and lines beginning with `#` are skipped.
 * @param required the columns that must be there, each with all of its names
 * @throws {UpstreamError} if one is missing: the archive has changed its format
 */
export function readArchiveTable(
  upstream: string,
  text: string,
  delimiter: string,
  required: readonly (readonly string[])[],
): Iterable<ArchiveRow | null> {
  const lines = linesOf(text)
  const first = lines.next()
  const names = first.done === true ? [] : first.value.split(delimiter)
  const missing = required.filter((each) => !each.some((name) => names.includes(name)))
  if (missing.length > 0) {
    const quote = text.slice(0, 80).replaceAll(/\s+/g, ' ')
    const columns = missing.map(([name]) => name).join(', ')
    throw new UpstreamError(upstream, 'malformed', `no column ${columns} in "${quote}"`)
  }
  return rowsOf(lines, delimiter, new Map(names.map((name, index) => [name, index])))
}

function* rowsOf(
  lines: Iterable<string>,
  delimiter: string,
  indices: ReadonlyMap<string, number>,
): Generator<ArchiveRow | null, void, void> {
  for (const line of lines) {
    const values = line.length > ARCHIVE_LINE_CHARACTERS_MAX ? [] : line.split(delimiter)
    yield values.length === indices.size ? (column) => values[indices.get(column) ?? -1] : null
  }
}

function* linesOf(text: string): Generator<string, void, void> {
  for (let start = 0; start < text.length;) {
    const newline = text.indexOf('\n', start)
    const end = newline === -1 ? text.length : newline
    const line = text.slice(start, text[end - 1] === '\r' ? end - 1 : end)
    start = end + 1
    if (line !== '' && !line.startsWith('#')) yield line
  }
}

/** A finite decimal number, or null for anything else (`M`, an empty value, `null`). */
export function readNumber(value: string | undefined): number | null {
  return value !== undefined && /^[+-]?\d{1,9}(\.\d{1,9})?$/.test(value) ? Number(value) + 0 : null
}

/** `YYYY-MM-DD HH:MM` in UTC as milliseconds, or null. */
export function readUtcMinute(value: string | undefined): number | null {
  const match = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2})$/.exec(value ?? '')
  if (match === null) return null
  const text = `${match[1]}T${match[2]}:00.000Z`
  const ms = Date.parse(text)
  // Date.parse accepts 31 February as 3 March.
  return Number.isNaN(ms) || new Date(ms).toISOString() !== text ? null : ms
}
