// Reads a response and resumes it after a lost connection. Without a strong ETag, a response is not resumed. With one, the
// client requests it again: a response with the same strong ETag has the same bytes (RFC 9110, section 8.8.1). If the server
// supports ranges, it sends only the remaining bytes; a compressed stream of order-book rows continues after the last row.
// For any other response, the client skips the bytes that it already has. If the ETag is now another, the two responses are
// not combined, and the reader gets an IncompleteError.

import { ApiError, ConnectionError, IncompleteError, TimeoutError } from './errors.ts'
import type { AnswerBody } from './body.ts'
import type { Connection } from './call.ts'
import { GivenRows } from './given-rows.ts'
import { openBody, waitForResume } from './request.ts'

/** After this much progress, the count of resumes starts again. */
const PROGRESS_BYTES = 64 * 1024
/** Limits resumes without a range: a server that ignores `after` would send the same rows without end. */
const UNRANGED_MAX = 100

/** A response with status 200 whose body has not been read. */
export class Transfer {
  readonly headers: Headers
  readonly target: string
  /** Complete rows parsed from the body so far; its reader updates this. */
  rows = 0
  bytes = 0
  readonly #connection: Connection
  #body: AnswerBody
  /** Bytes at the start of `#body` that the reader already has. */
  #held = 0
  /** Resumes since the last progress of PROGRESS_BYTES. */
  #resumes = 0
  #unranged = 0
  /** The bytes with which the remaining rows must begin. */
  #known: Uint8Array = new Uint8Array(0)
  #bytesAtResume = 0
  readonly #given: GivenRows | undefined

  constructor(connection: Connection, target: string, body: AnswerBody) {
    this.#connection = connection
    this.target = target
    this.#body = body
    this.headers = body.response.headers
    this.#given = body.isCoded ? GivenRows.of(target) : undefined
  }

  /**
   * The body in chunks. Leaving the loop early closes the connection.
   * @throws {IncompleteError} if the transfer breaks off and cannot be resumed
   * @throws {TimeoutError} if the server sends nothing for too long
   */
  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const chunk = await this.#next()
        if (chunk === undefined) return
        this.bytes += chunk.length
        this.#given?.take(chunk)
        yield chunk
      }
    } finally {
      this.close()
    }
  }

  /** Cancels the rest of the response. */
  close(): void {
    this.#body.close()
  }

  /** Calls `onProgress`. */
  report(): void {
    this.#body.report(this)
  }

  /** The next bytes that the reader does not have. */
  async #next(): Promise<Uint8Array | undefined> {
    for (;;) {
      try {
        const chunk = await this.#body.read(this)
        if (chunk === undefined && this.#held > 0)
          throw new IncompleteError('asked for again, it ended before', this)
        this.#checkKnown(chunk)
        const held = Math.min(this.#held, chunk?.length ?? 0)
        this.#held -= held
        if (chunk === undefined || held < chunk.length) return chunk?.subarray(held)
      } catch (error) {
        if (!(error instanceof IncompleteError)) throw error
        await this.#resume(error)
      }
    }
  }

  /** Checks that the remaining rows begin with the known bytes. @throws {IncompleteError} if not; prevents further resumes */
  #checkKnown(chunk: Uint8Array = new Uint8Array(0)): void {
    const known = this.#known.subarray(0, chunk.length)
    this.#known = this.#known.subarray(known.length)
    if (known.every((byte, at) => byte === chunk[at])) return
    this.#unranged = UNRANGED_MAX
    throw new IncompleteError('asked for the rest, the server sent something else', this)
  }

  /** Requests the same response again. @throws {IncompleteError} `broken` itself if it cannot be resumed */
  async #resume(broken: IncompleteError): Promise<void> {
    this.close()
    const tag = this.headers.get('etag')
    const isProgress = this.bytes - this.#bytesAtResume >= PROGRESS_BYTES
    this.#resumes = isProgress ? 1 : this.#resumes + 1
    this.#bytesAtResume = this.bytes
    const isRanged = !this.#body.isCoded && this.headers.get('accept-ranges') === 'bytes' && this.bytes > 0
    if (!isRanged) this.#unranged += 1
    if (tag === null || tag.startsWith('W/') || this.#unranged > UNRANGED_MAX) throw broken
    if (!(await waitForResume(this.#connection, this.#resumes))) throw broken
    const range = isRanged ? { Range: `bytes=${this.bytes}-`, 'If-Range': tag } : undefined
    const rows = this.#given?.next(this.target)
    try {
      this.#body = await openBody(this.#connection, rows?.target ?? this.target, range)
      const present = rows === undefined ? this.#body.response.headers : await this.#presentHeaders()
      const isRest = this.#body.response.status === 206
      const isSame = present.get('etag') === tag && (!isRest || startOf(present) === this.bytes)
      if (!isSame) {
        this.close()
        throw new IncompleteError(
          'the connection broke off, and the answer is another one since',
          this,
          broken,
        )
      }
      this.#known = rows?.known ?? new Uint8Array(0)
      this.#held = rows === undefined ? (isRest ? 0 : this.bytes) : this.#known.length
    } catch (error) {
      // If the server is unavailable, report how much of the response was read.
      if (error instanceof ApiError || error instanceof ConnectionError || error instanceof TimeoutError)
        throw broken
      throw error
    }
  }

  /**
   * The current headers of the whole response. Requested after the request for the rest: if the response is still the same,
   * it was the same at that request.
   */
  async #presentHeaders(): Promise<Headers> {
    const head = await openBody(this.#connection, this.target, {}, 'HEAD')
    head.close()
    return head.response.headers
  }
}

/** The position of the first byte of a partial response, from Content-Range; NaN without one. */
function startOf(headers: Headers): number {
  return Number(/^bytes (\d+)-/.exec(headers.get('content-range') ?? '')?.[1])
}

/**
 * Sends a GET until the response is 200, and returns it with its body unread.
 * @param target path and query, without the base URL
 * @throws {ApiError} if the server refuses the request, and still refuses it after the last retry
 */
export async function openTransfer(connection: Connection, target: string): Promise<Transfer> {
  return new Transfer(connection, target, await openBody(connection, target))
}
