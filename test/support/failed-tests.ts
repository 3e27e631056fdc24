// A reporter of Node's test runner that lists the failed tests at the end of the run. With two thousand tests, they are far from
// the end of the TAP log.

import type { TestEvent } from 'node:test/reporters'

const LAST_LINES_CHARACTERS = 2_000

export default async function* failedTests(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const failed: string[] = []
  /** The end of each process's output: a process that ends before its tests states the reason there. */
  const lastLines = new Map<string, string>()
  for await (const event of events) {
    if (event.type === 'test:stderr') {
      const { file, message } = event.data
      lastLines.set(file, `${lastLines.get(file) ?? ''}${message}`.slice(-LAST_LINES_CHARACTERS))
    }
    if (event.type !== 'test:fail') continue
    const { name, file = '', line = 0, details } = event.data
    const { cause } = details.error
    // Skip a suite that failed because of its tests.
    if ('failureType' in details.error && details.error.failureType === 'subtestsFailed') continue
    const reason =
      (name === file ? lastLines.get(file) : undefined) ??
      (cause instanceof Error ? (cause.stack ?? cause.message) : String(cause))
    failed.push(`FAILED ${name} (${file}:${line})\n${reason}\n`)
  }
  yield failed.join('')
}
