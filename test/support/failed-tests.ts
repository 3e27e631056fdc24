// A reporter of Node's test runner that lists the failed tests when the run is over. In a run of two thousand tests
// the log of TAP has them far from its end.

import type { TestEvent } from 'node:test/reporters'

const LAST_LINES_CHARACTERS = 2_000

export default async function* failedTests(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const failed: string[] = []
  /** The end of what each process wrote: one that has ended before its tests says why there. */
  const lastLines = new Map<string, string>()
  for await (const event of events) {
    if (event.type === 'test:stderr') {
      const { file, message } = event.data
      lastLines.set(file, `${lastLines.get(file) ?? ''}${message}`.slice(-LAST_LINES_CHARACTERS))
    }
    if (event.type !== 'test:fail') continue
    const { name, file = '', line = 0, details } = event.data
    const { cause } = details.error
    // A suite fails because a test of it failed.
    if ('failureType' in details.error && details.error.failureType === 'subtestsFailed') continue
    const reason =
      (name === file ? lastLines.get(file) : undefined) ??
      (cause instanceof Error ? (cause.stack ?? cause.message) : String(cause))
    failed.push(`FAILED ${name} (${file}:${line})\n${reason}\n`)
  }
  yield failed.join('')
}
