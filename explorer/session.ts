// The client that asks the server this page came from. An API key is kept in this object and nowhere else: it is gone when
// the page is.

import { Answer, Bookcast } from '../clients/typescript/bookcast.ts'
import type { CallOptions, Connection } from '../clients/typescript/call.ts'
import type { RecordedSeries } from './recorded-days.ts'
import type { MarketName } from './strikes.ts'

export interface NamedMarket extends MarketName {
  readonly market_id: string
}

/** What is for this page alone, and no method of the client. */
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

  /** For what the page can do without, or what tells how the server is: a refusal is not waited for. */
  get impatientClient(): Bookcast {
    return new Bookcast(this.baseUrl, { apiKey: this.#apiKey, retry: { attempts: 1 } })
  }

  /** @throws {BookcastError} for a key that cannot be sent */
  useKey(key: string): void {
    void new Bookcast(this.baseUrl, { apiKey: key })
    this.#apiKey = key
  }

  /** The series and dates that the lake has order books of. */
  recordings(options: CallOptions = {}): Promise<RecordedSeries[]> {
    return this.#own<RecordedSeries>('recordings', {}, options).toArray()
  }

  /** What an exchange calls the markets of a date's books. */
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
