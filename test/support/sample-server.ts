// A real server with its real workers over the committed sample lake.

import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import type { ServeConfig } from '../../server/config.ts'
import { startServer } from '../../server/server.ts'
import { TEST_CONFIG } from './test-server.ts'

/** The lake below data-samples/, seen from the built file. */
export const SAMPLE_LAKE = fileURLToPath(new URL('../../../data-samples/lake', import.meta.url))

export async function startSampleServer(t: TestContext, config: Partial<ServeConfig> = {}) {
  const server = await startServer(
    { ...TEST_CONFIG, lake: SAMPLE_LAKE, ...config },
    { logger: pino({ level: 'silent' }) },
  )
  t.after(() => server.close())
  return { server, url: `http://127.0.0.1:${server.port}` }
}
