// Writes status and headers of an answer to uWebSockets.js.

import { STATUS_CODES } from 'node:http'
import type { HttpResponse } from 'uWebSockets.js'
import type { ReplyHead } from './exchange.ts'

const STATUS_LINES: ReadonlyMap<number, string> = new Map(
  Object.entries(STATUS_CODES).map(([status, text]) => [Number(status), `${status} ${text}`]),
)

export function writeHead(response: HttpResponse, { status, headers, commonHeaders }: ReplyHead): void {
  if (status !== 200) response.writeStatus(STATUS_LINES.get(status) ?? String(status))
  for (const name of Object.keys(headers)) response.writeHeader(name, headers[name] ?? '')
  for (const name of Object.keys(commonHeaders)) response.writeHeader(name, commonHeaders[name] ?? '')
}
