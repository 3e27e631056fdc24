// The output formats. To add one: add its entry here, and its encoders in workers/lob/snapshot-sink.ts (order books) and
// workers/records/record-encoders.ts (records). Parameters, headers, documentation and clients are derived. Rules:
// contract.md 4, 9 and 31.

export interface OutputFormat {
  readonly contentType: string
  /** A description of the body; null for json, which has a schema. */
  readonly body: string | null
  /** Whether a body is a file to save, and has a file name. */
  readonly isFile: boolean
  /** Whether the body is text, which is sent row by row and may have a content coding. */
  readonly isText: boolean
  /** Whether rows have no separator, so that several threads can make parts of one order-book answer. */
  readonly isSectioned: boolean
  /** The maximum of rows in one answer. */
  readonly rowsMax: number
}

/** The maximum of rows in a json answer, and in one of the other formats, which clients read while they arrive. */
export const JSON_ROWS_MAX = 50_000
export const STREAMED_ROWS_MAX = 500_000

export const OUTPUT_FORMATS = {
  json: {
    contentType: 'application/json',
    body: null,
    isFile: false,
    isText: true,
    isSectioned: false,
    rowsMax: JSON_ROWS_MAX,
  },
  csv: {
    contentType: 'text/csv',
    body: 'A header line and one line for each record.',
    isFile: true,
    isText: true,
    isSectioned: true,
    rowsMax: STREAMED_ROWS_MAX,
  },
  parquet: {
    contentType: 'application/vnd.apache.parquet',
    body: 'One row for each record.',
    isFile: true,
    isText: false,
    isSectioned: false,
    rowsMax: STREAMED_ROWS_MAX,
  },
  ndjson: {
    contentType: 'application/x-ndjson',
    body: 'One record a line, each with the members of the JSON records.',
    isFile: false,
    isText: true,
    isSectioned: true,
    rowsMax: STREAMED_ROWS_MAX,
  },
} as const satisfies Readonly<Record<string, OutputFormat>>

export type FormatName = keyof typeof OUTPUT_FORMATS

export function formatNames(): readonly FormatName[] {
  return Object.keys(OUTPUT_FORMATS) as FormatName[]
}
