// A worker whose messages a test sends manually, behind a real WorkerStream.

import { EventEmitter, once } from 'node:events'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { WorkerStream } from '../../server/workers/worker-stream.ts'
import type { LobHead } from '../../shared/lob-task.ts'
import { chunkMemory, type ServerMessage, type WorkerMessage } from '../../shared/stream-task.ts'

export interface HandWorker {
  readonly stream: WorkerStream<LobHead>
  readonly heard: ServerMessage[]
  /** Its chunks, by their buffer numbers. */
  readonly texts: readonly string[]
  readonly counts: { over: number; terminated: number }
  readonly port: MessagePort
  say(message: WorkerMessage<LobHead>): void
  /** Chunks and marks of a section; `isOver` false leaves it open. */
  saySection(section: number, texts: readonly string[], isOver?: boolean): void
  sayChunk(text: string): void
  sayEnd(rows: number): void
  endTask(error?: Error): void
}

export function handWorker(signal: AbortSignal, { hasHead = true } = {}): HandWorker {
  const { port1, port2 } = new MessageChannel()
  const counts = { over: 0, terminated: 0 }
  const task = new EventEmitter()
  const taskEnd = once(task, 'over')
  const heard: ServerMessage[] = []
  const said: string[] = []
  port2.on('message', (message: ServerMessage) => heard.push(message))
  const endTask = (error?: Error): void => {
    if (error === undefined) task.emit('over')
    else task.emit('error', error)
    port2.close()
  }
  const stream = new WorkerStream<LobHead>(port1, taskEnd, {
    signal,
    release: () => (counts.over += 1),
    terminate: () => {
      counts.terminated += 1
      endTask(new Error('terminated'))
    },
    hasHead,
  })
  const say = (message: WorkerMessage<LobHead>): void => port2.postMessage(message)
  let number = 0
  const sayChunk = (text: string): void => {
    const bytes = new TextEncoder().encode(text)
    const buffer = chunkMemory(bytes.length)
    new Uint8Array(buffer).set(bytes)
    say({ kind: 'chunk', number: number++, buffer, length: bytes.length })
    said.push(text)
  }
  return {
    stream,
    heard,
    texts: said,
    counts,
    port: port2,
    say,
    sayChunk,
    saySection(section, texts, isOver = true) {
      say({ kind: 'section', section, isOver: false })
      for (const text of texts) sayChunk(text)
      if (isOver) say({ kind: 'section', section, isOver: true })
    },
    sayEnd: (rows) => say({ kind: 'end', rows }),
    endTask,
  }
}
