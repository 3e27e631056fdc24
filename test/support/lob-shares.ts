// One order-book response made by a leader and assistants, all in this thread, at a pace set by the test: each may have one pending
// chunk, and the test decides whose chunk is taken next. So any thread may make any section.

import assert from 'node:assert/strict'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { fileWatchMemory } from '../../shared/file-watch.ts'
import type { LobHead, LobQuery, LobTask } from '../../shared/lob-task.ts'
import type { StreamFailure, WorkerMessage } from '../../shared/stream-task.ts'
import runLobTask, { type SharingBounds } from '../../workers/lob/task.ts'

/** Shares small responses too, in sections of about one chunk. */
export const TINY_SHARES: SharingBounds = { rowsMin: 2, sectionChunksMax: 1 }

export interface ShareOptions {
  readonly threads: number
  readonly bounds?: SharingBounds
  /** Selects which of `count` pending chunks is taken next. */
  readonly pick?: (count: number) => number
  readonly task?: Partial<LobTask>
  /** Called when the leader's head has arrived, before any assistant starts. */
  readonly onHead?: (head: LobHead) => void
  /** Differences of the assistants' task from the leader's. */
  readonly assistantTask?: Partial<LobTask>
}

export interface Share {
  readonly messages: WorkerMessage<LobHead>[]
  /** The sections it made, in order. */
  readonly sections: number[]
  /** Maximum of pending chunks. */
  chunksUnderWay: number
  rows: number | undefined
  failure: StreamFailure | undefined
}

export interface SharedAnswer {
  readonly head: LobHead | undefined
  /** The chunks by section. Chunks before any section, or without sections, are section -1. */
  readonly chunks: ReadonlyMap<number, readonly Buffer[]>
  /** The leader first. */
  readonly shares: readonly Share[]
}

class SharePlayer {
  readonly chunks = new Map<number, Buffer[]>()
  readonly shares: Share[] = []
  readonly taking: { readonly port: MessagePort; readonly number: number; taken: () => void }[] = []
  readonly #tasks: Promise<void>[] = []
  runningCount = 0
  messageCount = 0
  head: LobHead | undefined

  start(task: Omit<LobTask, 'port'>, bounds: SharingBounds | undefined): void {
    const { port1, port2 } = new MessageChannel()
    const share: Share = {
      messages: [],
      sections: [],
      chunksUnderWay: 0,
      rows: undefined,
      failure: undefined,
    }
    let section = -1
    let underWay = 0
    const buffers = new Map<number, SharedArrayBuffer>()
    this.shares.push(share)
    this.runningCount++
    port1.on('message', (message: WorkerMessage<LobHead>) => {
      share.messages.push(message)
      this.messageCount++
      if (message.kind === 'head') this.head ??= message
      else if (message.kind === 'section') {
        if (message.isOver) assert.equal(message.section, section)
        else {
          assert.ok(message.section > section, 'a thread makes its sections in ascending order')
          section = message.section
          share.sections.push(section)
          assert.ok(!this.chunks.has(section), `section ${section} is made twice`)
          this.chunks.set(section, [])
        }
      } else if (message.kind === 'chunk') {
        share.chunksUnderWay = Math.max(share.chunksUnderWay, ++underWay)
        if (section === -1 && !this.chunks.has(-1)) this.chunks.set(-1, [])
        if (message.buffer !== undefined) buffers.set(message.number, message.buffer)
        const shared = buffers.get(message.number)
        assert.ok(shared !== undefined)
        // A client gets what is read when the chunk is taken, not when it arrives.
        const list = this.chunks.get(section)!
        const at = list.push(Buffer.from(shared, 0, message.length)) - 1
        const taken = (): void => {
          underWay -= 1
          list[at] = Buffer.concat([list[at]!])
        }
        this.taking.push({ port: port1, number: message.number, taken })
      } else if (message.kind === 'end') share.rows = message.rows
      else share.failure = message
    })
    port1.once('close', () => (this.runningCount -= 1))
    port1.postMessage({ kind: 'window', chunks: 1 })
    this.#tasks.push(runLobTask({ ...task, port: port2 }, ...(bounds === undefined ? [] : [bounds])))
  }

  takeChunk(number: number): void {
    const [{ port, number: bufferNumber, taken }] = this.taking.splice(number, 1) as [
      (typeof this.taking)[number],
    ]
    taken()
    port.postMessage({ kind: 'credit', number: bufferNumber })
  }

  async finish(): Promise<void> {
    await Promise.all(this.#tasks)
  }
}

/** Acts as the server until every task has ended. */
export async function collectShares(
  lake: string,
  query: LobQuery,
  { threads, bounds = TINY_SHARES, pick = () => 0, task, onHead, assistantTask }: ShareOptions,
): Promise<SharedAnswer> {
  const player = new SharePlayer()
  const leaderTask = {
    lake,
    query,
    headOnly: false,
    catalogue: null,
    validation: { seed: 'test', held: [] },
    assistance: null,
    watch: fileWatchMemory(),
    silentFiles: [],
    ...task,
  }
  player.start(leaderTask, bounds)
  let areAssistantsStarted = false
  for (let heardCount = -1; player.runningCount > 0;) {
    const { head } = player
    if (head !== undefined && !areAssistantsStarted) {
      areAssistantsStarted = true
      onHead?.(head)
      const { sections, identity } = head
      if (sections !== null) {
        const assistance = { identity, sections }
        for (let number = 1; number < threads; number++)
          player.start({ ...leaderTask, assistance, ...assistantTask }, bounds)
      }
    } else if (heardCount === player.messageCount && player.taking.length > 0) {
      // Every thread waits for the server.
      player.takeChunk(pick(player.taking.length) % player.taking.length)
    }
    heardCount = player.messageCount
    // Let the tasks run.
    await new Promise((resolve) => setImmediate(resolve))
  }
  await player.finish()
  const { head, chunks, shares } = player
  return { head, chunks, shares }
}

/** The body that a server makes from the shares. Checks that they are complete. */
export function bodyOfShares({ head, chunks, shares }: SharedAnswer): Buffer {
  for (const { failure } of shares) assert.equal(failure, undefined, failure?.detail)
  const numbers = [...chunks.keys()].toSorted((left, right) => left - right)
  const count = head?.sections?.count
  if (count !== undefined)
    assert.deepEqual(
      numbers,
      Array.from({ length: count }, (_, index) => index),
    )
  assert.equal(
    shares.reduce((sum, { rows }) => sum + rows!, 0),
    head?.rows,
  )
  return Buffer.concat(numbers.flatMap((number) => chunks.get(number)!))
}
