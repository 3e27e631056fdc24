// The output formats, and what everybody else has to know of them. To add one: its entry here, and its encoders in
// workers/lob/snapshot-sink.ts (order books) and workers/records/record-encoders.ts (records). The parameters, the headers,
// the documentation and the clients follow. Rules: contract.md 4, 9 and 31.

export interface OutputFormat {
  readonly contentType: string
  /** What a body holds; json, which has a schema, says nothing. */
  readonly body: string | null
  /** Whether a body is a file to be saved, and comes with a name. */
  readonly isFile: boolean
  /** Text leaves row by row, and gets smaller by a content coding. */
  readonly isText: boolean
  /** Whether nothing stands between two rows, so that several threads may make parts of one order-book answer. */
  readonly isSectioned: boolean
  /** Rows of one answer at most. */
  readonly rowsMax: number
}

/** Rows of one json answer, and of one in the formats that are read while they come. */
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

/** The content types of an endpoint that answers in every format. */
export function formatContentTypes(): readonly string[] {
  return Object.values(OUTPUT_FORMATS).map(({ contentType }) => contentType)
}
