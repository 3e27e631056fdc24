// The name of an answer, settled by its plan before a row is read: equal names mean equal bytes. It is made of the query,
// the versions of the store's datasets, which the server looked up before the request came here, and the lake files. The
// files are those that the plan reads, so a change of any of them, and of no other, gives the answer another name.

import { contentIdentity } from '../../shared/content-identity.ts'
import type { RecordQuery, RecordValidation } from '../../shared/record-task.ts'
import type { LakePart } from './lake-partitions.ts'

/** Thrown when the client or the server holds the answer that was planned: there is nothing to read. */
export class AnswerHeld extends Error {}

export class AnswerIdentity {
  readonly #query: RecordQuery
  readonly #validation: RecordValidation | null
  #name: string | null = null

  constructor(query: RecordQuery, validation: RecordValidation | null) {
    this.#query = query
    this.#validation = validation
  }

  /** Whether the client says that it holds an answer, of whatever. */
  get mayBeHeld(): boolean {
    return (this.#validation?.held.length ?? 0) > 0
  }

  /** The last name that was settled; null when there is none. */
  get name(): string | null {
    return this.#name
  }

  /**
   * Settles the name; a request that is planned anew settles it again.
   * @param facts what was found besides the files, as text
   * @throws {AnswerHeld}
   */
  settle(parts: readonly LakePart[], facts: readonly string[]): void {
    if (this.#validation === null) return
    const { seed, held, kept } = this.#validation
    // The moment of a request decides nothing by itself: what it decides is among the facts.
    const query = JSON.stringify({ ...this.#query, nowMs: undefined })
    const files = parts.map(
      ({ name, identity, fromMs, toMs, isRegistered }) =>
        `${name} ${identity} ${fromMs} ${toMs} ${isRegistered}`,
    )
    const name = contentIdentity([seed, query, `${facts.length}`, ...facts, ...files])
    this.#name = name
    if (held.includes(name) || held.includes('*') || kept.includes(name))
      throw new AnswerHeld('the answer is held already')
  }
}
