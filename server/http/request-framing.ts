// Which requests are refused for how they are framed: those of which two readers could disagree where they end. The
// library believes the first Content-Length, takes any Transfer-Encoding for chunked and is generous about chunks, so a
// proxy that reads them otherwise would let a second request through in the body of a first (RFC 9112, section 11.2).
// Nothing here takes a body, so whatever is not plainly framed is refused.

/** What the header lines of one request say of its end. */
export class RequestFraming {
  #contentLengths = 0
  #hosts = 0
  #fault: string | undefined

  /** Looks at one header line; `name` in lower case. */
  see(name: string, value: string): void {
    if (name === 'content-length') {
      this.#contentLengths += 1
      if (!/^\d{1,15}$/.test(value)) this.#fault ??= 'its Content-Length is no number'
    } else if (name === 'transfer-encoding') this.#fault ??= 'it has a Transfer-Encoding'
    else if (name === 'host') this.#hosts += 1
  }

  /** Why the request is refused; undefined for one whose end is beyond doubt. */
  get fault(): string | undefined {
    if (this.#contentLengths > 1) return 'it has several Content-Length lines'
    if (this.#hosts > 1) return 'it has several Host lines'
    return this.#fault
  }
}
