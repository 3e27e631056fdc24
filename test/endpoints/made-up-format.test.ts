// An output format added with one entry and its encoders, as docs/extending.md says: parameters, headers, documentation and
// responses include it.

import { RECORD_SEPARATOR } from '../support/json-seq-format.ts'
import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { test } from 'node:test'
import { pino } from 'pino'
import { startServer } from '../../server/service/server.ts'
import { makeSampleStore } from '../support/postgres.ts'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'

test('a format with one entry and its encoders is served, documented and named in errors', async (t) => {
  const place = await makeSampleStore()
  t.after(place.remove)
  const store = await openRelationalStore(place)
  t.after(() => store.close())
  await store.migrate()
  const lake = await temporaryDirectory(t)
  await cp(SAMPLE_LAKE, lake, { recursive: true })
  const server = await startServer(
    { ...TEST_CONFIG, lake },
    {
      logger: pino({ level: 'silent' }),
      storeAddress: store.postgres.address,
      lobWorkerUrl: new URL('../support/json-seq-lob-worker.js', import.meta.url),
      recordWorkerUrl: new URL('../support/json-seq-record-worker.js', import.meta.url),
    },
  )
  t.after(() => server.close())
  const url = `http://127.0.0.1:${server.port}`
  for (const path of [
    '/api/v1/lob?series=KXHIGHNY&date=2026-07-01&hour=18&levels=3',
    '/api/v1/lob?series=KXHIGHNY&date=2026-07-01&interval=10',
    '/api/v1/climate?station=NYC&columns=observation_date,high_temp_f,source',
  ]) {
    const lines = await (await fetch(`${url}${path}&format=ndjson`)).text()
    assert.ok(lines.split('\n').length > 2)
    const answer = await fetch(`${url}${path}&format=json-seq`)
    assert.equal(answer.headers.get('content-type'), 'application/json-seq', path)
    assert.equal(answer.headers.get('content-encoding'), 'gzip')
    assert.equal(await answer.text(), lines.replaceAll(/^(?=.)/gm, RECORD_SEPARATOR), path)
  }
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
    paths: Record<string, { get: { responses: Record<string, { content: Record<string, unknown> }> } }>
  }
  for (const path of ['/api/v1/lob', '/api/v1/candles'])
    assert.ok('application/json-seq' in (paths[path]?.get.responses['200']?.content ?? {}), path)
  const refused = await fetch(`${url}/api/v1/lob?series=KXHIGHNY&date=2026-07-01&format=xml`)
  assert.match(await refused.text(), /json-seq/)
})
