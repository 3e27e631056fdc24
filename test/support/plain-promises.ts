// Loaded before everything else (`node --import`) by test processes with quick effort. Node's test runner tracks every promise and
// other asynchronous resource over its life, to attribute declared tests and uncaught errors. This takes a seventh of the processor
// time and a third of the page faults. Here the runner only does so while the tests are declared. After that, an uncaught error
// ends the process, and all tests that have not run fail; with full effort, the runner attributes it.

import hooks from 'node:async_hooks'
import { isMainThread } from 'node:worker_threads'

/** Set by the runner for the processes that run tests. */
const RUNS_TESTS = process.env['NODE_TEST_CONTEXT'] === 'child-v8'

if (isMainThread && RUNS_TESTS) {
  const { createHook } = hooks
  const ofRunner: hooks.AsyncHook[] = []
  hooks.createHook = (callbacks) => {
    const hook = createHook(callbacks)
    ofRunner.push(hook)
    return hook
  }
  // The runner takes this function when it is loaded.
  const { beforeEach } = await import('node:test')
  hooks.createHook = createHook
  // The first test may start before the file that declares it has ended.
  beforeEach(() => {
    if (ofRunner.length > 0) setImmediate(() => ofRunner.splice(0).forEach((hook) => hook.disable()))
  })
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(event, (error: unknown) => {
      process.stderr.write(`${event}: ${error instanceof Error ? error.stack : String(error)}\n`)
      process.exit(1)
    })
}
