// Caches answers as bytes, by request. It does not know how long an answer is valid: its callers check that. Memory is
// bounded. Evicted answers that are still being sent count too, until their last client has them.

import { ReadyBody } from '../http/ready-body.ts'

const ANSWERS_MAX = 10_000
/** Memory of an answer besides its body and its key. */
const OVERHEAD_BYTES = 1_024
/** A single answer must not evict most of the others. */
const ANSWER_SHARE_MAX = 1 / 8
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

/** Counts since the start. */
export interface AnswerCacheFigures {
  /** Requests answered with bytes that were made for an earlier one. */
  hits: number
  misses: number
  /** Answers evicted to make room. */
  evicted: number
}

export interface KeptAnswer<Facts> {
  readonly facts: Facts
  readonly body: ReadyBody
  /** Holds the body while it is sent, until the returned function is called. */
  hold(): () => void
}

export class AnswerCache {
  readonly #bytesMax: number
  readonly #kept = new Map<string, Answer<unknown>>()
  #usedBytes = 0
  readonly figures: AnswerCacheFigures = { hits: 0, misses: 0, evicted: 0 }

  /** @param bytesMax 0: nothing is kept */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  get count(): number {
    return this.#kept.size
  }

  /** The longest body that is kept. */
  get bodyBytesMax(): number {
    return Math.min(ANSWER_BYTES_MAX, Math.floor(this.#bytesMax * ANSWER_SHARE_MAX))
  }

  /** The answer of a key. Each kind of answer has its own keys, so that its facts are of one type. */
  find<Facts>(key: string): KeptAnswer<Facts> | undefined {
    const found = this.#kept.get(key)
    if (found === undefined) return undefined
    this.#kept.delete(key)
    this.#kept.set(key, found)
    return found as Answer<Facts>
  }

  /**
   * Keeps an answer, replacing an older one of its key, if there is room. To make room, it evicts the least recently used
   * answers that are not being sent. Without room the answer still counts while it is held.
   */
  put<Facts>(key: string, bytes: Uint8Array, factsOf: (body: ReadyBody) => Facts): KeptAnswer<Facts> {
    const sizeBytes = bytes.length + OVERHEAD_BYTES + 2 * key.length
    const answer = new Answer(factsOf, bytes, sizeBytes, this.#ledger)
    const isShort = bytes.length <= this.bodyBytesMax
    if (isShort) this.#remove(key)
    if (isShort && this.#makeRoom(sizeBytes)) {
      if (this.#kept.size >= ANSWERS_MAX) this.#evictOldest()
      this.#kept.set(key, answer)
      answer.keep()
    }
    return answer
  }

  readonly #ledger: Ledger = {
    add: (bytes) => (this.#usedBytes += bytes),
    makeRoom: (bytes) => this.#makeRoom(bytes),
  }

  #makeRoom(bytes: number): boolean {
    for (const [key, answer] of this.#kept) {
      if (this.#usedBytes + bytes <= this.#bytesMax) return true
      if (answer.isInUse) continue
      this.figures.evicted += 1
      this.#remove(key)
    }
    return this.#usedBytes + bytes <= this.#bytesMax
  }

  #evictOldest(): void {
    const [oldest] = this.#kept.keys()
    if (oldest === undefined) return
    this.figures.evicted += 1
    this.#remove(oldest)
  }

  #remove(key: string): void {
    this.#kept.get(key)?.drop()
    this.#kept.delete(key)
  }
}

interface Ledger {
  add(bytes: number): void
  makeRoom(bytes: number): boolean
}

/** Its bytes count while it is held. That it is kept is a hold too. */
class Answer<Facts> implements KeptAnswer<Facts> {
  readonly facts: Facts
  readonly body: ReadyBody
  readonly #ledger: Ledger
  #sizeBytes: number
  #holds = 0
  #release: (() => void) | null = null

  constructor(factsOf: (body: ReadyBody) => Facts, bytes: Uint8Array, sizeBytes: number, ledger: Ledger) {
    this.#sizeBytes = sizeBytes
    this.#ledger = ledger
    this.body = new ReadyBody(bytes, (codedBytes) => this.#grow(codedBytes))
    this.facts = factsOf(this.body)
  }

  /** Whether it must not be evicted. */
  get isInUse(): boolean {
    return this.#holds > 1
  }

  keep(): void {
    this.#release = this.hold()
  }

  drop(): void {
    this.#release?.()
    this.#release = null
  }

  hold(): () => void {
    if (this.#holds++ === 0) this.#ledger.add(this.#sizeBytes)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      if (--this.#holds === 0) this.#ledger.add(-this.#sizeBytes)
    }
  }

  #grow(bytes: number): boolean {
    const release = this.hold()
    const hasRoom = this.#release !== null && this.#ledger.makeRoom(bytes)
    if (hasRoom) {
      this.#sizeBytes += bytes
      this.#ledger.add(bytes)
    }
    release()
    return hasRoom
  }
}
