// Delimited text of the archives, without quoting: neither archive quotes, and both replace their delimiter inside values. Lines
// are read one by one, so that a year's file is not copied into an array of lines.

/** Characters of one line of an archive. */
const ARCHIVE_LINE_CHARACTERS_MAX = 64 * 1024

/** Values of one row by column name; `undefined` for a column that the file does not have. */
export type ArchiveRow = (column: string) => string | undefined

export interface ArchiveTable {
  readonly columns: ReadonlySet<string>
  /** One item per data line: null if it does not have as many values as the header. */
  readonly rows: Iterable<ArchiveRow | null>
}

/** Reads the header; empty lines and lines beginning with `#` are skipped. `undefined` if there is no line at all. */
export function readArchiveTable(text: string, delimiter: string): ArchiveTable | undefined {
  const lines = linesOf(text)
  const first = lines.next()
  if (first.done === true) return undefined
  const names = first.value.split(delimiter)
  const indices = new Map(names.map((name, index) => [name, index]))
  return { columns: new Set(names), rows: rowsOf(lines, delimiter, indices) }
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
