// How Node runs the tests of the quick gear. They start many processes that live for seconds, and most of their processor
// time went into optimizing code that is then hardly used: the embedded store's WebAssembly first. The full gear, and the
// program itself, run as Node does by default.

import { IS_FULL_EFFORT } from './effort.ts'

const FLAGS = [
  // WebAssembly stays with its first, quick translation.
  '--liftoff-only',
  // Functions are optimized thirty times later, and a function of WebAssembly is checked when it is called, not all of a
  // module with each start. Newer versions of Node decide it otherwise and may refuse the flags.
  ...(process.versions.node.startsWith('20.')
    ? ['--interrupt-budget=2000000', '--wasm-lazy-validation']
    : []),
]

/** For processes that a test or the test run starts. */
export const START_FLAGS: readonly string[] = IS_FULL_EFFORT ? [] : FLAGS

/** For those of them that serve: see cold-threads.ts. */
export const COLD_THREADS: readonly string[] = IS_FULL_EFFORT
  ? []
  : ['--import', new URL('./cold-threads.js', import.meta.url).href]

/** For those that run tests: see plain-promises.ts. */
export const PLAIN_PROMISES: readonly string[] = IS_FULL_EFFORT
  ? []
  : ['--import', new URL('./plain-promises.js', import.meta.url).href]
