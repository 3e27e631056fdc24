// The result of a client's method: a request that is sent when the caller reads it, as rows, batches of rows, bytes or a
// file. Long lists are read page by page in constant memory.

import { ApiError, BookcastError, IncompleteError, MoreRowsError } from './errors.ts'
import { writeWhole } from './file.ts'
import type { Connection } from './call.ts'
import { type Format, ndjsonBatches, readJson, wholeBytes, withoutFirstLine } from './rows.ts'
import {
  nextTarget,
  type Parameters,
  type ParameterValue,
  partsOf,
  targetOf,
  textOfTime,
  withLimit,
} from './target.ts'
import { openTransfer, type Transfer } from './transfer.ts'
import type { EndpointForm } from './wire.ts'

/** Rows per page of json, which is held in memory as a whole because it cannot be streamed. */
const JSON_PAGE_ROWS = 10_000
const STREAMED_PAGE_ROWS = 100_000
/** The server's limit of rows in one json response. */
const JSON_FILE_ROWS = 50_000
/** Protects against a server whose pages never end. */
const PAGES_MAX = 100_000

export interface FileResult {
  readonly path: string
  readonly bytes: number
  /** Requested dates without a recording. */
  readonly missingDates: readonly string[]
}

/** A request for rows. It is sent when it is read, and again on every further read. */
export class Answer<Row> implements AsyncIterable<Row> {
  readonly #connection: Connection
  readonly #form: EndpointForm
  readonly #parameters: Readonly<Record<string, ParameterValue>>
  #missingDates: string[] = []
  readonly #lakeVersions = new Set<string | null>()

  /** @throws {BookcastError} for an invalid Date */
  constructor(
    connection: Connection,
    form: EndpointForm,
    parameters: Readonly<Record<string, ParameterValue | Date>>,
  ) {
    this.#connection = connection
    this.#form = form
    const texts = Object.entries(parameters).map(([name, value]) => [
      name,
      value instanceof Date ? textOfTime(value, form.dates.includes(name)) : value,
    ])
    this.#parameters = Object.fromEntries(texts) as Readonly<Record<string, ParameterValue>>
  }

  /** Requested dates of an order-book range that have no recording; known once reading has begun. */
  get missingDates(): readonly string[] {
    return this.#missingDates
  }

  /**
   * The version of the lake that the rows come from, for `version` of a later request; known once reading has begun. Null if
   * the server states none, or if the requests of one read met different versions.
   */
  get lakeVersion(): string | null {
    const [version = null, other] = this.#lakeVersions
    return other === undefined ? version : null
  }

  /** The URL of the request, with the caller's format or with `format`. */
  url(format?: Format): string {
    const given = format ?? this.#parameters['format']
    return this.#connection.baseUrl + this.#target(given === undefined ? {} : { format: given })
  }

  /** Path and query of the request, without the base URL. */
  get target(): string {
    return this.#target({})
  }

  /** Row by row. Leaving the loop ends the request. */
  [Symbol.asyncIterator](): AsyncIterator<Row, void, undefined> {
    return new RowIterator(this.batches())
  }

  /**
   * The rows as they arrive, some hundred at a time: the fastest way to read many rows.
   * @throws {IncompleteError} if the response breaks off; the batches before the error are correct
   */
  async *batches(): AsyncGenerator<Row[], void, undefined> {
    const rowFormat = this.#rowFormat(this.#parameters['format'])
    const pageRows = rowFormat === 'json' ? JSON_PAGE_ROWS : STREAMED_PAGE_ROWS
    let left = this.#limit ?? Number.POSITIVE_INFINITY
    const following = (transfer: Transfer): string | null => {
      left -= transfer.rows
      const next = left <= 0 ? null : nextTarget(transfer)
      return next === null ? null : withLimit(next, Math.min(left, pageRows))
    }
    for await (const transfer of this.#transfers(
      this.#pageOf(rowFormat, Math.min(left, pageRows)),
      following,
    )) {
      for await (const batch of rowFormat === 'json' ? jsonBatch(transfer) : ndjsonBatches(transfer))
        yield batch as Row[]
    }
  }

  /** All rows, in memory. */
  async toArray(): Promise<Row[]> {
    const rows: Row[] = []
    for await (const batch of this.batches()) for (const row of batch) rows.push(row)
    return rows
  }

  /**
   * The response body of a single request, in the caller's format (default: json).
   * @throws {IncompleteError} if it breaks off or does not end as its format requires
   */
  async *bytes(): AsyncGenerator<Uint8Array, void, undefined> {
    const format = (this.#parameters['format'] ?? 'json') as Format
    this.#forget()
    yield* wholeBytes(await this.#open(this.#target({})), format)
  }

  /**
   * Writes the rows to a file (Node, Deno, Bun), which gets its name only when it is complete. Without `format`, the file
   * extension decides: .json, .ndjson, .csv or .parquet. Pages of ndjson and csv are concatenated.
   * @throws {MoreRowsError} if json or parquet would need more rows than the server returns in one response
   */
  async toFile(path: string): Promise<FileResult> {
    const format = (this.#parameters['format'] ?? formatOfName(path)) as Format
    const bytes = await writeWhole(path, this.#filePages(format))
    return { path, bytes, missingDates: this.#missingDates }
  }

  /** The caller's limit of rows; undefined for all rows, or if it is no such number, which the server refuses. */
  get #limit(): number | undefined {
    const text = String(this.#parameters['limit'])
    return /^\d+$/.test(text) ? Number(text) : undefined
  }

  async *#filePages(format: Format): AsyncGenerator<Uint8Array, void, undefined> {
    const limit = this.#limit
    const isJoined = format === 'ndjson' || format === 'csv'
    const rowsMax = this.#form.limitMax ?? JSON_FILE_ROWS
    const most = format === 'json' ? Math.min(JSON_FILE_ROWS, rowsMax) : rowsMax
    const following = (transfer: Transfer) => (limit === undefined ? nextTarget(transfer) : null)
    let isFirst = true
    for await (const transfer of this.#transfers(this.#pageOf(format, limit ?? most), following, isJoined)) {
      if (!isJoined && following(transfer) !== null)
        throw new MoreRowsError(
          `There are more than ${most} rows, the most of one ${format} answer: narrow the range, or take ndjson or csv.`,
        )
      const chunks = wholeBytes(transfer, format)
      yield* isFirst || format !== 'csv' ? chunks : withoutFirstLine(chunks)
      isFirst = false
    }
  }

  /** Opens one request after another: each next page, and the parts of a range that has too many rows for one request. */
  async *#transfers(
    page: Parameters,
    following: (transfer: Transfer) => string | null,
    hasParts = true,
  ): AsyncGenerator<Transfer, void, undefined> {
    this.#forget()
    const waiting = [{ target: this.#target(page), asked: page }]
    for (let count = 0; count < PAGES_MAX; count += 1) {
      const next = waiting.pop()
      if (next === undefined) return
      const { target, asked } = next
      const transfer = await this.#open(target).catch((error: unknown) => {
        const code = error instanceof ApiError ? error.code : undefined
        // A part of a range without data is a date without a recording.
        if (code === 'no_data' && asked !== page) {
          this.#missingDates.push(String(asked['date']))
          return null
        }
        const parts = hasParts && code === 'too_many_rows' ? partsOf({ ...this.#parameters, ...asked }) : []
        if (parts.length === 0) throw error
        const all = parts.map((part) => ({ ...asked, ...part }))
        waiting.push(...all.map((part) => ({ target: this.#target(part), asked: part })).toReversed())
        return null
      })
      if (transfer === null) continue
      try {
        yield transfer
      } finally {
        transfer.close()
      }
      const followed = following(transfer)
      if (followed !== null) waiting.push({ target: followed, asked })
    }
    throw new BookcastError(`The answer has more than ${PAGES_MAX} pages.`)
  }

  #forget(): void {
    this.#missingDates = []
    this.#lakeVersions.clear()
  }

  async #open(target: string): Promise<Transfer> {
    const transfer = await openTransfer(this.#connection, target)
    this.#missingDates.push(...(transfer.headers.get('missing-dates')?.split(',') ?? []))
    this.#lakeVersions.add(transfer.headers.get('lake-version'))
    return transfer
  }

  /** The format in which rows are read. Filled candles are only available as json. */
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

  /** The parameters of a page that are not the caller's. */
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

/** Iterates over rows. Cheaper than an async generator: it only creates one promise for each row. */
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

function formatOfName(path: string): Format {
  const end = /\.(json|ndjson|csv|parquet)$/.exec(path)?.[1]
  if (end === undefined)
    throw new BookcastError('The format is not known: give format, or a name that ends in it.')
  return end as Format
}
