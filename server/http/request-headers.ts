// The header lines of a request, whichever library has read them: those that an answer depends on, and what is wrong with
// how the lines frame the request.

import { REQUEST_HEADERS, type RequestHeader } from './exchange.ts'
import { RequestFraming } from './request-framing.ts'

const LOOKED_AT: ReadonlySet<string> = new Set(REQUEST_HEADERS)

export class RequestHeaders {
  readonly #values = new Map<string, string>()
  readonly #framing = new RequestFraming()

  /** The next line, its name in lower case. Several lines of one name are one list. */
  see(name: string, value: string): void {
    this.#framing.see(name, value)
    if (!LOOKED_AT.has(name)) return
    const before = this.#values.get(name)
    this.#values.set(name, before === undefined ? value : `${before}, ${value}`)
  }

  /** Empty where the request has none. */
  valueOf(name: RequestHeader): string {
    return this.#values.get(name) ?? ''
  }

  /** Why the request is not plainly framed; undefined when it is. All lines have been seen. */
  get framingFault(): string | undefined {
    return this.#framing.fault
  }
}
