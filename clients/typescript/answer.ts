// What a method of the client gives: a request that is sent when it is read, as rows, as batches of rows, as bytes or
// into a file. Long lists are read page by page, in memory that does not grow with them.

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

/** The rows of one request that are kept in memory as one, where they cannot be streamed. */
const JSON_PAGE_ROWS = 10_000
const STREAMED_PAGE_ROWS = 100_000
/** What the server gives at most in one json answer. */
const JSON_FILE_ROWS = 50_000
/** Against a server whose pages have no end. */
const PAGES_MAX = 100_000

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
  #missingDates: string[] = []
  readonly #lakeVersions = new Set<string | null>()

  /** @throws {BookcastError} for a Date that is none */
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
   * The version of the lake that the rows are of, for `version` of a later request; known once reading has begun. Null where the
   * server names none, and where the requests of one reading met different ones.
   */
  get lakeVersion(): string | null {
    const [version = null, other] = this.#lakeVersions
    return other === undefined ? version : null
  }

  /** The address of the request as it was asked for, or of the same rows in another format. */
  url(format?: Format): string {
    const given = format ?? this.#parameters['format']
    return this.#connection.baseUrl + this.#target(given === undefined ? {} : { format: given })
  }

  /** Path and query of the request, behind the base address. */
  get target(): string {
    return this.#target({})
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
   * The body in the format that was asked for, json unless said otherwise, of one request.
   * @throws {IncompleteError} when it breaks off or does not end as its format does
   */
  async *bytes(): AsyncGenerator<Uint8Array, void, undefined> {
    const format = (this.#parameters['format'] ?? 'json') as Format
    this.#forget()
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

  /** Opens one request after another: the next page, and the parts of a range that has too many rows for one. */
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
        // Of a range it is a date without a recording.
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

function formatOfName(path: string): Format {
  const end = /\.(json|ndjson|csv|parquet)$/.exec(path)?.[1]
  if (end === undefined)
    throw new BookcastError('The format is not known: give format, or a name that ends in it.')
  return end as Format
}
