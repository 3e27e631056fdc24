// A worker whose tasks hang in a given way. `pipe` waits in the kernel for the writer of a named pipe, where nothing can end its
// thread. `silent` does so while the server watches the file. `deaf` never ends and ignores messages. `later` waits before it
// answers. Other tasks return an empty response at once.

import { openSync } from 'node:fs'
import { ApiError } from '../../shared/errors.ts'
import type { TaskPort } from '../../shared/stream-task.ts'
import { watched, watchFiles } from '../../workers/lake/watched-files.ts'

export interface StuckTask extends TaskPort {
  readonly how: 'pipe' | 'silent' | 'deaf' | 'later' | 'answer'
  readonly path: string
  /** Its first integer becomes 1 when the task starts. */
  readonly begun: SharedArrayBuffer
}

export default async function run(task: StuckTask | { readonly warm: true }): Promise<void> {
  if ('warm' in task) return
  const { how, path, begun, port, watch, silentFiles } = task
  const unwatch = watchFiles(watch, silentFiles)
  Atomics.store(new Int32Array(begun), 0, 1)
  if (how === 'pipe') openSync(path, 'r')
  else if (how === 'later') await new Promise((resolve) => setTimeout(resolve, 100))
  else if (how === 'silent') {
    // Tasks that arrived together have started by then.
    await new Promise((resolve) => setTimeout(resolve, 20))
    try {
      watched('candles/silent', () => openSync(path, 'r'))
    } catch (error) {
      if (error instanceof ApiError)
        port.postMessage({ kind: 'error', code: error.code, detail: error.message, errors: [] })
    }
  } else if (how === 'deaf') await new Promise((resolve) => setInterval(resolve, 2 ** 30))
  port.postMessage({ kind: 'head', rows: 0 })
  port.postMessage({ kind: 'end', rows: 0 })
  unwatch()
  port.close()
}
