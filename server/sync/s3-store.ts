// A bucket of an S3-compatible service below a prefix. Credentials come from the SDK's own chain (environment, profile,
// container, instance). Objects written here carry the SHA-256 of their bytes as metadata, so that readers can
// check them independently of the service's ETag.

import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { Readable } from 'node:stream'
import {
  type _Object as S3Object,
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import {
  SYNC_ANSWER_MS_MAX,
  SYNC_HELD_BYTES_MAX,
  SYNC_HELD_BYTES_PER_MS_MIN,
  SYNC_OBJECT_BYTES_MAX,
  SYNC_PARALLEL_MAX,
  SYNC_STALL_MS,
} from '../../shared/limits.ts'
import {
  DamagedTransfer,
  isListed,
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  RAW_PREFIX,
  type ObjectHead,
  type ObjectStore,
  type OpenBytes,
  type WriteOptions,
  type WrittenObject,
} from './object-store.ts'
import { guardStream } from './transfer-pump.ts'

const SHA256_KEY = 'sha256'
const NOT_IMPLEMENTED = 501
/** The character after the slash: no key below `raw/` comes after `raw0`. */
const AFTER_SLASH = '0'
const CONNECT_TIMEOUT_MS = 10_000
// Without a logger the SDK writes to the console. Every error of importance reaches the caller.
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore }
// Suppresses the SDK's warning about Node 20, which every command would print (github.com/aws/aws-sdk-js-v3/issues/7983).
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'

/** `metadata` is the user metadata that the writer set, in lower-case names. */
export interface S3ObjectHead extends ObjectHead {
  readonly metadata: Readonly<Record<string, string>>
}

export interface S3WriteOptions extends WriteOptions {
  readonly metadata?: Readonly<Record<string, string>>
}

/** The condition of a write, in the service's terms. */
interface WriteCondition {
  readonly IfMatch?: string
  readonly IfNoneMatch?: string
}

export interface S3StoreOptions {
  readonly bucket: string
  /** Without slashes at its ends; empty for the whole bucket. */
  readonly prefix: string
  /** Another service than Amazon's. */
  readonly endpoint?: string | undefined
  /** By default from the credential chain; `us-east-1` with another endpoint. */
  readonly region?: string | undefined
  /** Put the bucket in the path, not in the host name. Default: true with `endpoint`. */
  readonly pathStyle?: boolean | undefined
}

export class S3Store implements ObjectStore {
  readonly name: string
  readonly #client: S3Client
  readonly #bucket: string
  readonly #prefix: string
  /** Whether the service may know conditional writes. */
  #isConditional = true

  constructor({ bucket, prefix, endpoint, region, pathStyle }: S3StoreOptions) {
    const hasEndpoint = endpoint !== undefined
    const chosenRegion = region ?? (hasEndpoint ? 'us-east-1' : undefined)
    this.#bucket = bucket
    this.#prefix = prefix === '' ? '' : `${prefix}/`
    this.name = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`
    this.#client = new S3Client({
      ...(hasEndpoint ? { endpoint } : {}),
      ...(chosenRegion === undefined ? {} : { region: chosenRegion }),
      logger: SILENT,
      forcePathStyle: pathStyle ?? hasEndpoint,
      // Whole-object digests are checked here; many compatible services refuse the SDK's trailing checksums.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: uploadStallMs(SYNC_HELD_BYTES_MAX),
        httpAgent: { maxSockets: SYNC_PARALLEL_MAX },
        httpsAgent: { maxSockets: SYNC_PARALLEL_MAX },
      },
    })
  }

  /** Every object whose key `isWanted`. Default: those that the options name. */
  async *list(
    signal?: AbortSignal,
    options: ListOptions = {},
    isWanted: (key: string) => boolean = (key) => isListed(key, options),
  ): AsyncGenerator<ListedObject, void, void> {
    let place: { readonly ContinuationToken?: string; readonly StartAfter?: string } = {}
    for (;;) {
      const wanted = { Bucket: this.#bucket, Prefix: this.#prefix + (options.prefix ?? ''), ...place }
      const page = await this.#inTime(signal, (limited) =>
        this.#client.send(new ListObjectsV2Command(wanted), limited),
      )
      // A page of a proxy or of another service would count as an empty bucket.
      if (page.Name === undefined && page.IsTruncated === undefined && page.Contents === undefined)
        throw new Error(
          `${this.name}: the answer to a listing is not one of object storage; check the endpoint`,
        )
      for (const object of page.Contents ?? []) {
        const listed = this.#listed(object)
        if (listed !== undefined && isWanted(listed.key)) yield listed
      }
      if (page.IsTruncated !== true) return
      const last = page.Contents?.at(-1)?.Key ?? ''
      // A listing without raw segments does not read their pages.
      if (options.raw !== true && last.startsWith(`${this.#prefix}${RAW_PREFIX}`))
        place = { StartAfter: `${this.#prefix}${RAW_PREFIX.slice(0, -1)}${AFTER_SLASH}` }
      // Without a continuation token, the same page would be requested forever.
      else if (page.NextContinuationToken === undefined)
        throw new Error(`${this.name}: a listing ended without a continuation token`)
      else place = { ContinuationToken: page.NextContinuationToken }
    }
  }

  async head(key: string, signal?: AbortSignal): Promise<S3ObjectHead | undefined> {
    try {
      const head = await this.#inTime(signal, (limited) =>
        this.#client.send(new HeadObjectCommand(this.#place(key)), limited),
      )
      if (head.ETag === undefined || head.ContentLength === undefined) {
        throw new Error(`${this.name}: no ETag or length for ${key}`)
      }
      return {
        key,
        sizeBytes: head.ContentLength,
        version: head.ETag,
        sha256: sha256In(head.Metadata),
        md5: md5Of(head.ETag, head.ServerSideEncryption),
        metadata: head.Metadata ?? {},
      }
    } catch (error) {
      if (storageStatusOf(error) === 404) return undefined
      throw error
    }
  }

  /** @param end reads only the bytes before this one */
  async get(object: ListedObject, offset: number, signal?: AbortSignal, end?: number): Promise<Readable> {
    const isWhole = offset === 0 && end === undefined
    const range = isWhole ? {} : { Range: `bytes=${offset}-${end === undefined ? '' : end - 1}` }
    const wanted = new GetObjectCommand({ ...this.#place(object.key), ...range, IfMatch: object.version })
    const reply = await this.#inTime(signal, (limited) => this.#client.send(wanted, limited)).catch(
      (error: unknown) => {
        const isOther = [404, 412, 416].includes(storageStatusOf(error) ?? 0)
        throw isOther ? new ObjectChanged(object.key) : error
      },
    )
    const body = reply.Body as Readable
    // Some compatible services ignore If-Match or Range.
    const isSame = reply.ETag === object.version
    const isRest = isWhole || reply.ContentRange?.startsWith(`bytes ${offset}-`) === true
    if (isSame && isRest) {
      // The reader gets this very error.
      body.once('error', (error: Error) => {
        if (error !== signal?.reason && error.name === 'Error')
          error.message = `${this.name}: the answer broke off: ${error.message}`
      })
      return body
    }
    body.destroy()
    if (!isSame) throw new ObjectChanged(object.key)
    throw new Error(`${this.name} does not send ${object.key} from byte ${offset} on`)
  }

  async put(head: ObjectHead, open: OpenBytes, options: S3WriteOptions = {}): Promise<WrittenObject> {
    const { signal, onBytes, beforeVisible } = options
    const { sha256, md5 } = head
    if (sha256 === null || md5 === null) throw new Error(`${head.key} cannot be uploaded before it was read`)
    if (head.sizeBytes > SYNC_OBJECT_BYTES_MAX) {
      throw new Error(`${head.key} has ${head.sizeBytes} bytes; one upload takes ${SYNC_OBJECT_BYTES_MAX}`)
    }
    await beforeVisible?.(sha256)
    const condition = this.#conditionOf(options)
    const body = await open(0, signal)
    const guard = guardStream(body, signal, uploadStallMs(head.sizeBytes))
    const sent = createHash('sha256')
    onBytes?.(0)
    body.on('data', (chunk: Buffer) => {
      guard.touch()
      sent.update(chunk)
      onBytes?.(chunk.length)
    })
    body.pause()
    try {
      const reply = await this.#client.send(
        new PutObjectCommand({
          ...this.#place(head.key),
          Body: body,
          ContentLength: head.sizeBytes,
          ContentMD5: Buffer.from(md5, 'hex').toString('base64'),
          ContentType: contentTypeOf(head.key),
          Metadata: { ...options.metadata, [SHA256_KEY]: sha256 },
          ...condition,
        }),
        { abortSignal: guard.broken },
      )
      if (reply.ETag === undefined) throw new Error(`${this.name}: no ETag for ${head.key}`)
      const stored = md5Of(reply.ETag, reply.ServerSideEncryption)
      if (sent.digest('hex') !== sha256)
        throw new DamagedTransfer(head.key, 'the file changed while it was sent')
      if (stored !== null && stored !== md5) throw new DamagedTransfer(head.key, `MD5 ${stored}, not ${md5}`)
      return { version: reply.ETag, sha256 }
    } catch (error) {
      throw guard.broken.aborted ? guard.broken.reason : this.#putError(error, head.key, condition)
    } finally {
      guard.release()
      body.destroy()
    }
  }

  #conditionOf({ replaces }: WriteOptions): WriteCondition {
    if (replaces === undefined || !this.#isConditional) return {}
    return replaces === null ? { IfNoneMatch: '*' } : { IfMatch: replaces }
  }

  #putError(error: unknown, key: string, condition: WriteCondition): unknown {
    const status = storageStatusOf(error)
    if (Object.keys(condition).length === 0) return this.#named(error)
    // The object was removed or replaced, or another write to it is in progress.
    if (status === 404 || status === 409 || status === 412) return new ObjectChanged(key)
    if (status === NOT_IMPLEMENTED) this.#isConditional = false
    return this.#named(error)
  }

  /** Lets the service copy an object. Rejects with ObjectChanged if the object has changed. */
  async copy(
    { key, version }: ListedObject,
    newKey: string,
    metadata: S3ObjectHead['metadata'],
    signal?: AbortSignal,
  ): Promise<void> {
    const source = `${this.#bucket}/${this.#prefix}${key}`
    try {
      const copy = new CopyObjectCommand({
        ...this.#place(newKey),
        CopySource: encodeURI(source).replaceAll('+', '%2B'),
        CopySourceIfMatch: version,
        MetadataDirective: 'REPLACE',
        Metadata: { ...metadata },
        ContentType: contentTypeOf(newKey),
      })
      await this.#inTime(signal, (limited) => this.#client.send(copy, limited))
    } catch (error) {
      const status = storageStatusOf(error)
      throw status === 404 || status === 412 ? new ObjectChanged(key) : error
    }
  }

  async remove(key: string, signal?: AbortSignal): Promise<void> {
    try {
      await this.#inTime(signal, (limited) =>
        this.#client.send(new DeleteObjectCommand(this.#place(key)), limited),
      )
    } catch (error) {
      if (storageStatusOf(error) !== 404) throw error
    }
  }

  close(): void {
    this.#client.destroy()
  }

  /**
   * Sends a request with a timeout for its whole answer, or for the head of an object's bytes: on a connection that sends a byte now
   * and then, no timeout of the socket ends it.
   */
  async #inTime<Reply>(
    signal: AbortSignal | undefined,
    send: (limited: { readonly abortSignal: AbortSignal }) => Promise<Reply>,
  ): Promise<Reply> {
    signal?.throwIfAborted()
    // In Node 20, AbortSignal.any leaves something in a signal that lives as long as the process.
    const request = new AbortController()
    const stop = (): void => request.abort(signal?.reason)
    const free = (): void => signal?.removeEventListener('abort', stop)
    signal?.addEventListener('abort', stop)
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      request.abort()
    }, SYNC_ANSWER_MS_MAX)
    try {
      const reply = await send({ abortSignal: request.signal })
      const { Body: body } = reply as { readonly Body?: unknown }
      if (body instanceof Readable) body.once('close', free)
      else free()
      return reply
    } catch (error) {
      free()
      signal?.throwIfAborted()
      if (!isLate) throw this.#named(error)
      throw new Error(`${this.name}: no complete answer within ${SYNC_ANSWER_MS_MAX / 1000} s`, {
        cause: error,
      })
    } finally {
      clearTimeout(timer)
    }
  }

  /** An error of the service or of the connection to it, with the place and the response. */
  #named(error: unknown): unknown {
    const status = statusOf(error)
    if (!(error instanceof Error)) return error
    if (status === undefined) {
      const isOfConnection = 'code' in error && typeof error.code === 'string'
      return isOfConnection ? new Error(`${this.name}: no answer: ${error.message}`, { cause: error }) : error
    }
    return new Error(`${this.name}: HTTP ${status} ${error.name} ${error.message}`.trimEnd(), {
      cause: error,
    })
  }

  #listed({ Key, Size, ETag }: S3Object): ListedObject | undefined {
    if (Key === undefined || Size === undefined || ETag === undefined) return undefined
    const key = Key.slice(this.#prefix.length)
    return Key.startsWith(this.#prefix) ? { key, sizeBytes: Size, version: ETag } : undefined
  }

  #place(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#bucket, Key: `${this.#prefix}${key}` }
  }
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.json': 'application/json',
  '.gz': 'application/gzip',
  '.csv': 'text/csv',
  '.parquet': 'application/vnd.apache.parquet',
}

function contentTypeOf(key: string): string {
  return CONTENT_TYPES[extname(key)] ?? 'text/plain'
}

/** The MD5 in an ETag; null for multipart uploads (`…-12`) and for objects encrypted with a service's key. */
function md5Of(etag: string, encryption: string | undefined): string | null {
  if (encryption !== undefined && encryption !== 'AES256') return null
  return /^"?([0-9a-f]{32})"?$/.exec(etag)?.[1] ?? null
}

function sha256In(metadata: Readonly<Record<string, string>> | undefined): string | null {
  const text = metadata?.[SHA256_KEY]?.toLowerCase() ?? ''
  return /^[0-9a-f]{64}$/.test(text) ? text : null
}

/** The HTTP status of object storage's response, if an error or its cause has one. */
export function storageStatusOf(error: unknown): number | undefined {
  if (error instanceof S3ServiceException) return error.$metadata.httpStatusCode
  return error instanceof Error ? storageStatusOf(error.cause) : undefined
}

/** The same for any service: credential services have their own error classes. */
export function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } }
  return $metadata?.httpStatusCode ?? statusOf(error.cause)
}

/** How long an upload may read none of its bytes: after the last one, the system may still hold many. */
function uploadStallMs(sizeBytes: number): number {
  return SYNC_STALL_MS + Math.min(sizeBytes, SYNC_HELD_BYTES_MAX) / SYNC_HELD_BYTES_PER_MS_MIN
}

function ignore(): void {}
