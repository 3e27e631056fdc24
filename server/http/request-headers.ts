// The header lines of a request, whichever library has read them: those that an answer depends on, and what is wrong with
// how the lines frame the request.
//
// Refused are requests of which two readers could disagree where they end. The library believes the first Content-Length,
// takes any Transfer-Encoding for chunked and is generous about chunks, so a proxy that reads them otherwise would let a
// second request through in the body of a first (RFC 9112, section 11.2). Nothing here takes a body, so whatever is not
// plainly framed is refused.

import { REQUEST_HEADERS, type RequestHeader } from './exchange.ts'

const LOOKED_AT: ReadonlySet<string> = new Set(REQUEST_HEADERS)

export class RequestHeaders {
  readonly #values = new Map<string, string>()
  #contentLengths = 0
  #hosts = 0
  #fault: string | undefined

  /** The next line, its name in lower case. Several lines of one name are one list. */
  see(name: string, value: string): void {
    if (name === 'content-length') {
      this.#contentLengths += 1
      if (!/^\d{1,15}$/.test(value)) this.#fault ??= 'its Content-Length is no number'
    } else if (name === 'transfer-encoding') this.#fault ??= 'it has a Transfer-Encoding'
    else if (name === 'host') this.#hosts += 1
    if (!LOOKED_AT.has(name)) return
    const before = this.#values.get(name)
    this.#values.set(name, before === undefined ? value : `${before}, ${value}`)
  }

  /** Empty where the request has none. */
  valueOf(name: RequestHeader): string {
    return this.#values.get(name) ?? ''
  }

  /** Why the request is refused; undefined for one whose end is beyond doubt. All lines have been seen. */
  get framingFault(): string | undefined {
    if (this.#contentLengths > 1) return 'it has several Content-Length lines'
    if (this.#hosts > 1) return 'it has several Host lines'
    return this.#fault
  }
}
