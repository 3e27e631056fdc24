// The client for the server of this page. An API key is kept only in this object and is lost when the page is closed.

import { Answer, Bookcast } from '../clients/typescript/bookcast.ts'
import type { CallOptions, Connection } from '../clients/typescript/call.ts'
import type { RecordedSeries } from './recorded-days.ts'
import type { MarketName } from './strikes.ts'

export interface NamedMarket extends MarketName {
  readonly market_id: string
}

/** An endpoint that only this page uses; the client has no method for it. */
function ownEndpoint(path: string) {
  return { path, formats: ['json'], limitMax: null, hasFill: false, dates: [] } as const
}

export class Session {
  readonly baseUrl = new URL('.', document.baseURI).href.replace(/\/(?:#.*)?$/, '')
  #apiKey: string | undefined

  get needsKey(): boolean {
    return this.#apiKey !== undefined
  }

  get client(): Bookcast {
    return new Bookcast(this.baseUrl, { apiKey: this.#apiKey })
  }

  /** Does not retry. For optional data, and for the state of the server. */
  get impatientClient(): Bookcast {
    return new Bookcast(this.baseUrl, { apiKey: this.#apiKey, retry: { attempts: 1 } })
  }

  /** @throws {BookcastError} for a key that cannot be sent */
  useKey(key: string): void {
    void new Bookcast(this.baseUrl, { apiKey: key })
    this.#apiKey = key
  }

  /** The series and dates that have order books in the lake. */
  recordings(options: CallOptions = {}): Promise<RecordedSeries[]> {
    return this.#own<RecordedSeries>('recordings', {}, options).toArray()
  }

  /** The exchange's names of the markets that have books on a date. */
  marketNames(source: string, series: string, date: string): Promise<NamedMarket[]> {
    return this.#own<NamedMarket>('names', { source, series, date }).toArray()
  }

  #own<Row>(
    name: string,
    parameters: Readonly<Record<string, string>>,
    options: CallOptions = {},
  ): Answer<Row> {
    const connection: Connection = {
      baseUrl: this.baseUrl,
      headers: this.#apiKey === undefined ? {} : { Authorization: `Bearer ${this.#apiKey}` },
      fetch: (...request) => fetch(...request),
      retry: {},
      options,
    }
    return new Answer<Row>(connection, ownEndpoint(`/explorer/${name}`), parameters)
  }
}
