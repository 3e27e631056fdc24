// An answer as it is read. Where the connection breaks off and the server named the answer by a strong tag, it is asked for
// again: an answer of the same tag has the same bytes (RFC 9110, section 8.8.1), so that it goes on behind those that were
// given. A server that serves ranges sends the rest alone, and a compressed stream of order-book rows goes on behind the last
// row; of another answer the beginning is passed over. An answer of another tag, or of none, is not put together with what came
// before: the reader is told that it is not whole.

import { ApiError, ConnectionError, IncompleteError, TimeoutError } from './errors.ts'
import type { AnswerBody } from './body.ts'
import type { Connection } from './call.ts'
import { GivenRows } from './given-rows.ts'
import { openBody, waitForResume } from './request.ts'

/** An answer that came on by so much may be asked for again as often as at first, and in all so often. */
const PROGRESS_BYTES = 64 * 1024
const RESUMES_MAX = 100

/** An answer of status 200 whose body has not been read. */
export class Transfer {
  readonly headers: Headers
  readonly target: string
  /** Whole rows found in the body so far, kept by who reads it. */
  rows = 0
  bytes = 0
  readonly #connection: Connection
  #body: AnswerBody
  /** Bytes at the beginning of `#body` that the reader has. */
  #held = 0
  /** Since the answer last came on by as much as pays for another try. */
  #resumes = 0
  #resumesInAll = 0
  /** What the rest of the rows must begin with. */
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
   * The body, piece by piece. The connection is given up when the loop over it ends early.
   * @throws {IncompleteError} when the transfer breaks off and cannot be resumed
   * @throws {TimeoutError} when nothing comes for too long
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

  /** Gives up an answer whose body is not wanted. */
  close(): void {
    this.#body.close()
  }

  /** Tells who listens how far it has come. */
  report(): void {
    this.#body.report(this)
  }

  /** The next piece that the reader does not have. */
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

  /** The rest of the rows begins with what the reader has of the next one. @throws {IncompleteError} for good when it does not */
  #checkKnown(chunk: Uint8Array = new Uint8Array(0)): void {
    const known = this.#known.subarray(0, chunk.length)
    this.#known = this.#known.subarray(known.length)
    if (known.every((byte, at) => byte === chunk[at])) return
    this.#resumesInAll = RESUMES_MAX
    throw new IncompleteError('asked for the rest, the server sent something else', this)
  }

  /** Asks for the same answer again. @throws {IncompleteError} `broken` itself where that does not help */
  async #resume(broken: IncompleteError): Promise<void> {
    this.close()
    const tag = this.headers.get('etag')
    const isProgress = this.bytes - this.#bytesAtResume >= PROGRESS_BYTES
    this.#resumes = isProgress ? 1 : this.#resumes + 1
    this.#bytesAtResume = this.bytes
    this.#resumesInAll += 1
    if (tag === null || tag.startsWith('W/') || this.#resumesInAll > RESUMES_MAX) throw broken
    if (!(await waitForResume(this.#connection, this.#resumes))) throw broken
    const isRanged = !this.#body.isCoded && this.headers.get('accept-ranges') === 'bytes' && this.bytes > 0
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
      // A server that is gone is told by how far the answer came.
      if (error instanceof ApiError || error instanceof ConnectionError || error instanceof TimeoutError)
        throw broken
      throw error
    }
  }

  /**
   * What the server says of the whole answer now. Asked behind the request for the rest: if the answer is still the same
   * one, it was then.
   */
  async #presentHeaders(): Promise<Headers> {
    const head = await openBody(this.#connection, this.target, {}, 'HEAD')
    head.close()
    return head.response.headers
  }
}

/** The first byte of a part, by its Content-Range; NaN where there is none. */
function startOf(headers: Headers): number {
  return Number(/^bytes (\d+)-/.exec(headers.get('content-range') ?? '')?.[1])
}

/**
 * Sends a GET until it is answered with 200, and gives the answer with its body unread.
 * @param target path and query, behind the base address
 * @throws {ApiError} when the server refuses it, and goes on refusing it
 */
export async function openTransfer(connection: Connection, target: string): Promise<Transfer> {
  return new Transfer(connection, target, await openBody(connection, target))
}
