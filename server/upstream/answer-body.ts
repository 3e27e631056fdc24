// Reads the whole body of a response and decompresses it. An incomplete body is a failure.

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Dispatcher } from 'undici'
import { AttemptFailure, attemptFailure, errorCode } from './attempt-failure.ts'

const gunzipBytes = promisify(gunzip)

export async function receiveBody(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  try {
    return Buffer.from(await body.arrayBuffer())
  } catch (error) {
    const failure = attemptFailure(error)
    if (!(failure instanceof AttemptFailure) || failure.failure !== 'unreachable') throw failure
    throw new AttemptFailure('truncated', `the body ends early: ${failure.message}`, { cause: error })
  }
}

async function gunzipBody(received: Buffer, bytesMax: number): Promise<Buffer> {
  try {
    return await gunzipBytes(received, { maxOutputLength: bytesMax })
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ERR_BUFFER_TOO_LARGE') {
      throw new AttemptFailure('too_large', `the body is larger than ${bytesMax} bytes`, { cause: error })
    }
    const isCut = code === 'Z_BUF_ERROR'
    throw new AttemptFailure(
      isCut ? 'truncated' : 'malformed',
      isCut ? 'the gzip body ends early' : 'the body is no valid gzip',
      { cause: error },
    )
  }
}

/** The body without its content coding; throws if it has more than `bytesMax` bytes. */
export async function decoded(received: Buffer, encoding: string | null, bytesMax: number): Promise<Buffer> {
  if (encoding === null || encoding.toLowerCase() === 'identity' || received.length === 0) return received
  if (!/^(x-)?gzip$/i.test(encoding)) {
    throw new AttemptFailure('malformed', `content-encoding ${encoding} was not asked for`)
  }
  return await gunzipBody(received, bytesMax)
}
