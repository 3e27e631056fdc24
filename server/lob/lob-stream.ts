// The body of one order-book answer, made by one thread, or by several that share its sections. Sections come from any
// thread and are sent in order. The answer is complete when every section has been sent and the rows add up.

import { LOB_SECTION_CHUNKS_MAX } from '../../shared/limits.ts'
import type { LobHead } from '../../shared/lob-task.ts'
import type { SectionFigures } from '../../shared/stream-task.ts'
import type { ByteStream, StreamReader } from '../http/byte-stream.ts'
import type { WorkerStream } from '../workers/worker-stream.ts'

/** Chunks in flight per thread of a shared answer: about an hour's rows of 50 levels, so that no thread waits. */
export const LOB_SECTION_WINDOW = 24

export type LobWorkerStream = WorkerStream<LobHead>

export class LobStream implements ByteStream {
  readonly head: LobHead
  readonly #leader: LobWorkerStream
  readonly #assist: () => readonly LobWorkerStream[]
  #isHelpAsked = false
  #assistants: readonly LobWorkerStream[] = []
  #workers: readonly LobWorkerStream[]
  #section = 0
  /** The worker of the last chunk that was given. */
  #lender: LobWorkerStream | undefined
  readonly #onWhole: (stream: LobStream) => void
  bytesGiven = 0

  /**
   * `leader` has sent its head and its first chunk. `askForHelp` calls `assist`, which starts assistants, or none if the answer
   * is not shared. `onWhole` is called when the whole answer has been given.
   */
  constructor(
    leader: LobWorkerStream,
    assist: () => readonly LobWorkerStream[],
    onWhole: (stream: LobStream) => void = () => {},
  ) {
    this.#onWhole = onWhole
    this.head = leader.head
    this.#leader = leader
    this.#assist = assist
    this.#workers = [leader]
  }

  /** Bytes of the body, if its receipt is known and it is sent without coding. */
  sizeBytes: number | undefined

  /** Rows of the answer; null until it is complete. */
  get rows(): number | null {
    let rows = 0
    for (const worker of this.#workers) {
      if (worker.rows === null) return null
      rows += worker.rows
    }
    return rows
  }

  /** Shares the answer among threads, once; not before the first chunk is being sent, which assistants would delay. */
  askForHelp(): void {
    if (this.#isHelpAsked) return
    this.#isHelpAsked = true
    this.#assistants = this.#assist()
    if (this.#assistants.length === 0) return
    this.#workers = [this.#leader, ...this.#assistants]
    this.#lender = this.#leader
    for (const worker of this.#workers) worker.widen(LOB_SECTION_WINDOW)
  }

  /**
   * Frees the assistants' threads as soon as they have finished their current section. The window is then wide enough for the
   * whole section, so that a client that does not read cannot keep them.
   */
  dismissAssistants(): void {
    for (const assistant of this.#assistants) {
      assistant.dismiss()
      assistant.widen(LOB_SECTION_WINDOW + LOB_SECTION_CHUNKS_MAX)
    }
  }

  /** Figures of the sections in order, if they were requested; empty before the answer is complete. */
  get sections(): readonly SectionFigures[] {
    return this.#workers.flatMap(({ sections }) => sections).toSorted((a, b) => a.section - b.section)
  }

  attach(reader: StreamReader): void {
    this.#leader.attach(reader)
  }

  async next(): Promise<Uint8Array | null> {
    // From the second chunk on, the leader's next chunk need not be the answer's next one.
    if (this.bytesGiven > 0) this.askForHelp()
    const chunk = this.#assistants.length > 0 ? await this.#nextOfAll() : await this.#leader.next()
    if (chunk === null) {
      this.#assertWhole()
      this.#onWhole(this)
    } else this.bytesGiven += chunk.length
    return chunk
  }

  async close(): Promise<void> {
    this.#isHelpAsked = true
    await Promise.all(this.#workers.map(async (worker) => worker.close()))
  }

  async #nextOfAll(): Promise<Uint8Array | null> {
    this.#lender?.returnChunk()
    for (;;) {
      const owner = this.#workers.find((worker) => worker.nextSection === this.#section)
      if (owner !== undefined) {
        this.#lender = owner
        return owner.next()
      }
      if (this.#workers.some((worker) => worker.hasEndedSection(this.#section))) this.#section++
      else if (this.#workers.every((worker) => worker.isComplete)) return null
      else await Promise.race(this.#workers.map(async (worker) => worker.change()))
    }
  }

  /** Throws unless all sections and rows have been given. */
  #assertWhole(): void {
    const { rows, sections } = this.head
    const isEverySectionThere = this.#assistants.length === 0 || this.#section === sections?.count
    if (isEverySectionThere && this.rows === rows) return
    throw new Error(`${this.rows} rows were made instead of ${rows}; ${this.#section} sections were given`)
  }
}
