// An ingest client's HTTP side for tests: a local upstream, a clock that never waits, no jitter.

import type { TestContext } from 'node:test'
import { UpstreamHttp, type UpstreamOptions } from '../../server/ingest/upstream-http.ts'
import { type Answer, type LocalUpstream, startUpstream } from './local-upstream.ts'
import { ManualClock } from './manual-clock.ts'

export interface UpstreamBench extends LocalUpstream {
  readonly http: UpstreamHttp
  readonly clock: ManualClock
}

export async function upstreamBench(
  t: TestContext,
  name: string,
  script: readonly Answer[],
  options: Partial<UpstreamOptions> = {},
): Promise<UpstreamBench> {
  const upstream = await startUpstream(t, script)
  const clock = new ManualClock(Date.parse('2026-08-30T12:00:00Z'))
  const http = new UpstreamHttp({
    name,
    baseUrl: upstream.baseUrl,
    userAgent: 'bookcast-test (tests@example.org)',
    rate: { burst: 100, intervalMs: 1 },
    clock,
    random: () => 0.5,
    ...options,
  })
  t.after(() => http.close())
  return { ...upstream, http, clock }
}
