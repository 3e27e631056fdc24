// An order-book worker with the real protocol (head, chunks on credits, cancel, end, error) and synthetic bytes. The series of the
// query controls it: words separated by dots, for example `bytes.1000000` or `bytes.1000000.die-after.300000`. The bytes are a
// fixed pattern, so that a test can compare a whole body.

import { existsSync } from 'node:fs'
import { type MessagePort, threadId } from 'node:worker_threads'
import { CHUNK_BYTES, CHUNK_WINDOW, FIRST_CHUNK_BYTES } from '../../shared/limits.ts'
import { type LobHead, type LobSections, type LobTask, takeSection } from '../../shared/lob-task.ts'
import {
  chunkMemory,
  type ServerMessage,
  type WorkerMessage,
  type WarmTask,
} from '../../shared/stream-task.ts'
import { fillPattern } from './byte-pattern.ts'

// A test can make this file fail to load in new threads for a while.
const brokenMarker = process.env['BOOKCAST_TEST_BROKEN_MARKER']
if (brokenMarker !== undefined && existsSync(brokenMarker)) throw new Error('the fake worker is not to load')

/** The worker's side of the flow control. */
class ChunkSender {
  readonly #port: MessagePort
  #window = CHUNK_WINDOW
  #credits = CHUNK_WINDOW
  #wake: (() => void) | undefined
  isCancelled = false
  isDismissed = false

  constructor(port: MessagePort) {
    this.#port = port
    port.on('message', (message: ServerMessage) => {
      if (message.kind === 'cancel') this.isCancelled = true
      else if (message.kind === 'dismiss') this.isDismissed = true
      else if (message.kind === 'credit') this.#credits += 1
      else if (message.kind === 'window') {
        this.#credits += message.chunks - this.#window
        this.#window = message.chunks
      }
      this.#wake?.()
    })
  }

  post(message: WorkerMessage<LobHead>): void {
    this.#port.postMessage(message)
  }

  async changed(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }

  /** False if the request was cancelled. */
  async send(offset: number, length: number): Promise<boolean> {
    const bytes = new Uint8Array(length)
    fillPattern(bytes, offset)
    return this.sendBytes(bytes)
  }

  /** False if the request was cancelled. */
  async sendBytes(bytes: Uint8Array): Promise<boolean> {
    while (this.#credits === 0 && !this.isCancelled) await this.changed()
    if (this.isCancelled) return false
    this.#credits -= 1
    const buffer = chunkMemory(bytes.length)
    new Uint8Array(buffer).set(bytes)
    this.post({ kind: 'chunk', number: -1, buffer, length: bytes.length })
    return true
  }
}

/** The number after a word: `bytes.1000` → 1000; `fallback` if the word is absent. */
function figure(words: readonly string[], word: string, fallback: number): number {
  const index = words.indexOf(word)
  return index === -1 ? fallback : Number(words[index + 1])
}

async function die(how: string | undefined): Promise<never> {
  if (how === 'throw') throw new Error('the fake worker was told to throw')
  if (how === 'heap') {
    const hoard: unknown[] = []
    // In small steps: one allocation beyond the limit's last reserve would abort the whole process.
    for (;;) hoard.push(Array<number>(10_000).fill(1.5))
  }
  if (how === 'callback')
    setImmediate(() => {
      throw new Error('the fake worker was told to throw in a callback')
    })
  // In a worker this ends the thread, not the process.
  else process.exit(7)
  // The task must not end before its thread: otherwise the thread would count as free and get the next request.
  return new Promise(() => {})
}

async function sendBody(sender: ChunkSender, words: readonly string[]): Promise<void> {
  const totalBytes = figure(words, 'bytes', 100)
  const dieAfterBytes = figure(words, 'die-after', Infinity)
  const quitAfterBytes = figure(words, 'quit-after', Infinity)
  const failAfterBytes = figure(words, 'fail-after', Infinity)
  const holdAfterBytes = figure(words, 'hold-after', Infinity)
  const chunkBytes = figure(words, 'chunk', CHUNK_BYTES)
  for (let offset = 0; offset < totalBytes;) {
    if (offset >= dieAfterBytes) {
      // Let the posted messages leave the thread first: the test is about a death in mid-response.
      await new Promise((resolve) => setImmediate(resolve))
      await die(words[words.indexOf('die-after') + 2])
    }
    if (offset >= quitAfterBytes) return
    if (offset >= failAfterBytes)
      return sender.post({
        kind: 'error',
        code: 'lake_file_invalid',
        detail: 'a page is damaged',
        errors: [],
      })
    if (offset >= holdAfterBytes) while (!sender.isCancelled) await sender.changed()
    const length = Math.min(
      offset === 0 ? Math.min(FIRST_CHUNK_BYTES, chunkBytes) : chunkBytes,
      totalBytes - offset,
    )
    if (!(await sender.send(offset, length))) return
    offset += length
  }
  sender.post({ kind: 'end', rows: figure(words, 'rows', totalBytes) })
}

/**
 * `sections.<count>`: sections of one row each, which name their thread. With `until-taken.<count>`, every thread waits until that
 * many are taken. With `assistant-fails`, `leader-dies` and so on, a thread fails or dies after taking one.
 */
async function sendSections(
  sender: ChunkSender,
  words: readonly string[],
  task: LobTask,
  shared: LobSections,
) {
  const isLeader = task.assistance === null
  const role = isLeader ? 'leader' : 'assistant'
  const untilTaken = figure(words, 'until-taken', 0)
  const next = new Int32Array(shared.next)
  let rows = 0
  for (;;) {
    const isOver = sender.isCancelled || (sender.isDismissed && !isLeader)
    const section = isOver ? shared.count : takeSection(shared)
    if (section >= shared.count) break
    sender.post({ kind: 'section', section, isOver: false })
    if (!(await sender.sendBytes(new TextEncoder().encode(`${section} ${role} ${threadId}\n`)))) return
    while (Atomics.load(next, 0) < untilTaken && !sender.isCancelled) {
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    if (words.includes(`${role}-dies`)) await die(undefined)
    if (words.includes(`${role}-fails`)) {
      const detail = 'a file was changed'
      return sender.post({ kind: 'error', code: 'lake_file_changed', detail, errors: [] })
    }
    sender.post({ kind: 'section', section, isOver: true })
    rows++
    await new Promise((resolve) => setImmediate(resolve))
  }
  sender.post({ kind: 'end', rows })
}

export default async function run(task: LobTask | WarmTask): Promise<void> {
  if ('warm' in task) return
  const { query, headOnly, port, validation } = task
  const words = (query.series ?? 'bytes.100').split('.')
  const sender = new ChunkSender(port)
  if (words.includes('die')) await die(words[words.indexOf('die') + 1])
  if (words.includes('silent')) return
  if (words.includes('deaf')) await new Promise(() => setInterval(() => {}, 1000))
  if (words.includes('wait')) {
    while (!sender.isCancelled) await sender.changed()
    return
  }
  if (words.includes('refuse')) {
    return sender.post({
      kind: 'error',
      code: 'too_many_rows',
      detail: '600000 rows are more than 500000; ask for fewer dates.',
      errors: [{ parameter: 'date', detail: 'fewer dates' }],
    })
  }
  if (words.includes('secret'))
    return sender.post({ kind: 'error', code: 'internal_error', detail: 'secret path /etc', errors: [] })
  const missingDates = words.includes('missing') ? query.dates.slice(1) : []
  const identity = `${query.series}-${validation.seed}`
  const isHeld = validation.held.includes(identity)
  const sectionCount = figure(words, 'sections', 0)
  const sections: LobSections | null =
    sectionCount === 0 ? null : { count: sectionCount, next: new SharedArrayBuffer(4) }
  if (task.assistance !== null) {
    await sendSections(sender, words, task, task.assistance.sections)
    return port.close()
  }
  sender.post({
    kind: 'head',
    rows: figure(words, 'rows', sectionCount || figure(words, 'bytes', 100)),
    lastRow: null,
    missingDates,
    partialDates: [],
    files: [],
    stamps: [],
    identity,
    writtenAtMs: figure(words, 'written', Date.now()),
    isHeld,
    sections,
  })
  if (headOnly || isHeld) sender.post({ kind: 'end', rows: figure(words, 'rows', 100) })
  else if (sections === null) await sendBody(sender, words)
  else await sendSections(sender, words, task, sections)
  port.close()
}
