// A worker whose tasks hang as its tasks say: `pipe` waits in the kernel for the writer of a named pipe, where nothing
// can end its thread; `deaf` never ends and hears nothing; others answer nothing at once.

import { openSync } from 'node:fs'
import type { MessagePort } from 'node:worker_threads'

export interface StuckTask {
  readonly how: 'pipe' | 'deaf' | 'answer'
  readonly path: string
  /** Its first integer becomes 1 when the task begins. */
  readonly begun: SharedArrayBuffer
  readonly port: MessagePort
}

export default async function run(task: StuckTask | { readonly warm: true }): Promise<void> {
  if ('warm' in task) return
  const { how, path, begun, port } = task
  Atomics.store(new Int32Array(begun), 0, 1)
  if (how === 'pipe') openSync(path, 'r')
  else if (how === 'deaf') await new Promise((resolve) => setInterval(resolve, 2 ** 30))
  port.postMessage({ kind: 'head', rows: 0 })
  port.postMessage({ kind: 'end', rows: 0 })
  port.close()
}
