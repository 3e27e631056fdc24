// Servers start cold with quick effort (see cold-threads.ts), and like the program with full effort.

import { fileURLToPath } from 'node:url'
import { startServer } from '../../server/service/server.ts'
import { withColdThreads } from './cold-threads.ts'
import { IS_FULL_EFFORT } from './effort.ts'
import { COLD_THREADS, START_FLAGS } from './start-flags.ts'

/** Like startServer, for tests that are not about the threads themselves. */
export const startColdServer: typeof startServer = IS_FULL_EFFORT
  ? startServer
  : (config, dependencies) => withColdThreads(() => startServer(config, dependencies))

const PROGRAM = fileURLToPath(new URL('../../server/main.js', import.meta.url))

/** Arguments for Node to run the program: `spawn(process.execPath, [...PROGRAM_ARGUMENTS, 'serve', ...])`. */
export const PROGRAM_ARGUMENTS: readonly string[] = [...START_FLAGS, ...COLD_THREADS, PROGRAM]

/** The same for the servers that benchmarks start in this process. */
export function startBenchServersCold(): void {
  if (!IS_FULL_EFFORT)
    process.env['BENCH_SERVER_NODE_OPTIONS'] ??= [...START_FLAGS, ...COLD_THREADS].join(' ')
}
