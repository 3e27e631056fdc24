// The answer of a record endpoint: the stream of a worker behind the headers of its format and page.

import type { RecordFormat, RecordQuery } from '../../shared/record-task.ts'
import type { ReplyHeaders, RequestContext, StreamReply } from '../http/endpoint.ts'
import type { RecordPool } from './record-pool.ts'

const CONTENT_TYPES: Readonly<Record<RecordFormat, string>> = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
  parquet: 'application/vnd.apache.parquet',
}

export interface RecordReplyOptions {
  readonly path: string
  /** The request's parameters with every default that depends on the moment made explicit. */
  readonly parameters: Readonly<Record<string, string | number | readonly string[] | undefined>>
  /** Parts of the name under which csv and parquet are saved. */
  readonly fileNameParts: readonly (string | null | undefined)[]
}

/** Runs a query and resolves when its first chunk is there. */
export async function recordReply(
  pool: RecordPool,
  query: RecordQuery,
  { headOnly, signal }: RequestContext,
  options: RecordReplyOptions,
): Promise<StreamReply> {
  const stream = await pool.open(query, { headOnly, signal })
  const { nextOffset } = stream.head
  const headers: ReplyHeaders = {
    'Content-Type': CONTENT_TYPES[query.format],
    ...(query.format === 'csv' || query.format === 'parquet'
      ? { 'Content-Disposition': `attachment; filename="${fileName(options, query.format)}"` }
      : {}),
    ...(nextOffset === null ? {} : { Link: `<${pageAddress(options, nextOffset)}>; rel="next"` }),
  }
  return { status: 200, headers, stream }
}

/** `candles_KXHIGHNY_2026-07-01.csv`; only characters that need no quoting. */
function fileName({ fileNameParts }: RecordReplyOptions, format: RecordFormat): string {
  const parts = fileNameParts.filter((part) => part !== null && part !== undefined && part !== '')
  return `${parts.join('_').replaceAll(/[^A-Za-z0-9._-]/g, '-')}.${format}`
}

function pageAddress({ path, parameters }: RecordReplyOptions, offset: number): string {
  const pairs = Object.entries({ ...parameters, offset }).flatMap(([name, value]) => {
    if (value === undefined) return []
    const text = Array.isArray(value) ? value.join(',') : String(value)
    return [`${name}=${encodeURIComponent(text)}`]
  })
  return `${path}?${pairs.join('&')}`
}
