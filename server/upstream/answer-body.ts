// Reads the whole body of a response and decompresses it. An incomplete body is a failure.

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Dispatcher } from 'undici'
import { detailOf, errorCode, transferFailure } from './attempt-failure.ts'
import { UpstreamError } from './upstream-error.ts'

const gunzipBytes = promisify(gunzip)

export async function receiveBody(upstream: string, body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  try {
    return Buffer.from(await body.arrayBuffer())
  } catch (error) {
    const failure = transferFailure(upstream, error)
    if (!(failure instanceof UpstreamError) || failure.failure !== 'unreachable') throw failure
    throw new UpstreamError(upstream, 'truncated', `the body ends early: ${detailOf(error)}`, {
      cause: error,
    })
  }
}

/** The body without its content coding; throws if it has more than `bytesMax` bytes. */
export async function decoded(
  upstream: string,
  received: Buffer,
  encoding: string | null,
  bytesMax: number,
): Promise<Buffer> {
  if (encoding === null || encoding.toLowerCase() === 'identity' || received.length === 0) return received
  if (!/^(x-)?gzip$/i.test(encoding)) {
    throw new UpstreamError(upstream, 'malformed', `content-encoding ${encoding} was not asked for`)
  }
  try {
    return await gunzipBytes(received, { maxOutputLength: bytesMax })
  } catch (cause) {
    const code = errorCode(cause)
    if (code === 'ERR_BUFFER_TOO_LARGE')
      throw new UpstreamError(upstream, 'too_large', `the body is larger than ${bytesMax} bytes`, { cause })
    if (code === 'Z_BUF_ERROR')
      throw new UpstreamError(upstream, 'truncated', 'the gzip body ends early', { cause })
    throw new UpstreamError(upstream, 'malformed', 'the body is no valid gzip', { cause })
  }
}
