// The client that asks the server this page came from. An API key is kept in this object and nowhere else: it is gone when
// the page is.

import { Answer, Bookcast } from '../clients/typescript/bookcast.ts'
import type { CallOptions, Connection } from '../clients/typescript/call.ts'
import type { RecordedSeries } from './recorded-days.ts'

const RECORDINGS = {
  path: '/explorer/recordings',
  formats: ['json'],
  limitMax: null,
  hasFill: false,
  dates: [],
} as const

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
    const connection: Connection = {
      baseUrl: this.baseUrl,
      headers: this.#apiKey === undefined ? {} : { Authorization: `Bearer ${this.#apiKey}` },
      fetch: (...request) => fetch(...request),
      retry: {},
      options,
    }
    return new Answer<RecordedSeries>(connection, RECORDINGS, {}).toArray()
  }
}
