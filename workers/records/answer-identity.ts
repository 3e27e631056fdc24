// The name of an answer, settled by its plan before a row is read: equal names mean equal bytes. It is made of the query,
// the versions of the store's datasets, which the server looked up before the request came here, and the lake files. The
// files are those that the plan reads, so a change of any of them, and of no other, gives the answer another name. What is
// made of lake files alone goes by another name than before when they change, and not when rows are written to the store.

import { contentIdentity } from '../../shared/content-identity.ts'
import type { SeenFile } from '../../shared/file-identity.ts'
import type { RecordQuery, RecordValidation } from '../../shared/record-task.ts'
import type { LakePart } from './lake-partitions.ts'

/** Thrown when the client or the server holds the answer that was planned: there is nothing to read. */
export class AnswerHeld extends Error {}

export interface AnswerSources {
  readonly parts: readonly LakePart[]
  /** What was found besides the files, as text. */
  readonly facts: readonly string[]
  /** Where nothing is asked of the store: what was looked at, or null while that is changing. */
  readonly lakeOnly?: { readonly seenFiles: readonly SeenFile[] | null } | undefined
}

export class AnswerIdentity {
  /** When the request was taken up: what it found was so then or later. */
  readonly startedMs = Date.now()
  readonly #query: RecordQuery
  readonly #validation: RecordValidation | null
  /** The name that was settled last; null when there is none, as for an answer of which there may be others. */
  name: string | null = null
  /** What an answer of lake files alone was made of, under that name. */
  seenFiles: readonly SeenFile[] | null = null
  /** The lake files that the plan settled last reads. */
  parts: readonly LakePart[] = []

  constructor(query: RecordQuery, validation: RecordValidation | null) {
    this.#query = query
    this.#validation = validation
  }

  /** Whether the client says that it holds an answer, of whatever. */
  get mayBeHeld(): boolean {
    return (this.#validation?.held.length ?? 0) > 0
  }

  /**
   * Settles the name; a request that is planned anew settles it again.
   * @throws {AnswerHeld}
   */
  settle({ parts, facts, lakeOnly }: AnswerSources): void {
    this.parts = parts
    if (this.#validation === null) return
    const { held, kept } = this.#validation
    const seed = lakeOnly === undefined ? this.#validation.seed : this.#validation.lakeSeed
    this.seenFiles = lakeOnly?.seenFiles ?? null
    // The moment of a request decides nothing by itself: what it decides is among the facts.
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
