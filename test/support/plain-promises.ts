// Loaded before everything else (`node --import`) by the test processes of the quick gear. Node's test runner follows every
// promise and every other asynchronous resource from its making to its end, to know whose the tests are that are declared
// there, and the errors that nobody catches: a seventh of the processor time, and a third of the page faults. Here it does so
// while the tests are declared. Later an uncaught error ends the process, which fails all of its tests that have not run; with
// full effort the runner tells whose it was.

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
  // The runner takes the function when it is loaded.
  const { beforeEach } = await import('node:test')
  hooks.createHook = createHook
  // The first test may begin before the file that declares it has ended.
  beforeEach(() => {
    if (ofRunner.length > 0) setImmediate(() => ofRunner.splice(0).forEach((hook) => hook.disable()))
  })
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(event, (error: unknown) => {
      process.stderr.write(`${event}: ${error instanceof Error ? error.stack : String(error)}\n`)
      process.exit(1)
    })
}
