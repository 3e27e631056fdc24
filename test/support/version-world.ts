// A server over a lake and the store, for requests with and without a version of the lake.

import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { storeServices } from '../../server/catalogue/store-services.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { startColdServer } from './cold-workers.ts'
import { endAfter } from './temporary-lake.ts'
import { TEST_CONFIG } from './test-server.ts'

const WAIT_MS_MAX = 20_000

export interface VersionWorld {
  readonly lake: string
  /** Requests a target below /api/v1/. */
  readonly ask: (
    target: string,
  ) => Promise<{ status: number; version: string | null; body: Buffer; etag: string | null }>
  readonly url: string
}

export async function startVersionWorld(
  t: TestContext,
  lake: string,
  { postgres, keepVersionsDays }: { readonly postgres: Postgres; readonly keepVersionsDays: number },
): Promise<VersionWorld> {
  const server = await startColdServer(
    { ...TEST_CONFIG, lake, keepVersionsDays, corsOrigins: ['*'] },
    {
      logger: pino({ level: process.env['TEST_LOG'] ?? 'silent' }),
      store: storeServices(postgres),
      storeAddress: postgres.address,
    },
  )
  endAfter(t, () => server.close())
  const url = `http://127.0.0.1:${server.port}`
  return {
    lake,
    url,
    async ask(target) {
      const response = await fetch(`${url}/api/v1/${target}`)
      const { headers, status } = response
      const body = Buffer.from(await response.arrayBuffer())
      return { status, body, version: headers.get('lake-version'), etag: headers.get('etag') }
    },
  }
}

/** The version that a response names once the server knows all files, and once it differs from `before`. */
export async function versionNamed(
  { ask }: VersionWorld,
  target: string,
  before: string | null = null,
): Promise<string> {
  for (const endMs = Date.now() + WAIT_MS_MAX; Date.now() < endMs; await delay(50)) {
    const { version, body, status } = await ask(target)
    if (status !== 200) throw new Error(`${target}: ${body.toString()}`)
    if (version !== null && version !== before) return version
  }
  throw new Error(`no new version of ${target}`)
}
