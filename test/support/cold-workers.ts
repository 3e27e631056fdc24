// The real workers in threads that nobody has warmed: a server of the quick gear starts without loading and compiling what
// most tests never ask for, and a thread loads its worker with its first task. The full gear starts servers as the program
// does.

import { fileURLToPath } from 'node:url'
import type { ServerDependencies } from '../../server/background.ts'
import { IS_FULL_EFFORT } from './effort.ts'
import { START_FLAGS } from './start-flags.ts'

/** A test's server starts without a thread: they come with the tasks that need them. */
export const NO_THREADS_AT_START: Pick<ServerDependencies, 'threadsAtStart'> = IS_FULL_EFFORT
  ? {}
  : { threadsAtStart: 0 }

/** What a test's server gets that serves with the real workers. */
export const REAL_WORKERS: Pick<ServerDependencies, 'lobWorkerUrl' | 'recordWorkerUrl' | 'threadsAtStart'> =
  IS_FULL_EFFORT
    ? {}
    : {
        ...NO_THREADS_AT_START,
        lobWorkerUrl: new URL('./cold-lob-worker.js', import.meta.url),
        recordWorkerUrl: new URL('./cold-record-worker.js', import.meta.url),
      }

const PROGRAM = fileURLToPath(new URL('../../server/main.js', import.meta.url))

const COLD_THREADS = ['--import', new URL('./cold-threads.js', import.meta.url).href]

/** What Node gets to run the program: `spawn(process.execPath, [...PROGRAM_ARGUMENTS, 'serve', ...])`. */
export const PROGRAM_ARGUMENTS: readonly string[] = IS_FULL_EFFORT
  ? [PROGRAM]
  : [...START_FLAGS, ...COLD_THREADS, PROGRAM]

/** The same for the servers that benchmarks start in this process. */
export function startBenchServersCold(): void {
  if (!IS_FULL_EFFORT)
    process.env['BENCH_SERVER_NODE_OPTIONS'] ??= [...START_FLAGS, ...COLD_THREADS].join(' ')
}
