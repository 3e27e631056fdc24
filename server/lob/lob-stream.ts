// The body of one order-book answer, whoever makes it: one thread, or several that share its sections out. Sections come
// from any thread and leave in order; the answer is whole when every one has left and the rows add up.

import { LOB_SECTION_CHUNKS_MAX } from '../../shared/limits.ts'
import type { LobHead } from '../../shared/lob-task.ts'
import type { SectionFigures } from '../../shared/stream-task.ts'
import type { ByteStream, StreamReader } from '../http/byte-stream.ts'
import type { WorkerStream } from '../workers/worker-stream.ts'

/** Chunks under way per thread of a shared answer: about an hour's rows of 50 levels, so that nobody waits. */
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
  /** The worker whose chunk was given last. */
  #lender: LobWorkerStream | undefined
  readonly #onWhole: (stream: LobStream) => void
  bytesGiven = 0

  /**
   * `leader` has sent its head and its first chunk. `assist` starts assistants, none where the answer is not shared out; it
   * is called by `askForHelp`. `onWhole` is called when all of the answer has been given.
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

  /** Of the body, where its receipt is known and it leaves as it is. */
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

  /** Shares the answer out, once: as soon as its first chunk is on its way, which assistants would hold up. */
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
   * Lets the assistants' threads go as soon as they are done with the section in hand. There is room for all of it then:
   * a client that does not read cannot keep them.
   */
  dismissAssistants(): void {
    for (const assistant of this.#assistants) {
      assistant.dismiss()
      assistant.widen(LOB_SECTION_WINDOW + LOB_SECTION_CHUNKS_MAX)
    }
  }

  /** Of the sections in their order, where they were asked for; none before the answer is complete. */
  get sections(): readonly SectionFigures[] {
    return this.#workers.flatMap(({ sections }) => sections).toSorted((a, b) => a.section - b.section)
  }

  attach(reader: StreamReader): void {
    this.#leader.attach(reader)
  }

  async next(): Promise<Uint8Array | null> {
    // From the second chunk on the leader's next one may not be the answer's.
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

  /** Nobody has more to give. */
  #assertWhole(): void {
    const { rows, sections } = this.head
    const isEverySectionThere = this.#assistants.length === 0 || this.#section === sections?.count
    if (isEverySectionThere && this.rows === rows) return
    throw new Error(`${this.rows} rows were made instead of ${rows}; ${this.#section} sections were given`)
  }
}
