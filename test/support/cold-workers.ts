// The real workers in threads that nobody has warmed: a server of the quick gear starts without loading and compiling what
// most tests never ask for, and a thread loads its worker with its first task. The full gear starts servers as the program
// does.

import type { ServerDependencies } from '../../server/server.ts'
import { IS_FULL_EFFORT } from './effort.ts'

/** What a test's server gets that serves with the real workers. */
export const REAL_WORKERS: Pick<ServerDependencies, 'lobWorkerUrl' | 'recordWorkerUrl'> = IS_FULL_EFFORT
  ? {}
  : {
      lobWorkerUrl: new URL('./cold-lob-worker.js', import.meta.url),
      recordWorkerUrl: new URL('./cold-record-worker.js', import.meta.url),
    }
