// A real S3 server on loopback, with a layer in front that records requests and injects faults.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import { S3Store } from '../../server/sync/s3-store.ts'
import { temporaryDirectory } from './temporary-lake.ts'

interface Fake {
  configureBuckets(): Promise<unknown>
  callback(): RequestListener
}
type FakeConstructor = new (options: object) => Fake
const require = createRequire(import.meta.url)
const FakeS3 = require('s3rver') as FakeConstructor

/** The fault of a request: a status instead of a response, a body cut off after some bytes, or one with a wrong byte. */
export type Fault =
  | { readonly status: number }
  | { readonly cutAfterBytes: number }
  | { readonly wrongByte: number }

export interface SeenRequest {
  readonly method: string
  /** Key below the bucket, without the query. */
  readonly key: string
  readonly range: string | undefined
  readonly isList: boolean
  /** A PUT that names the version it replaces. */
  readonly isConditional: boolean
  /** Size of its body. */
  readonly bytes: number
}

export interface S3Server {
  readonly endpoint: string
  readonly requests: SeenRequest[]
  /** Decides on each request; undefined forwards it. */
  fault: (request: SeenRequest) => Fault | undefined
  /** Each request waits for this before its body is read. */
  gate: (request: SeenRequest) => Promise<void>
  /** Whether If-Match and If-None-Match of a PUT are respected, as by Amazon's service but not by s3rver. */
  heedsConditions: boolean
  /** Body bytes of GET responses, without listings. */
  sentBytes: number
  store(prefix?: string): S3Store
}

export const BUCKET = 'lake'

export async function startS3Server(t: TestContext): Promise<S3Server> {
  process.env['AWS_ACCESS_KEY_ID'] = 'S3RVER'
  process.env['AWS_SECRET_ACCESS_KEY'] = 'S3RVER'
  const fake = new FakeS3({
    directory: await temporaryDirectory(t),
    silent: true,
    allowMismatchedSignatures: true,
    configureBuckets: [{ name: BUCKET }],
  })
  await fake.configureBuckets()
  const answer = fake.callback()
  const requests: SeenRequest[] = []
  const puts = new OrderedPuts()
  const server = createServer((request, response) => {
    const seen = describe(request)
    requests.push(seen)
    void pass(request, response, seen)
  })
  const pass = async (
    request: IncomingMessage,
    response: ServerResponse,
    seen: SeenRequest,
  ): Promise<void> => {
    await state.gate(seen)
    if (request.method !== 'PUT') {
      await puts.before(seen.key)
      response.once('finish', () => puts.noteRemoval(seen, response))
      return serve(request, response, seen)
    }
    const whole = await wholeOf(request)
    if (whole === undefined) return
    const { 'if-match': match, 'if-none-match': none } = state.heedsConditions ? request.headers : {}
    await puts.take(seen.key, { match, none }, request, response, () => serve(whole, response, seen))
  }
  const serve = (request: IncomingMessage, response: ServerResponse, seen: SeenRequest): void => {
    const fault = state.fault(seen)
    if (fault !== undefined && 'status' in fault) {
      request.resume()
      response.writeHead(fault.status).end()
      return
    }
    if (fault !== undefined) spoil(response, fault)
    response.once('finish', () => {
      if (seen.method === 'GET' && !seen.isList)
        state.sentBytes += Number(response.getHeader('content-length') ?? 0)
    })
    answer(request, response)
  }
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const state: S3Server = {
    endpoint,
    requests,
    fault: () => undefined,
    gate: () => Promise.resolve(),
    heedsConditions: false,
    sentBytes: 0,
    store(prefix = '') {
      const store = new S3Store({ bucket: BUCKET, prefix, endpoint })
      t.after(() => store.close())
      return store
    },
  }
  return state
}

/**
 * Serializes the PUTs of a key, because s3rver would mix two up, and checks the version that they name. Other requests of the key
 * wait for a running PUT, because s3rver writes bytes and ETag one after the other.
 */
class OrderedPuts {
  readonly #etags = new Map<string, string>()
  readonly #last = new Map<string, Promise<void>>()

  /** Resolves once the running PUTs are done. */
  async before(key: string): Promise<void> {
    await this.#last.get(key)
  }

  noteRemoval({ method, key }: SeenRequest, { statusCode }: ServerResponse): void {
    if (method === 'DELETE' && statusCode === 204) this.#etags.delete(key)
  }

  async take(
    key: string,
    condition: { readonly match: string | undefined; readonly none: string | undefined },
    request: IncomingMessage,
    response: ServerResponse,
    serve: () => void,
  ): Promise<void> {
    const before = this.#last.get(key)
    // Set before the next request for the key is checked, so that it waits for this one.
    const closed = once(response, 'close').then(() => this.#note(key, response))
    this.#last.set(key, closed)
    await before
    const { match, none } = condition
    const etag = this.#etags.get(key)
    if ((match !== undefined && match !== etag) || (none === '*' && etag !== undefined)) {
      request.resume()
      response.writeHead(412, { 'content-type': 'application/xml' })
      response.end('<Error><Code>PreconditionFailed</Code><Message>another version</Message></Error>')
      return
    }
    serve()
  }

  #note(key: string, response: ServerResponse): void {
    const written = response.getHeader('etag')
    if (response.statusCode === 200 && typeof written === 'string') this.#etags.set(key, written)
  }
}

/**
 * The request with its whole body; undefined if its client ended before. s3rver writes into the object while it reads, and would
 * leave half an object of a killed client.
 */
async function wholeOf(request: IncomingMessage): Promise<IncomingMessage | undefined> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return undefined
  }
  const { method, url, headers, rawHeaders, httpVersion, socket } = request
  const parts = { method, url, headers, rawHeaders, httpVersion, socket }
  return Object.assign(Readable.from(chunks, { objectMode: false }), parts) as IncomingMessage
}

function describe({ method = '', url = '', headers }: IncomingMessage): SeenRequest {
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1')
  const key = decodeURIComponent(pathname).slice(BUCKET.length + 2)
  const isConditional = headers['if-match'] !== undefined || headers['if-none-match'] !== undefined
  const isList = searchParams.has('list-type')
  return {
    method,
    key,
    range: headers.range,
    isList,
    isConditional: method === 'PUT' && isConditional,
    bytes: Number(headers['content-length'] ?? 0),
  }
}

function spoil(response: ServerResponse, fault: Exclude<Fault, { readonly status: number }>): void {
  const write = response.write.bind(response) as (chunk: Uint8Array) => boolean
  let sentBytes = 0
  const spoiled = (chunk: Uint8Array): boolean => {
    const bytes = Buffer.from(chunk)
    const start = sentBytes
    sentBytes += bytes.length
    if ('wrongByte' in fault) {
      const at = fault.wrongByte - start
      if (at >= 0 && at < bytes.length) bytes[at]! ^= 1
      return write(bytes)
    }
    if (sentBytes <= fault.cutAfterBytes) return write(bytes)
    write(bytes.subarray(0, Math.max(0, fault.cutAfterBytes - start)))
    // Ended, not reset, so that written data still arrives.
    response.socket?.end()
    return false
  }
  response.write = spoiled as typeof response.write
}
