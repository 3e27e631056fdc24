// The client of a Bookcast server: a typed method for every endpoint. It only needs fetch and web streams, so that it runs
// in Node, Deno, Bun and browsers.
//
//   const bookcast = new Bookcast('http://localhost:8080')
//   for await (const row of bookcast.lob({ market, date, interval: 1 })) console.log(row.ts, row.mid)
//   await bookcast.lob({ series, date }).toFile('day.parquet')
//
// Instants and dates are text or a Date. For a date, the UTC date of the Date is sent.

import { Answer } from './answer.ts'
import { BookcastError } from './errors.ts'
import type { CallOptions, Connection, RetryPolicy } from './call.ts'
import { readJson, wholeBytes } from './rows.ts'
import { encoded, type ParameterValue, targetOf } from './target.ts'
import { openTransfer } from './transfer.ts'
import {
  type BookAt,
  type Candle,
  type CandleColumn,
  type CandlesParameters,
  type ClimateColumn,
  type ClimateGap,
  type ClimateGapsParameters,
  type ClimateParameters,
  type ClimateRecord,
  type Coverage,
  type CoverageColumn,
  type CoverageParameters,
  type EndpointForm,
  ENDPOINTS,
  type FilesParameters,
  type Gap,
  type GapsColumn,
  type GapsParameters,
  type Health,
  type LakeFile,
  type LakeVersion,
  type Live,
  type LobAtParameters,
  type LobColumn,
  type LobDate,
  type LobDatesParameters,
  type LobEstimate,
  type LobParameters,
  type LobReceipt,
  type Market,
  type MarketsParameters,
  type Observation,
  type ObservationColumn,
  type ObservationsParameters,
  type Ready,
  type Series,
  type SeriesParameters,
  type Snapshot,
  type Trade,
  type TradesColumn,
  type TradesParameters,
  type VersionsParameters,
} from './wire.ts'

export interface BookcastOptions extends CallOptions {
  /** Sent as `Authorization: Bearer …`. */
  readonly apiKey?: string | undefined
  readonly retry?: RetryPolicy | undefined
  /**
   * Whether to request compressed responses; browsers ignore this option. Default: true, except for a server on this
   * machine, where compression saves nothing and costs time and memory.
   */
  readonly compress?: boolean | undefined
  /** Replaces the runtime's fetch. */
  readonly fetch?: typeof fetch | undefined
}

/** A snapshot in the response to a request with `nulls`. */
export type SnapshotWithNulls = {
  readonly [Name in LobColumn]:
    | Snapshot[Name]
    | (Name extends 'best_bid' | 'best_ask' | 'spread' | 'mid' ? null : never)
}

const LOOPBACK = /^(?:localhost|127\.[\d.]+|\[::1\])$/

/** The characters that every runtime can send in a header. No server has a key with others. */
const KEY = /^[\x20-\x7e]*$/

/** @throws {BookcastError} unless the address is an http or https URL and the key can be sent in a header */
function connectionOf(address: string | URL, options: BookcastOptions): Connection {
  const { apiKey, retry = {}, fetch: ownFetch = globalThis.fetch, compress, ...callOptions } = options
  const url = URL.canParse(String(address)) ? new URL(address) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new BookcastError(`The server's address must be one of http or https, not ${String(address)}.`)
  if (apiKey !== undefined && !KEY.test(apiKey))
    throw new BookcastError('An API key has only characters of ASCII, and no line break.')
  return {
    baseUrl: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    headers: {
      ...(apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` }),
      'Accept-Encoding': (compress ?? !LOOPBACK.test(url.hostname)) ? 'gzip' : 'identity',
    },
    // In browsers, fetch throws if it is called as a method of another object.
    fetch: (...request) => ownFetch(...request),
    retry,
    options: callOptions,
  }
}

/** A Bookcast server. Methods that return an Answer send nothing; reading the Answer sends the request. */
export class Bookcast {
  readonly #connection: Connection

  /** @param address such as `http://localhost:8080`; a path in it precedes the path of every request */
  constructor(address: string | URL, options: BookcastOptions = {}) {
    this.#connection = connectionOf(address, options)
  }

  /** Order-book snapshots at a regular interval. `ts` is a whole second in nanoseconds, which a number represents exactly. */
  lob<Column extends LobColumn = LobColumn, Nulls extends boolean = false>(
    parameters: LobParameters<Column> & { readonly nulls?: Nulls | undefined },
    options?: CallOptions,
  ): Answer<Pick<[Nulls] extends [false] ? Snapshot : SnapshotWithNulls, Column>> {
    return this.#answer(ENDPOINTS.lob, parameters, options)
  }

  /** Books at one instant. Nanoseconds in rows are rounded to the precision of a number, 256 ns. */
  lobAt(parameters: LobAtParameters, options?: CallOptions): Answer<BookAt> {
    return this.#answer(ENDPOINTS.lobAt, parameters, options)
  }

  /** Estimates the rows, bytes and files of an order-book response. */
  async lobEstimate(parameters: LobParameters, options?: CallOptions): Promise<LobEstimate> {
    const { target } = this.#answer(ENDPOINTS.lobEstimate, parameters, options)
    return (await readJson(await openTransfer(this.#with(options), target))) as LobEstimate
  }

  /** Candles. Rows are filled unless `fill` is false; csv and parquet are never filled. */
  candles<Column extends CandleColumn = CandleColumn>(
    parameters: CandlesParameters<Column> = {},
    options?: CallOptions,
  ): Answer<Pick<Candle, Column>> {
    return this.#answer(ENDPOINTS.candles, parameters, options)
  }

  /** METAR and SPECI observations. */
  observations<Column extends ObservationColumn = ObservationColumn>(
    parameters: ObservationsParameters<Column> = {},
    options?: CallOptions,
  ): Answer<Pick<Observation, Column>> {
    return this.#answer(ENDPOINTS.observations, parameters, options)
  }

  /** Daily highs and lows, which settle the markets. */
  climate<Column extends ClimateColumn = ClimateColumn>(
    parameters: ClimateParameters<Column> = {},
    options?: CallOptions,
  ): Answer<Pick<ClimateRecord, Column>> {
    return this.#answer(ENDPOINTS.climate, parameters, options)
  }

  /** Rows, bytes and digest of an order-book response. */
  async lobReceipt(parameters: LobParameters, options?: CallOptions): Promise<LobReceipt> {
    const { target } = this.#answer(ENDPOINTS.lobReceipt, parameters, options)
    return (await readJson(await openTransfer(this.#with(options), target))) as LobReceipt
  }

  /** UTC dates of a series or event that have order books. */
  lobDates(parameters: LobDatesParameters, options?: CallOptions): Answer<LobDate> {
    return this.#answer(ENDPOINTS.lobDates, parameters, options)
  }

  /** Dates without a climate report. */
  climateGaps(parameters: ClimateGapsParameters, options?: CallOptions): Answer<ClimateGap> {
    return this.#answer(ENDPOINTS.climateGaps, parameters, options)
  }

  /** Trades. `ts` is in nanoseconds, rounded to the precision of a number, 256 ns; csv and parquet have it exactly. */
  trades<Column extends TradesColumn = TradesColumn>(
    parameters: TradesParameters<Column>,
    options?: CallOptions,
  ): Answer<Pick<Trade, Column>> {
    return this.#answer(ENDPOINTS.trades, parameters, options)
  }

  /** How much of each hour or date of a market's order books is known. `first_book_ts` is rounded as in gaps. */
  coverage<Column extends CoverageColumn = CoverageColumn>(
    parameters: CoverageParameters<Column>,
    options?: CallOptions,
  ): Answer<Pick<Coverage, Column>> {
    return this.#answer(ENDPOINTS.coverage, parameters, options)
  }

  /** The times at which the book of a market is unknown. Nanoseconds in rows are rounded to the precision of a number, 256 ns. */
  gaps<Column extends GapsColumn = GapsColumn>(
    parameters: GapsParameters<Column>,
    options?: CallOptions,
  ): Answer<Pick<Gap, Column>> {
    return this.#answer(ENDPOINTS.gaps, parameters, options)
  }

  /** The series of the catalogue. */
  series(parameters: SeriesParameters = {}, options?: CallOptions): Answer<Series> {
    return this.#answer(ENDPOINTS.series, parameters, options)
  }

  /** One series. @throws {ApiError} with the code `unknown_series` if there is none */
  seriesNamed(ticker: string, options?: CallOptions): Promise<Series> {
    return this.#one(ENDPOINTS.seriesNamed, ticker, options) as Promise<Series>
  }

  /** The markets of the catalogue. */
  markets(parameters: MarketsParameters = {}, options?: CallOptions): Answer<Market> {
    return this.#answer(ENDPOINTS.markets, parameters, options)
  }

  /** One market. @throws {ApiError} with the code `unknown_market` if there is none */
  marketNamed(ticker: string, options?: CallOptions): Promise<Market> {
    return this.#one(ENDPOINTS.marketNamed, ticker, options) as Promise<Market>
  }

  /** The files of the lake, with their checksums. */
  files(parameters: FilesParameters, options?: CallOptions): Answer<LakeFile> {
    return this.#answer(ENDPOINTS.files, parameters, options)
  }

  /** The versions of a dataset, the newest first. */
  versions(parameters: VersionsParameters, options?: CallOptions): Answer<LakeVersion> {
    return this.#answer(ENDPOINTS.versions, parameters, options)
  }

  /** The state of the server's stores and lake. */
  health(options?: CallOptions): Promise<Health> {
    return this.#one(ENDPOINTS.health, '', options) as Promise<Health>
  }

  /** Whether the server accepts requests. @throws {ApiError} with status 503 if it still does not after the last retry */
  ready(options?: CallOptions): Promise<Ready> {
    return this.#one(ENDPOINTS.ready, '', options) as Promise<Ready>
  }

  /** Whether the process responds. */
  live(options?: CallOptions): Promise<Live> {
    return this.#one(ENDPOINTS.live, '', options) as Promise<Live>
  }

  /** The server's OpenAPI 3.1 document. */
  openApi(options?: CallOptions): Promise<unknown> {
    return this.#one({ path: '/openapi.json' }, '', options)
  }

  /** The server's metrics in the Prometheus text format. */
  async metrics(options?: CallOptions): Promise<string> {
    const transfer = await openTransfer(this.#with(options), '/metrics')
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of wholeBytes(transfer, 'ndjson')) text += decoder.decode(chunk, { stream: true })
    return text
  }

  #answer<Row>(form: EndpointForm, parameters: object, options: CallOptions | undefined): Answer<Row> {
    return new Answer<Row>(
      this.#with(options),
      form,
      parameters as Readonly<Record<string, ParameterValue | Date>>,
    )
  }

  async #one(
    { path }: Pick<EndpointForm, 'path'>,
    name: string,
    options: CallOptions | undefined,
  ): Promise<unknown> {
    // URL parsing removes dot segments, even encoded ones, so that the request would go to another path.
    if (name === '.' || name === '..') throw new BookcastError(`Nothing is called "${name}".`)
    const target = targetOf(path.replace(/\{\w+\}/, encoded(name)), {})
    return readJson(await openTransfer(this.#with(options), target))
  }

  #with(options: CallOptions | undefined): Connection {
    return { ...this.#connection, options: { ...this.#connection.options, ...options } }
  }
}

export { Answer, type FileResult } from './answer.ts'
export * from './errors.ts'
export { verifyExport } from './export.ts'
export type { Format } from './rows.ts'
export type { CallOptions, Progress, RetryPolicy, Waiting } from './call.ts'
export type * from './wire.ts'
