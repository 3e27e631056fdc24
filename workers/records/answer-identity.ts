// The name of an answer. The plan determines it before a row is read; equal names mean equal bytes. The name is a digest of
// the query, the versions of the store's datasets (which the server looked up before it sent the request here), and the lake
// files that the plan reads. A change of one of these files changes the name; other files do not. The name of an answer from
// lake files alone does not change when rows are written to the store.

import { contentIdentity } from '../../shared/content-identity.ts'
import type { SeenFile } from '../../shared/file-identity.ts'
import type { RecordQuery, RecordValidation } from '../../shared/record-task.ts'
import type { LakePart } from './lake-partitions.ts'

/** Thrown when the client or the server already holds the planned answer, so that nothing has to be read. */
export class AnswerHeld extends Error {}

export interface AnswerSources {
  readonly parts: readonly LakePart[]
  /** Other facts that the answer depends on, as text. */
  readonly facts: readonly string[]
  /** Set if the plan does not read the store: the files and directories that it looked at, or null while they are changing. */
  readonly seenFiles?: readonly SeenFile[] | null | undefined
  /** See `RecordHead.series`. */
  readonly series?: readonly string[] | null
}

export class AnswerIdentity {
  /** When the request began; everything it found was true then or later. */
  readonly startedMs = Date.now()
  readonly #query: RecordQuery
  readonly #validation: RecordValidation | null
  /** The name of the last plan; null if the same request may get other answers. */
  name: string | null = null
  /** What the last plan depends on. */
  sources: AnswerSources = { parts: [], facts: [] }

  constructor(query: RecordQuery, validation: RecordValidation | null) {
    this.#query = query
    this.#validation = validation
  }

  /** Whether the client claims to hold any answer. */
  get mayBeHeld(): boolean {
    return (this.#validation?.held.length ?? 0) > 0
  }

  /**
   * Sets the name. A request that is planned again sets it again.
   * @throws {AnswerHeld}
   */
  settle(sources: AnswerSources): void {
    this.sources = sources
    if (this.#validation === null) return
    const { parts, facts, seenFiles } = sources
    const { held, kept } = this.#validation
    const seed = seenFiles === undefined ? this.#validation.seed : this.#validation.lakeSeed
    // The time of the request is left out: whatever depends on it is among the facts.
    const query = JSON.stringify({ ...this.#query, nowMs: undefined })
    const files = parts.map(
      ({ name, identity, sha256 = `${name} ${identity}`, fromMs, toMs, isRegistered }) =>
        `${sha256} ${fromMs} ${toMs} ${isRegistered}`,
    )
    const name = contentIdentity([seed, query, `${facts.length}`, ...facts, ...files])
    this.name = name
    if (held.includes(name) || held.includes('*') || kept.includes(name))
      throw new AnswerHeld('the answer is held already')
  }
}
