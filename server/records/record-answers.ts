// Caches record answers, so that a repeated one is made once. An answer is kept under its query, with its identity as in its
// ETag. Before it is reused, the thread that would make it plans it again, which reads no row, and reports whether the identity
// is still the same: the same versions of the store's datasets, read after the request came, and the same lake files. So a
// write to either store is seen as soon as without a cache, and a failure is never kept. An answer from lake files alone is
// reused as long as these files and their directories are unchanged; then neither a thread nor the store is asked.

import { BoundedMap } from '../../shared/bounded-map.ts'
import type { SeenFile } from '../../shared/file-identity.ts'
import type { LakePin } from '../../shared/lake-pin.ts'
import type { RecordHead, RecordQuery } from '../../shared/record-task.ts'
import type { AnswerCache, KeptAnswer } from '../answers/answer-cache.ts'
import { Rounds } from '../answers/rounds.ts'
import type { DataVersions } from '../catalogue/catalogue-feed.ts'
import type { ByteStream } from '../http/byte-stream.ts'
import type { RequestContext } from '../http/endpoint.ts'
import { readyStream } from '../http/ready-body.ts'
import type { WorkerStream } from '../workers/worker-stream.ts'
import { openNamed } from './named-answer.ts'
import { isSmallByRows, type RecordPool } from './record-pool.ts'
import { SeenFiles } from './seen-files.ts'
import type { RecordValidators } from './record-validators.ts'

/** Queries whose answers were too long to be kept; their answers are not collected again. */
const LONG_KNOWN_MAX = 1_000

/** The files that an answer was made of, and the version of the manifest at that time. */
interface AnswerFiles {
  readonly seen: readonly SeenFile[]
  readonly manifest: string | undefined
}

type AnswerHead = Pick<RecordHead, 'nextOffset' | 'identity' | 'isHeld' | 'files' | 'stamps' | 'series'>

/** An opened answer and its head. The stream must be closed. */
export interface OpenedAnswer {
  readonly head: AnswerHead
  readonly stream: ByteStream
}

export type AnswerRequest = Pick<RequestContext, 'headOnly' | 'held' | 'signal' | 'client'> & {
  /** Whether the request itself states its whole range; only then can its answer have an identity. */
  readonly isFixed: boolean
  /** Set if the request names a version. */
  readonly pin?: LakePin | undefined
}

interface AnswerFacts extends Pick<RecordHead, 'stamps' | 'series'> {
  readonly keys: readonly string[]
  readonly identity: string
  readonly nextOffset: number | null
  readonly rows: number
  /** Set if it is made of lake files alone, and these were not changing when it was last planned. */
  files: AnswerFiles | undefined
}

/**
 * The result of a round, for all requests that share it, or for one (`single`): the others then run on their own.
 * `unserved` is 1 until the request for which the answer was made has it: that one is no cache hit.
 */
type RoundResult =
  | { readonly kind: 'kept'; readonly answer: KeptAnswer<AnswerFacts>; unserved: number }
  | { readonly kind: 'held'; readonly identity: string | null }
  | { readonly kind: 'single'; readonly take: (signal: AbortSignal) => OpenedAnswer | undefined }

export class RecordAnswers {
  readonly #pool: RecordPool
  readonly #validators: RecordValidators
  readonly #cache: AnswerCache
  readonly #rounds = new Rounds<RoundResult>()
  readonly #long = new BoundedMap<true>(LONG_KNOWN_MAX)
  readonly #seenFiles = new SeenFiles()

  constructor(pool: RecordPool, validators: RecordValidators, cache: AnswerCache) {
    this.#pool = pool
    this.#validators = validators
    this.#cache = cache
  }

  /** Resolves when the first chunk has arrived, or when the client turns out to have the answer. */
  async open(query: RecordQuery, request: AnswerRequest): Promise<OpenedAnswer> {
    const { isFixed, headOnly, pin } = request
    if (pin === undefined && isFixed && !headOnly && this.#cache.bodyBytesMax > 0 && isSmallByRows(query)) {
      // Without `nowMs`: what depends on it is part of the answer's identity.
      const key = JSON.stringify({ ...query, nowMs: undefined })
      const shared = this.#long.get(key) === true ? undefined : await this.#openShared(key, query, request)
      if (shared !== undefined) return shared
    }
    return this.#openAlone(query, request)
  }

  async #openAlone(query: RecordQuery, request: AnswerRequest): Promise<OpenedAnswer> {
    const { isFixed, headOnly, held, signal, client, pin } = request
    const known = this.#validators.known
    const versions = isFixed ? ((await this.#validators.fresh()) ?? known) : known
    const validation = isFixed
      ? this.#validators.validationOf(query.kind, versions, { held, kept: [] })
      : null
    const remembered = this.#validators.rememberedOf(versions)
    const options = { headOnly, validation, versions: remembered, pin, signal, client }
    const stream = await this.#pool.open(query, options)
    return { head: stream.head, stream }
  }

  /** Undefined for a request that must run on its own. */
  async #openShared(
    key: string,
    query: RecordQuery,
    { held, signal, client }: AnswerRequest,
  ): Promise<OpenedAnswer | undefined> {
    const result = await this.#rounds.join(`${key} ${held.join(' ')}`, signal, (roundSignal) =>
      this.#takeRound(key, query, { held, client, signal: roundSignal }),
    )
    if (result.kind === 'single') return result.take(signal)
    if (result.kind === 'held') {
      const { identity } = result
      const head = { nextOffset: null, identity, isHeld: true, files: [], stamps: [], series: null }
      return { head, stream: NOTHING }
    }
    const { identity, nextOffset, rows, keys: files, stamps, series } = result.answer.facts
    const head = { nextOffset, identity, isHeld: false, files, stamps, series }
    if (result.unserved > 0) result.unserved -= 1
    else this.#cache.figures.hits += 1
    if (held.includes(identity) || held.includes('*'))
      return { head: { ...head, isHeld: true }, stream: NOTHING }
    return { head, stream: readyStream(result.answer.body, rows, result.answer.hold()) }
  }

  /** One round for all requests that joined it. A failure goes to one of them; the others try on their own. */
  async #takeRound(
    key: string,
    query: RecordQuery,
    round: { held: readonly string[]; client: string; signal: AbortSignal },
  ): Promise<RoundResult> {
    try {
      const kept = this.#cache.find<AnswerFacts>(key)
      if (kept !== undefined && (await this.#isStillRight(kept.facts)))
        return { kind: 'kept', answer: kept, unserved: 0 }
      const reading = new AbortController()
      const abort = (): void => reading.abort()
      round.signal.addEventListener('abort', abort, { once: true })
      round.signal.throwIfAborted()
      const opened = await openNamed(this.#pool, this.#validators, query, {
        held: round.held,
        kept: kept === undefined ? [] : [kept.facts.identity],
        client: round.client,
        signal: reading.signal,
      })
      if (opened === undefined) return single(() => undefined)
      const { stream, versions } = opened
      const { isHeld, identity } = stream.head
      const files = filesOf(stream.head, versions)
      if (isHeld) {
        await stream.close()
        if (kept?.facts.identity === identity) kept.facts.files = files
        return kept?.facts.identity === identity
          ? { kind: 'kept', answer: kept, unserved: 0 }
          : { kind: 'held', identity }
      }
      return await this.#gather(key, stream, files, abort)
    } catch (error) {
      return single(() => {
        throw error
      })
    }
  }

  /** Whether an answer can be reused without planning it. */
  async #isStillRight({ files }: AnswerFacts): Promise<boolean> {
    if (files === undefined || files.manifest !== this.#validators.known.get('lake_manifest')) return false
    return this.#seenFiles.areUnchanged(files.seen)
  }

  async #gather(
    key: string,
    stream: WorkerStream<RecordHead>,
    files: AnswerFiles | undefined,
    abort: () => void,
  ): Promise<RoundResult> {
    this.#cache.figures.misses += 1
    const { identity, nextOffset, rows, files: keys, stamps, series } = stream.head
    let body = Buffer.alloc(0)
    try {
      for (;;) {
        const chunk = await stream.next()
        if (chunk === null) break
        // Copied, because the thread reuses the memory. Each chunk is several times as long as those before.
        body = Buffer.concat([body, chunk])
        if (identity !== null && body.length <= this.#cache.bodyBytesMax) continue
        this.#long.set(key, true)
        return handOver(stream, body, abort)
      }
    } catch (error) {
      await stream.close()
      throw error
    }
    await stream.close()
    const facts = { identity: identity ?? '', nextOffset, rows, keys, stamps, series, files }
    const answer = this.#cache.put(key, body, () => facts)
    return { kind: 'kept', answer, unserved: 1 }
  }
}

const NOTHING: ByteStream = {
  rows: 0,
  next: async () => null,
  close: async () => {},
}

function filesOf({ seenFiles }: RecordHead, versions: DataVersions): AnswerFiles | undefined {
  return seenFiles === null ? undefined : { seen: seenFiles, manifest: versions.get('lake_manifest') }
}

/** For the first request that takes it; the others get undefined and run on their own. */
function single(
  take: (signal: AbortSignal) => OpenedAnswer | undefined,
): Extract<RoundResult, { kind: 'single' }> {
  let isTaken = false
  return {
    kind: 'single',
    take(signal) {
      if (isTaken) return undefined
      isTaken = true
      return take(signal)
    },
  }
}

/** Streams an answer that is too long to be kept, starting with the bytes collected so far. */
function handOver(stream: WorkerStream<RecordHead>, gathered: Uint8Array, abort: () => void): RoundResult {
  const result = single((signal) => {
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    return { head: stream.head, stream: continued(gathered, stream) }
  })
  // The waiting requests take the result before this runs.
  setImmediate(() => void result.take(new AbortController().signal)?.stream.close())
  return result
}

function continued(gathered: Uint8Array, rest: WorkerStream<RecordHead>): ByteStream {
  let first: Uint8Array | undefined = gathered
  return {
    get rows() {
      return rest.rows
    },
    attach: (reader) => rest.attach(reader),
    next: async () => {
      const chunk = first
      first = undefined
      return chunk ?? rest.next()
    },
    close: () => rest.close(),
  }
}
