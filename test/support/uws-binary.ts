// uWebSockets.js, for tests of what is particular to it.

import type { TestContext } from 'node:test'

/** The library; undefined where it has no binary, and the test is skipped then. */
export async function uwsOrSkip(t: TestContext): Promise<typeof import('uWebSockets.js') | undefined> {
  const library = await import('uWebSockets.js').catch(() => undefined)
  if (library === undefined) t.skip('uWebSockets.js has no binary here')
  return library
}
