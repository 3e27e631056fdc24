// Section 7 of the interface (statuses) and the content types of section 4.4.

export interface StatusRow {
  readonly contract: string
  readonly targets: readonly string[]
  readonly status: number
}

export const STATUS_ROWS: readonly StatusRow[] = [
  {
    contract: '| 404 | A series or market requested by ticker does not exist |',
    targets: ['/api/v1/series/KXNOSUCH', '/api/v1/markets/KXNOSUCH-26JUL01-T1'],
    status: 404,
  },
  {
    contract:
      '| 429 | The LOB endpoint is already processing its maximum number of concurrent requests (see 8) |',
    // Covered by the test of the limit.
    targets: [],
    status: 429,
  },
]

export interface FormatRow {
  readonly contract: string
  /** How a body of the format begins. */
  readonly begins: RegExp
}

export const FORMAT_ROWS: readonly FormatRow[] = [
  { contract: '| json | application/json |', begins: /^\[\{"/ },
  { contract: '| ndjson | application/x-ndjson |', begins: /^\{"/ },
  { contract: '| csv | text/csv |', begins: /^[a-z_]+,/ },
  { contract: '| parquet | application/vnd.apache.parquet |', begins: /^PAR1/ },
]
