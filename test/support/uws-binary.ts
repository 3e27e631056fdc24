// uWebSockets.js, for tests of its specific behaviour.

import type { TestContext } from 'node:test'

/** The library; undefined if it has no binary here: then the test is skipped. */
export async function uwsOrSkip(t: TestContext): Promise<typeof import('uWebSockets.js') | undefined> {
  const library = await import('uWebSockets.js').catch(() => undefined)
  if (library === undefined) t.skip('uWebSockets.js has no binary here')
  return library
}
