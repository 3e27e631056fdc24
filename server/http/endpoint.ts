// What an endpoint is. To add one: declare its parameters, call `defineEndpoint` in a file of its own under
// server/endpoints/, and add the result to the list in server/server.ts. The rest (routing, HEAD, OPTIONS, 405, parameter
// errors, problem answers, streaming, cancelling, the access log) is done by request-lifecycle.ts for all of them alike.
//
//   export const seriesEndpoint = (catalogue: Catalogue) => defineEndpoint({
//     path: '/api/v1/series/{ticker}',
//     summary: 'One series.',
//     parameters: [{ name: 'ticker', in: 'path', description: 'Series ticker', schema: { type: 'string' } }],
//     async handle({ ticker }, { signal }) {
//       const series = await catalogue.findSeries(ticker, signal)
//       if (series === undefined) throw new ApiError('unknown_series', `No series is named ${quote(ticker)}.`)
//       return jsonReply(series)
//     },
//   })

import { ParameterParser, type ParameterRule } from '../query/parameter-parser.ts'
import type { Parameter, ParameterValues } from '../query/parameters.ts'

/**
 * A body that is produced while it is sent. `next` is called again only when the client has taken the chunk before, and
 * the chunk it gave may be reused from then on. It resolves to null once everything was given, and rejects when the
 * answer cannot be completed: with an ApiError before the first chunk that becomes the answer, later the connection is
 * destroyed. `close` is called exactly once, however the request ends; it stops the producer and frees what it holds.
 */
export interface ByteStream {
  next(): Promise<Uint8Array | null>
  close(): Promise<void>
  /** Records given, for the access log; null when the stream cannot tell. */
  readonly rows: number | null
}

export type ReplyHeaders = Readonly<Record<string, string>>

/** An answer that fits in memory: up to some tens of kilobytes; anything that can grow is a stream. */
export interface WholeReply {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly body: Uint8Array
  /** Records in the body, for the access log. */
  readonly rows?: number
}

/** For HEAD only the headers are sent: `next` is never called, so the endpoint need not produce anything. */
export interface StreamReply {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly stream: ByteStream
}

export type Reply = WholeReply | StreamReply

export interface RequestContext {
  /** True for HEAD: only the status and the headers of the reply are used. */
  readonly headOnly: boolean
  /** Aborted when the client is gone or the server destroys the connection. */
  readonly signal: AbortSignal
}

export interface Endpoint {
  /** An exact path, or one with `{name}` segments. */
  readonly path: string
  readonly summary: string
  readonly parameters: readonly Parameter[]
  /** Answers a GET or HEAD. */
  respond(
    rawQuery: string,
    pathValues: Readonly<Record<string, string>>,
    context: RequestContext,
  ): Promise<Reply>
}

/** Builds an endpoint whose handler receives checked and typed parameter values. */
export function defineEndpoint<const P extends readonly Parameter[]>(declaration: {
  readonly path: string
  readonly summary: string
  readonly parameters: P
  readonly rule?: ParameterRule<P>
  handle(values: ParameterValues<P>, context: RequestContext): Promise<Reply>
}): Endpoint {
  const { path, summary, parameters, rule } = declaration
  const parser = new ParameterParser(parameters, rule)
  return {
    path,
    summary,
    parameters,
    respond: async (rawQuery, pathValues, context) =>
      declaration.handle(parser.parse(rawQuery, pathValues), context),
  }
}

/** A small JSON answer. */
export function jsonReply(value: unknown, status = 200): WholeReply {
  return {
    status,
    headers: { 'Content-Type': 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(value)),
  }
}
