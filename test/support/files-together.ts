// The tests of several files in one process, each file a suite of its own.

import { after, describe } from 'node:test'

/**
 * Runs files, given as URLs by name. No test runs before all files are loaded, which keeps the process busy for seconds. If the
 * process ends before all of their tests have run, it fails, whatever ended it.
 */
export function testTogether(files: Readonly<Record<string, string>>): void {
  const running = new Set(Object.keys(files))
  const loading: Promise<unknown>[] = []
  for (const [name, url] of Object.entries(files))
    describe(name, async () => {
      after(() => void running.delete(name))
      const loaded = import(url)
      loading.push(loaded)
      await loaded
      await Promise.allSettled(loading)
    })
  process.on('exit', () => {
    if (running.size === 0) return
    process.stderr.write(`the process ended before the tests of ${[...running].join(', ')}\n`)
    process.exitCode = 1
  })
}
