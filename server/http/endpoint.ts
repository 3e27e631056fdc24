// What an endpoint is. To add one: declare its parameters, call `defineEndpoint` in a file of its own under
// server/endpoints/, and add the result to the list in server/service/endpoint-list.ts. request-lifecycle.ts does the rest
// for all endpoints: routing, HEAD, OPTIONS, 405, parameter errors, problem answers, streaming, cancelling, the access log.
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

import type { ContentCoding } from './content-coding.ts'
import type { EndpointDocumentation } from './documentation.ts'
import type { ByteStream } from './byte-stream.ts'
import type { Exchange, ReplyHeaders } from './exchange.ts'
import type { ReadyBody } from './ready-body.ts'
import { ParameterParser, type ParameterRule } from '../query/parameter-parser.ts'
import type { Parameter, ParameterValues } from '../query/parameters.ts'

export type { ReplyHeaders } from './exchange.ts'

const NO_BYTES = new Uint8Array(0)

/** An answer that fits in memory: up to some tens of kilobytes. An answer that can grow is a stream. */
export interface WholeReply {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly body: Uint8Array
  /** The same body, if its coded forms are kept ready. */
  readonly ready?: ReadyBody
  /** Records in the body, for the access log. */
  readonly rows?: number
}

/** For HEAD only the headers are sent: `next` is never called, so the endpoint need not produce a body. */
export interface StreamReply {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly stream: ByteStream
}

export type Reply = WholeReply | StreamReply

/** `signal` is aborted when the client is gone or the server destroys the connection. */
export interface RequestContext extends Pick<Exchange, 'header' | 'signal'> {
  /** True for HEAD: only the status and the headers of the reply are used. */
  readonly headOnly: boolean
  /** The tags of If-None-Match, without quotes and coding. */
  readonly held: readonly string[]
  /** The coding of an answer whose type can be coded. */
  readonly coding: ContentCoding
  /** The client: an API key's name or an address. Valid until the handler has returned its promise. */
  readonly client: string
}

/** What caches may do with an answer: a strong entity tag, quotes included, and a Cache-Control value. */
export interface Validator {
  readonly etag: string
  readonly cacheControl: string
}

/**
 * Who may send requests. `data`: needs an API key if keys are configured, and counts against the client's rate. `public`:
 * needs no key. `probe`: needs no key and is not counted; for orchestrators and monitors.
 */
export type Access = 'data' | 'public' | 'probe'

export interface Endpoint {
  /** An exact path, or one with `{name}` segments. */
  readonly path: string
  readonly summary: string
  readonly parameters: readonly Parameter[]
  readonly access: Access
  /** What /openapi.json has beyond the parameters; an endpoint without it is not listed there. */
  readonly documentation: EndpointDocumentation | undefined
  /** Answers a GET or HEAD; without a promise if nothing has to be awaited. */
  respond(
    rawQuery: string,
    pathValues: Readonly<Record<string, string>>,
    context: RequestContext,
  ): Reply | Promise<Reply>
}

export interface EndpointDeclaration<P extends readonly Parameter[]> {
  readonly path: string
  readonly summary: string
  readonly parameters: P
  /** `data` by default. */
  readonly access?: Access
  readonly documentation?: EndpointDocumentation
  readonly rule?: ParameterRule<P>
  handle(values: ParameterValues<P>, context: RequestContext): Reply | Promise<Reply>
}

/** Builds an endpoint whose handler receives checked and typed parameter values. */
export function defineEndpoint<const P extends readonly Parameter[]>(
  declaration: EndpointDeclaration<P>,
): Endpoint {
  const { path, summary, parameters, rule, access = 'data', documentation } = declaration
  const parser = new ParameterParser(parameters, rule)
  return {
    path,
    summary,
    parameters,
    access,
    documentation,
    respond(rawQuery, pathValues, context) {
      const reply = declaration.handle(parser.parse(rawQuery, pathValues), context)
      return reply instanceof Promise ? reply.then(cacheDefault) : cacheDefault(reply)
    },
  }
}

/** Without Cache-Control a cache may keep an answer as long as it likes, so an answer without a validator gets `no-store`. */
function cacheDefault(reply: Reply): Reply {
  if (reply.headers['Cache-Control'] !== undefined || reply.headers['ETag'] !== undefined) return reply
  return { ...reply, headers: { ...reply.headers, 'Cache-Control': 'no-store' } }
}

export function validatorHeaders({ etag, cacheControl }: Validator): ReplyHeaders {
  return { ETag: etag, 'Cache-Control': cacheControl }
}

/** The client has the answer already. */
export function notModifiedReply(validator: Validator): WholeReply {
  return { status: 304, headers: validatorHeaders(validator), body: NO_BYTES }
}

/** A small JSON answer. */
export function jsonReply(value: unknown): WholeReply {
  return {
    status: 200,
    headers: { 'Content-Type': 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(value)),
  }
}
