// Node's flags for tests with quick effort. They start many short-lived processes, which spent most of their processor time on
// optimizing code that is then hardly used, mainly the embedded store's WebAssembly. With full effort, and in the program itself,
// Node has its defaults.

import { IS_FULL_EFFORT } from './effort.ts'

const FLAGS = [
  // WebAssembly stays with its first, quick compilation.
  '--liftoff-only',
  // Functions are optimized thirty times later, and a WebAssembly function is validated when it is called, not the whole module at
  // each start. Newer versions of Node differ here and may reject the flags.
  ...(process.versions.node.startsWith('20.')
    ? ['--interrupt-budget=2000000', '--wasm-lazy-validation']
    : []),
]

/** For processes started by a test or the test run. */
export const START_FLAGS: readonly string[] = IS_FULL_EFFORT ? [] : FLAGS

/** For those of them that serve: see cold-threads.ts. */
export const COLD_THREADS: readonly string[] = IS_FULL_EFFORT
  ? []
  : ['--import', new URL('./cold-threads.js', import.meta.url).href]

/** For those that run tests: see plain-promises.ts. */
export const PLAIN_PROMISES: readonly string[] = IS_FULL_EFFORT
  ? []
  : ['--import', new URL('./plain-promises.js', import.meta.url).href]
