// Clients that disconnect during an answer of the real worker: no slot, thread or file handle leaks.

import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runs } from '../support/effort.ts'
import { startTestServer, until } from '../support/test-server.ts'

const SAMPLE_LAKE = fileURLToPath(new URL('../../../data-samples/lake', import.meta.url))
/** A multiple of the number of formats. */
const ROUNDS = runs(8, 200)

/** Lake files that this process (all its threads) holds open; undefined without /proc. */
function openLakeFiles(): string[] | undefined {
  try {
    return readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        const target = readlinkSync(`/proc/self/fd/${fd}`)
        return target.includes('.parquet') ? [target] : []
      } catch {
        return []
      }
    })
  } catch {
    return undefined
  }
}

test('leaves no slot taken and no lake file open when clients disconnect during an answer', async (t) => {
  const { url, log, server } = await startTestServer(t, { lake: SAMPLE_LAKE }, { worker: 'real' })
  const formats = ['json&interval=20', 'ndjson&interval=2', 'csv&interval=2', 'parquet&interval=2']
  for (let round = 0; round < ROUNDS; round++) {
    const leaving = new AbortController()
    const format = formats[round % formats.length]
    const address = `${url}/api/v1/lob?series=KXHIGHNY-26JUL02&date=2026-07-02&levels=50&format=${format}`
    const response = await fetch(address, { signal: leaving.signal })
    assert.equal(response.status, 200)
    if (round % 2 === 0) await response.body?.getReader().read()
    leaving.abort()
    await log.find(() => true, round + 1)
  }
  // A slot is freed when its thread has stopped, which may be after the log line.
  await until(() => server.lobPool.takenSlots === 0)
  assert.ok(log.lines.filter((line) => line.ending === 'client_gone').length > ROUNDS / 2)
  const open = openLakeFiles()
  if (open !== undefined) assert.deepEqual(open, [])
})
