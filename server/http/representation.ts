// The form in which a reply is sent: 304 when the client has it already, compressed when the client accepts that and it pays,
// else plain. Answers that have several forms carry Vary, and each form has its own tag.

import { COMPRESSED_BODY_BYTES_MIN } from '../../shared/limits.ts'
import { compressedStream, compressWhole } from './compression.ts'
import { chooseCoding, type ContentCoding, isCodedType } from './content-coding.ts'
import type { ByteStream } from './byte-stream.ts'
import type { Reply, ReplyHeaders, WholeReply } from './endpoint.ts'
import { codedEtag, matchingTag } from './etag.ts'
import type { Exchange } from './exchange.ts'

const NO_BYTES = new Uint8Array(0)

/** Vary: always the coding, and what the endpoint names. */
function varyOf(headers: ReplyHeaders): ReplyHeaders {
  const own = headers['Vary']
  return { Vary: own === undefined ? 'Accept-Encoding' : `${own}, Accept-Encoding` }
}

function codedHeaders(headers: ReplyHeaders, coding: ContentCoding): ReplyHeaders {
  if (coding === 'identity') return { ...headers, ...varyOf(headers) }
  const etag = headers['ETag']
  return {
    ...headers,
    ...varyOf(headers),
    'Content-Encoding': coding,
    ...(etag === undefined ? {} : { ETag: codedEtag(etag, coding) }),
  }
}

/** The 304 to a client that has the answer already. */
function conditionalReply(reply: WholeReply, exchange: Exchange): WholeReply | undefined {
  const etag = reply.headers['ETag']
  if (etag === undefined || (reply.status !== 200 && reply.status !== 304)) return undefined
  const ifNoneMatch = exchange.header('if-none-match')
  const held = ifNoneMatch === '' ? undefined : matchingTag(ifNoneMatch, etag)
  if (held === undefined) return undefined
  const cacheControl = reply.headers['Cache-Control']
  return {
    status: 304,
    headers: {
      ETag: held,
      ...varyOf(reply.headers),
      ...(cacheControl === undefined ? {} : { 'Cache-Control': cacheControl }),
    },
    body: NO_BYTES,
  }
}

async function compressedReply(
  reply: WholeReply,
  coding: Exclude<ContentCoding, 'identity'>,
): Promise<WholeReply> {
  const body = await (reply.ready?.inCoding(coding) ?? compressWhole(coding, reply.body))
  return { ...reply, headers: codedHeaders(reply.headers, coding), body }
}

/** The reply that is sent for `reply`; a promise only if a body has to be compressed. */
export function represent(reply: Reply, exchange: Exchange): Reply | Promise<Reply> {
  const isStream = 'stream' in reply
  // A stream has started already: its endpoint has checked If-None-Match before.
  const conditional = isStream ? undefined : conditionalReply(reply, exchange)
  if (conditional !== undefined) return conditional
  if (!isStream && reply.body.length < COMPRESSED_BODY_BYTES_MIN) return reply
  if (!isCodedType(reply.headers['Content-Type'] ?? '')) return reply
  const coding = chooseCoding(exchange.header('accept-encoding'))
  if (coding === 'identity') return { ...reply, headers: codedHeaders(reply.headers, coding) }
  if (!isStream) return compressedReply(reply, coding)
  // HEAD needs the headers only: nothing is compressed for it.
  const stream = exchange.method === 'HEAD' ? reply.stream : codedStream(reply.stream, coding)
  return { ...reply, headers: codedHeaders(reply.headers, coding), stream }
}

function codedStream(stream: ByteStream, coding: Exclude<ContentCoding, 'identity'>): ByteStream {
  return stream.inCoding?.(coding) ?? compressedStream(stream, coding)
}
