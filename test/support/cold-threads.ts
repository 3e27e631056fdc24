// Loaded before everything else (`node --import`) with quick effort: a server that starts cold has no thread before its first task,
// and each thread loads its worker at its first task. Starting then takes a fifth of the processor time, and most tests use one
// thread of seven. The program is not aware of this. If this file is not loaded first, servers start as usual.

import { createRequire } from 'node:module'
import { isMainThread } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import type { WorkerThreadData } from '../../shared/stream-task.ts'

const COLD_WORKERS: ReadonlyMap<string, string> = new Map([
  [
    new URL('../../workers/lob/task.js', import.meta.url).href,
    new URL('./cold-lob-worker.js', import.meta.url).href,
  ],
  [
    new URL('../../workers/records/task.js', import.meta.url).href,
    new URL('./cold-record-worker.js', import.meta.url).href,
  ],
])
/** The number of servers that are starting cold. */
let starting = 0
const [, program = '', command] = process.argv

/** Starts a server whose threads are cold; no other server may start meanwhile in this process. */
export async function withColdThreads<T>(start: () => Promise<T>): Promise<T> {
  starting += 1
  try {
    return await start()
  } finally {
    starting -= 1
  }
}

type PoolOptions = NonNullable<ConstructorParameters<typeof Piscina>[0]>

function coldOptions(options: PoolOptions): PoolOptions {
  const data = options.workerData as Partial<WorkerThreadData> | undefined
  const taskUrl = COLD_WORKERS.get(data?.taskUrl ?? '') ?? data?.taskUrl
  return { ...options, minThreads: 0, workerData: { ...data, taskUrl } }
}

// Pools exist only in servers, those of tests and those of the program.
if (isMainThread && (command === 'serve' || !program.endsWith('server/main.js'))) {
  // Only the CommonJS form of the module can be changed, before its ES module form is made from it.
  const pools = createRequire(import.meta.url)('piscina') as { Piscina: typeof Piscina }
  const Pool = class extends pools.Piscina {
    constructor(options: PoolOptions = {}) {
      super(command === 'serve' || starting > 0 ? coldOptions(options) : options)
    }
  }
  // The property has only a getter.
  Object.defineProperty(pools, 'Piscina', { value: Pool })
}
