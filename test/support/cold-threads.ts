// Loaded before the program (`node --import`): the threads that serve get the workers which load with their first task, and
// start with the tasks that need them. A server in a process of its own then starts as quickly as one in the test's.

import { createRequire, syncBuiltinESMExports } from 'node:module'
import { isMainThread, type WorkerOptions } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import type { WorkerThreadData } from '../../shared/stream-task.ts'

const COLD_WORKERS: ReadonlyMap<string, string> = new Map(
  ['lob', 'record'].map((kind) => [
    new URL(`../../workers/${kind === 'lob' ? 'lob' : 'records'}/task.js`, import.meta.url).href,
    new URL(`./cold-${kind}-worker.js`, import.meta.url).href,
  ]),
)
// The CommonJS form of the module is the one that can be changed, and that Piscina asks.
const threads = createRequire(import.meta.url)('node:worker_threads') as {
  Worker: typeof import('node:worker_threads').Worker
}

threads.Worker = class extends threads.Worker {
  constructor(file: string | URL, options: WorkerOptions = {}) {
    const data = options.workerData as Partial<WorkerThreadData> | undefined
    const taskUrl = COLD_WORKERS.get(data?.taskUrl ?? '')
    super(file, taskUrl === undefined ? options : { ...options, workerData: { ...data, taskUrl } })
  }
}
syncBuiltinESMExports()

// As above, before its form for ES modules is made of it. Only a server has pools.
if (isMainThread && process.argv[2] === 'serve') {
  const pools = createRequire(import.meta.url)('piscina') as { Piscina: typeof Piscina }
  const Pool = class extends pools.Piscina {
    constructor(options: ConstructorParameters<typeof Piscina>[0]) {
      super({ ...options, minThreads: 0 })
    }
  }
  // It has only a getter.
  Object.defineProperty(pools, 'Piscina', { value: Pool })
}
