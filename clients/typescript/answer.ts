// What a method of the client gives: a request that is sent when it is read, as rows, as batches of rows, as bytes or
// into a file. Long lists are read page by page, in memory that does not grow with them.

import { BookcastError, IncompleteError, MoreRowsError } from './errors.ts'
import { writeWhole } from './file.ts'
import type { Connection } from './call.ts'
import { type Format, ndjsonBatches, readJson, wholeBytes, withoutFirstLine } from './rows.ts'
import { openTransfer, type Transfer } from './transfer.ts'
import type { EndpointForm } from './wire.ts'

/** The rows of one request that are kept in memory as one, where they cannot be streamed. */
const JSON_PAGE_ROWS = 10_000
const STREAMED_PAGE_ROWS = 100_000
/** What the server gives at most in one json answer. */
const JSON_FILE_ROWS = 50_000
/** Against a server whose pages have no end. */
const PAGES_MAX = 100_000

export type ParameterValue = string | number | boolean | readonly string[] | undefined

export interface FileResult {
  readonly path: string
  readonly bytes: number
  /** Requested dates without a recording. */
  readonly missingDates: readonly string[]
}

/** A request for rows. Nothing is sent before it is read, and every reading sends it anew. */
export class Answer<Row> implements AsyncIterable<Row> {
  readonly #connection: Connection
  readonly #form: EndpointForm
  readonly #parameters: Readonly<Record<string, ParameterValue>>
  #missingDates: readonly string[] = []

  constructor(
    connection: Connection,
    form: EndpointForm,
    parameters: Readonly<Record<string, ParameterValue>>,
  ) {
    this.#connection = connection
    this.#form = form
    this.#parameters = parameters
  }

  /** Requested dates of an order-book range that have no recording; known once reading has begun. */
  get missingDates(): readonly string[] {
    return this.#missingDates
  }

  /** The address of the request as it was asked for, or of the same rows in another format. */
  url(format?: Format): string {
    const given = format ?? this.#parameters['format']
    return this.#connection.baseUrl + this.#target(given === undefined ? {} : { format: given })
  }

  /** Row by row. Leaving the loop ends the request. */
  [Symbol.asyncIterator](): AsyncIterator<Row, void, undefined> {
    return new RowIterator(this.batches())
  }

  /**
   * The rows as they arrive, some hundred at a time: the quickest way through many.
   * @throws {IncompleteError} when the answer breaks off; the batches before it were right
   */
  async *batches(): AsyncGenerator<Row[], void, undefined> {
    const rowFormat = this.#rowFormat(this.#parameters['format'])
    let left = this.#limit ?? Number.POSITIVE_INFINITY
    const pageRows = rowFormat === 'json' ? JSON_PAGE_ROWS : STREAMED_PAGE_ROWS
    let target = this.#target(this.#pageOf(rowFormat, Math.min(left, pageRows)))
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const transfer = await this.#open(target)
      for await (const batch of rowFormat === 'json' ? jsonBatch(transfer) : ndjsonBatches(transfer))
        yield batch as Row[]
      left -= transfer.rows
      const next = nextTarget(transfer, target)
      if (next === null || left <= 0) return
      target = withLimit(next, Math.min(left, pageRows))
    }
    throw new BookcastError(`The answer has more than ${PAGES_MAX} pages.`)
  }

  /** All rows, in memory. */
  async toArray(): Promise<Row[]> {
    const rows: Row[] = []
    for await (const batch of this.batches()) for (const row of batch) rows.push(row)
    return rows
  }

  /**
   * The body in the format that was asked for, json unless said otherwise, of one request.
   * @throws {IncompleteError} when it breaks off or does not end as its format does
   */
  async *bytes(): AsyncGenerator<Uint8Array, void, undefined> {
    const format = (this.#parameters['format'] ?? 'json') as Format
    yield* wholeBytes(await this.#open(this.#target({})), format)
  }

  /**
   * Writes the rows into a file (Node, Deno, Bun), which has its name only when it is whole. Without `format` the end of
   * the name decides: .json, .ndjson, .csv or .parquet. Pages of ndjson and csv are put one behind the other.
   * @throws {MoreRowsError} when json or parquet would have more rows than the server gives in one answer
   */
  async toFile(path: string): Promise<FileResult> {
    const format = (this.#parameters['format'] ?? formatOfName(path)) as Format
    const bytes = await writeWhole(path, this.#filePages(format))
    return { path, bytes, missingDates: this.#missingDates }
  }

  /** How many rows are wanted; undefined for all of them. What is no such number the server refuses. */
  get #limit(): number | undefined {
    const text = String(this.#parameters['limit'])
    return /^\d+$/.test(text) ? Number(text) : undefined
  }

  async *#filePages(format: Format): AsyncGenerator<Uint8Array, void, undefined> {
    const limit = this.#limit
    const isJoined = format === 'ndjson' || format === 'csv'
    const rowsMax = this.#form.limitMax ?? JSON_FILE_ROWS
    const most = format === 'json' ? Math.min(JSON_FILE_ROWS, rowsMax) : rowsMax
    let target: string | null = this.#target(this.#pageOf(format, limit ?? most))
    for (let page = 0; target !== null; page += 1) {
      const transfer: Transfer = await this.#open(target)
      const next: string | null = limit === undefined ? nextTarget(transfer, target) : null
      if (next !== null && (!isJoined || page >= PAGES_MAX)) {
        transfer.close()
        throw new MoreRowsError(
          `There are more than ${most} rows, the most of one ${format} answer: narrow the range, or take ndjson or csv.`,
        )
      }
      const chunks = wholeBytes(transfer, format)
      yield* format === 'csv' && page > 0 ? withoutFirstLine(chunks) : chunks
      target = next
    }
  }

  async #open(target: string): Promise<Transfer> {
    const transfer = await openTransfer(this.#connection, target)
    this.#missingDates = transfer.headers.get('missing-dates')?.split(',') ?? []
    return transfer
  }

  /** In what form rows are read: filled candles come as json alone. */
  #rowFormat(format: ParameterValue): 'json' | 'ndjson' {
    const { formats, hasFill } = this.#form
    if (format === 'csv' || format === 'parquet')
      throw new BookcastError(
        `Rows are not read from ${format}: use toFile or bytes, or leave out format to read rows.`,
      )
    if (format !== undefined) return format as 'json' | 'ndjson'
    const isFilled = hasFill && !['false', false].includes(this.#parameters['fill'] as string | boolean)
    return formats.includes('ndjson') && !isFilled ? 'ndjson' : 'json'
  }

  /** What a page has that the caller's parameters do not say. */
  #pageOf(format: Format, limit: number): Readonly<Record<string, ParameterValue>> {
    const { formats, limitMax } = this.#form
    const isRefused = this.#parameters['limit'] !== undefined && this.#limit === undefined
    return {
      ...(formats.length > 1 ? { format } : {}),
      ...(limitMax === null || isRefused ? {} : { limit }),
    }
  }

  #target(more: Readonly<Record<string, ParameterValue>>): string {
    return targetOf(this.#form.path, { ...this.#parameters, ...more })
  }
}

/** Rows one by one. A promise is made for each, but no more than that. */
class RowIterator<Row> implements AsyncIterator<Row, void, undefined> {
  readonly #batches: AsyncGenerator<Row[], void, undefined>
  #batch: Row[] = []
  #at = 0

  constructor(batches: AsyncGenerator<Row[], void, undefined>) {
    this.#batches = batches
  }

  next(): Promise<IteratorResult<Row, void>> {
    if (this.#at < this.#batch.length)
      return Promise.resolve({ done: false, value: this.#batch[this.#at++] as Row })
    return this.#nextBatch()
  }

  async return(): Promise<IteratorResult<Row, void>> {
    this.#batch = []
    await this.#batches.return()
    return { done: true, value: undefined }
  }

  async #nextBatch(): Promise<IteratorResult<Row, void>> {
    for (;;) {
      const { done, value } = await this.#batches.next()
      if (done === true) return { done: true, value: undefined }
      this.#batch = value
      this.#at = 1
      if (value.length > 0) return { done: false, value: value[0] as Row }
    }
  }
}

async function* jsonBatch(transfer: Transfer): AsyncGenerator<unknown[], void, undefined> {
  const rows = await readJson(transfer)
  if (!Array.isArray(rows)) throw new IncompleteError('it is no list', transfer)
  yield rows
}

/** A text as a part of an address. @throws {BookcastError} for half of a surrogate pair, which is no character */
export function encoded(text: string): string {
  try {
    return encodeURIComponent(text)
  } catch (error) {
    throw new BookcastError(`There is a character in ${JSON.stringify(text)} that is none.`, { cause: error })
  }
}

/** Path and query of a request; what is not given is left out. */
export function targetOf(path: string, parameters: Readonly<Record<string, ParameterValue>>): string {
  const query = Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${encoded(name)}=${encoded(String(value))}`)
  return query.length === 0
    ? path
    : `${path}?${query.join('&').replaceAll('%2C', ',').replaceAll('%3A', ':')}`
}

/** The target of the page that the answer's Link names: its query alone, since only that is another one. */
function nextTarget({ headers }: Transfer, target: string): string | null {
  const link = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(headers.get('link') ?? '')?.[1]
  if (link === undefined) return null
  const query = link.indexOf('?')
  const [path] = target.split('?', 1)
  const next = `${path}${query === -1 ? '' : link.slice(query)}`
  if (next === target) throw new BookcastError('The server names a page as its own next page.')
  return next
}

function withLimit(target: string, limit: number): string {
  const [path = '', query = ''] = target.split('?', 2)
  const parameters = new URLSearchParams(query)
  parameters.set('limit', String(limit))
  return `${path}?${parameters.toString()}`
}

function formatOfName(path: string): Format {
  const end = /\.(json|ndjson|csv|parquet)$/.exec(path)?.[1]
  if (end === undefined)
    throw new BookcastError('The format is not known: give format, or a name that ends in it.')
  return end as Format
}
