// Where order-book answers come from: the disk, if they lie there and the lake is still in the state they were made of,
// else threads. Which state that is a thread says each time, from the files' names, sizes and times: it is told what is
// kept, as it is told what a client holds, and begins nothing where that is the answer.

import { ApiError } from '../../shared/errors.ts'
import type { LobHead, LobQuery } from '../../shared/lob-task.ts'
import { MS_PER_DAY, utcDateStartMs } from '../../shared/utc-date.ts'
import type { ByteStream } from '../http/byte-stream.ts'
import { BlockCache, type KeptCoding } from './block-cache.ts'
import type { KeptBody } from './kept-body.ts'
import { KeepingStream, KeptStream } from './kept-streams.ts'
import type { LobOpenOptions, LobPool } from './lob-pool.ts'

const CODINGS: readonly KeptCoding[] = ['identity', 'zstd']

/** An answer: what is known of it, and its body; none where the client holds it. */
export interface LobAnswer {
  readonly head: LobHead
  readonly stream: ByteStream | null
}

export class LobAnswers {
  readonly #pool: LobPool
  readonly #cache: BlockCache | undefined

  constructor(pool: LobPool, cache: BlockCache | undefined) {
    this.#pool = pool
    this.#cache = cache
  }

  /** Rejects as the pool does. The stream must be closed. */
  async open(query: LobQuery, options: LobOpenOptions): Promise<LobAnswer> {
    const cache = this.#cache
    if (cache === undefined || options.headOnly || !isKeepable(query)) return this.#make(query, options)
    const key = BlockCache.keyOf(options.validation.seed, query, options.catalogue)
    const bodies = await this.#find(cache, key)
    let isServed = false
    try {
      const { validation } = options
      const kept = [...bodies.values()].map(({ header }) => header.identity)
      const stream = await this.#pool.open(query, {
        ...options,
        validation: { ...validation, held: [...validation.held, ...kept] },
      })
      const { head } = stream
      const keeperOf = (coding: KeptCoding) =>
        cache.keep(key, { identity: head.identity, coding, rows: head.rows })
      if (!head.isHeld) {
        // What costs little is soon made again.
        if (head.sections === null) return { head, stream }
        cache.figures.misses++
        return { head, stream: new KeepingStream(stream, keeperOf) }
      }
      await stream.close()
      if (validation.held.includes(head.identity) || validation.held.includes('*'))
        return { head, stream: null }
      isServed = true
      for (const [coding, body] of bodies) {
        if (body.header.identity === head.identity) continue
        body.close()
        bodies.delete(coding)
      }
      const remake = async (): Promise<ByteStream> => this.#remake(query, options, head.identity)
      return { head, stream: new KeptStream({ rows: head.rows, bodies, remake, keeperOf }) }
    } finally {
      if (!isServed) for (const body of bodies.values()) body.close()
    }
  }

  async #make(query: LobQuery, options: LobOpenOptions): Promise<LobAnswer> {
    const stream = await this.#pool.open(query, options)
    const { head } = stream
    if (!head.isHeld) return { head, stream }
    await stream.close()
    return { head, stream: null }
  }

  async #find(cache: BlockCache, key: string): Promise<Map<KeptCoding, KeptBody>> {
    const bodies = new Map<KeptCoding, KeptBody>()
    for (const coding of CODINGS) {
      const body = await cache.find(key, coding)
      if (body !== undefined) bodies.set(coding, body)
    }
    return bodies
  }

  /** The answer of this identity as threads make it. */
  async #remake(query: LobQuery, options: LobOpenOptions, identity: string): Promise<ByteStream> {
    const stream = await this.#pool.open(query, {
      ...options,
      validation: { ...options.validation, held: [] },
    })
    if (stream.head.identity === identity) return stream
    await stream.close()
    throw new ApiError('lake_file_changed', 'The order-book files of the answer were replaced meanwhile.')
  }
}

/** Rows in text form of dates that are over: what is still recorded changes every few seconds. */
function isKeepable({ format, dates }: LobQuery): boolean {
  const lastStartMs = utcDateStartMs(dates.at(-1) ?? '')
  const isOver = lastStartMs !== undefined && lastStartMs + MS_PER_DAY <= Date.now()
  return isOver && (format === 'ndjson' || format === 'csv')
}
