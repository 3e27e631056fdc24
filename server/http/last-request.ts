// Requests that node:http's parser rejects: an unknown method, CONNECT, or bytes that are not HTTP. This code parses the head
// as far as possible, so that the answer has the same text as that of the other adapter. Such a request is always the
// last one of its connection.

import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { BodySink, Exchange, ReplyHead } from './exchange.ts'
import { ReceivedRequest, splitTarget } from './received-request.ts'

/** An error of the parser, with the bytes that it read last. */
export interface ParserError {
  readonly code: string
  readonly rawPacket?: Uint8Array
  readonly bytesParsed?: number
}

export function isParserError(error: unknown): error is ParserError {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    /^(HPE|ERR_HTTP)_/.test(error.code)
  )
}

const STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_INVALID_VERSION: 505,
}

/** Answers bytes that are no request, without a body, and closes the connection. */
export function answerBarely(socket: Duplex, { code }: Pick<ParserError, 'code'>): void {
  const status = STATUSES[code] ?? 400
  const date = new Date().toUTCString()
  const text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nDate: ${date}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`
  socket.end(text, () => socket.destroy())
}

/** The lines of the head in which the parser found an error, its request line first; undefined when it is incomplete. */
export function brokenHead({
  rawPacket = new Uint8Array(0),
  bytesParsed = 0,
}: ParserError): string[] | undefined {
  const text = Buffer.from(rawPacket).toString('latin1')
  const before = text.lastIndexOf('\r\n\r\n', Math.max(0, bytesParsed - 4))
  const start = before < 0 ? 0 : before + 4
  const end = text.indexOf('\r\n\r\n', start)
  return end < 0 ? undefined : text.slice(start, end).split('\r\n')
}

/** An exchange that writes its answer by hand and ends its connection. It has whole answers only. */
export class LastRequest extends ReceivedRequest implements Exchange {
  readonly peerAddress: string
  readonly #socket: Duplex

  constructor(socket: Duplex, peerAddress: string, [requestLine = '', ...lines]: readonly string[]) {
    // The bytes are decoded as latin1. Text that is not ASCII is read as UTF-8, as the other adapter does.
    const [method = '', target = ''] = Buffer.from(requestLine, 'latin1').toString().split(' ')
    super(method, ...splitTarget(target))
    this.#socket = socket
    this.peerAddress = peerAddress
    for (const line of lines) {
      const colon = line.indexOf(':')
      if (colon < 1) continue
      this.see(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim())
    }
  }

  sendWhole({ status, headers }: ReplyHead, body: Uint8Array): void {
    const all = {
      ...headers,
      ...this.commonHeaders,
      Date: new Date().toUTCString(),
      'Content-Length': String(body.length),
      Connection: 'close',
    }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    this.#socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`)
    this.#socket.end(body, () => this.#socket.destroy())
  }

  refuse(head: ReplyHead, body: Uint8Array): void {
    this.sendWhole(head, body)
  }

  sendHead(head: ReplyHead): void {
    this.sendWhole(head, new Uint8Array(0))
  }

  startBody(): BodySink {
    this.destroy()
    throw new Error('What the parser does not understand is never answered with a stream.')
  }

  destroy(): void {
    this.#socket.destroy()
  }
}
