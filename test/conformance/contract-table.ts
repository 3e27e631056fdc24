// Rows of the interface's tables as the conformance tests quote them, and the tables of the document itself: the same
// row, in the same form, so that one can be looked up in the other.

/** The cells of one Markdown table row. */
export function cellsOf(row: string): readonly string[] {
  return row
    .trim()
    .replaceAll(/^\||\|$/g, '')
    .split('|')
    .map((cell) => cell.trim().replaceAll(/\s+/g, ' '))
}

/** The same row however its cells are padded. */
export function plainRow(row: string): string {
  return `| ${cellsOf(row).join(' | ')} |`
}

export interface ContractTable {
  /** The heading above the table: `2.1 Candle`. */
  readonly section: string
  /** Without the header line. */
  readonly rows: readonly string[]
}

/** Every table of a Markdown document with the heading it stands under. */
export function tablesOf(document: string): readonly ContractTable[] {
  const tables: { section: string; rows: string[] }[] = []
  let section = ''
  let isInTable = false
  for (const line of document.split('\n')) {
    const heading = /^#+ (.*)$/.exec(line)?.[1]
    if (heading !== undefined) section = heading.trim()
    if (!line.startsWith('|')) isInTable = false
    else if (!isInTable) {
      // The header line; what follows is the rule below it, then the rows.
      isInTable = true
      tables.push({ section, rows: [] })
    } else if (!/^\|[\s:|-]+\|$/.test(line.trim())) tables.at(-1)?.rows.push(plainRow(line))
  }
  return tables
}
