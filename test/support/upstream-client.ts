// The parts that an ingest client needs in a test: a local upstream, a clock that never waits, no jitter.

import type { TestContext } from 'node:test'
import type { ClientOptions } from '../../server/upstream/upstream-http.ts'
import { type Answer, type AskedRequest, startUpstream } from './local-upstream.ts'
import { ManualClock } from './manual-clock.ts'

export interface ClientBench<C> {
  readonly client: C
  readonly asked: readonly AskedRequest[]
}

/** Makes a client of the given class for a local upstream with the given script; it is closed when the test ends. */
export async function clientBench<C extends { close(): Promise<void> }>(
  t: TestContext,
  Client: new (options: ClientOptions) => C,
  script: readonly Answer[],
  options: Partial<ClientOptions> = {},
): Promise<ClientBench<C>> {
  const { baseUrl, asked } = await startUpstream(t, script)
  const client = new Client({
    baseUrl,
    userAgent: 'bookcast-test (tests@example.org)',
    clock: new ManualClock(Date.parse('2026-08-30T12:00:00Z')),
    random: () => 0.5,
    ...options,
  })
  t.after(() => client.close())
  return { client, asked }
}
