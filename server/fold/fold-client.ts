// Folds in a thread, so that the calling thread keeps answering.

import { Worker } from 'node:worker_threads'
import type { FoldOutcome, FoldWriting, Folding } from './fold-order.ts'

/** Messages from the thread. Node carries its error, with name, causes and the system's facts, but without its class. */
export type FoldThreadMessage =
  | { readonly kind: 'segment'; readonly date: string; readonly count: number }
  | { readonly kind: 'write'; readonly writing: FoldWriting }
  | { readonly kind: 'wait'; readonly owner: string }
  | { readonly kind: 'done'; readonly outcome: FoldOutcome }

/** Folds in a thread of its own. An abort lets the thread remove its temporary files before it ends. */
export const foldInThread: Folding = async (order, listeners, signal) => {
  signal.throwIfAborted()
  const worker = new Worker(new URL('./fold-thread.js', import.meta.url), { workerData: order })
  const abort = (): void => worker.postMessage('abort')
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await new Promise<FoldOutcome>((resolve, reject) => {
      worker.on('message', (message: FoldThreadMessage) => {
        if (message.kind === 'segment') listeners.onSegment?.(message.date, message.count)
        else if (message.kind === 'write') listeners.onWrite?.(message.writing)
        else if (message.kind === 'wait') listeners.onWait?.(message.owner)
        else resolve(message.outcome)
      })
      worker.once('error', reject)
      worker.once('exit', (code) =>
        reject(new Error(`The folding thread ended with code ${code} and no result.`)),
      )
    })
  } catch (error) {
    // A partial publication must be reported, even after an abort.
    if (!(error instanceof Error && error.name === 'PublishedInPartError')) signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}
