// The client of a Bookcast server: a typed method for every endpoint. It depends on nothing but fetch and web streams,
// so that it runs in Node, Deno, Bun and browsers alike.
//
//   const bookcast = new Bookcast('http://localhost:8080')
//   for await (const row of bookcast.lob({ market, date, interval: 1 })) console.log(row.ts, row.mid)
//   await bookcast.lob({ series, date }).toFile('day.parquet')
//
// Instants and dates are text or a Date; a date is the Date's in UTC.

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
   * Whether answers travel compressed; browsers decide that themselves. Default: unless the server is on this machine,
   * where it saves nothing and costs time and memory.
   */
  readonly compress?: boolean | undefined
  /** Another fetch than the runtime's own. */
  readonly fetch?: typeof fetch | undefined
}

/** A snapshot of a request with `nulls`. */
export type SnapshotWithNulls = {
  readonly [Name in LobColumn]:
    | Snapshot[Name]
    | (Name extends 'best_bid' | 'best_ask' | 'spread' | 'mid' ? null : never)
}

const LOOPBACK = /^(?:localhost|127\.[\d.]+|\[::1\])$/

/** What a header holds everywhere; a key of other characters is none that a server knows. */
const KEY = /^[\x20-\x7e]*$/

/** @throws {BookcastError} unless the address is one of http or https, and the key one that can be sent */
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
    // Browsers want it called as a function of nobody.
    fetch: (...request) => ownFetch(...request),
    retry,
    options: callOptions,
  }
}

/** A Bookcast server. Its methods send nothing themselves: the Answer they give does, when it is read. */
export class Bookcast {
  readonly #connection: Connection

  /** @param address such as `http://localhost:8080`; a path in it stands before every request's */
  constructor(address: string | URL, options: BookcastOptions = {}) {
    this.#connection = connectionOf(address, options)
  }

  /** Order-book snapshots at a regular interval. `ts` is whole seconds in nanoseconds, which a number holds exactly. */
  lob<Column extends LobColumn = LobColumn, Nulls extends boolean = false>(
    parameters: LobParameters<Column> & { readonly nulls?: Nulls | undefined },
    options?: CallOptions,
  ): Answer<Pick<[Nulls] extends [false] ? Snapshot : SnapshotWithNulls, Column>> {
    return this.#answer(ENDPOINTS.lob, parameters, options)
  }

  /** Books of one instant. Nanoseconds in rows are rounded to what a number holds, 256 of them. */
  lobAt(parameters: LobAtParameters, options?: CallOptions): Answer<BookAt> {
    return this.#answer(ENDPOINTS.lobAt, parameters, options)
  }

  /** Rows, bytes and files of an order-book answer. */
  async lobEstimate(parameters: LobParameters, options?: CallOptions): Promise<LobEstimate> {
    const { target } = this.#answer(ENDPOINTS.lobEstimate, parameters, options)
    return (await readJson(await openTransfer(this.#with(options), target))) as LobEstimate
  }

  /** Candles. Rows are filled unless `fill` is false; in csv and parquet they never are. */
  candles<Column extends CandleColumn = CandleColumn>(
    parameters: CandlesParameters<Column> = {},
    options?: CallOptions,
  ): Answer<Pick<Candle, Column>> {
    return this.#answer(ENDPOINTS.candles, parameters, options)
  }

  /** METAR and SPECI. */
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

  /** Rows, bytes and digest of an order-book answer. */
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

  /** Trades. `ts` is nanoseconds, which a number holds to about 256 ns; csv and parquet have them exactly. */
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

  /** When the book of a market is not known. Nanoseconds in rows are rounded to what a number holds, 256 of them. */
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

  /** One series; an ApiError with the code `unknown_series` when there is none. */
  seriesNamed(ticker: string, options?: CallOptions): Promise<Series> {
    return this.#one(ENDPOINTS.seriesNamed, ticker, options) as Promise<Series>
  }

  /** The markets of the catalogue. */
  markets(parameters: MarketsParameters = {}, options?: CallOptions): Answer<Market> {
    return this.#answer(ENDPOINTS.markets, parameters, options)
  }

  /** One market; an ApiError with the code `unknown_market` when there is none. */
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

  /** The state of what the server depends on. */
  health(options?: CallOptions): Promise<Health> {
    return this.#one(ENDPOINTS.health, '', options) as Promise<Health>
  }

  /** Whether the server takes requests; an ApiError with status 503 when it does not and goes on so. */
  ready(options?: CallOptions): Promise<Ready> {
    return this.#one(ENDPOINTS.ready, '', options) as Promise<Ready>
  }

  /** Whether the process is there. */
  live(options?: CallOptions): Promise<Live> {
    return this.#one(ENDPOINTS.live, '', options) as Promise<Live>
  }

  /** The server's own description, OpenAPI 3.1. */
  openApi(options?: CallOptions): Promise<unknown> {
    return this.#one({ path: '/openapi.json' }, '', options)
  }

  /** The server's metrics as Prometheus reads them. */
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
    // However they are written, addresses lose them, and another path would be asked.
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
