// Clients that do not read their responses do not delay other clients.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { CANDLE_SERIES, candleDate, candleMarket, writeCandleMonth } from '../../bench/candle-file.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { startRecordServer } from '../support/record-server.ts'
import { lakeOfThisFile } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'

const place = storeOfThisFile()
const DAYS = 20
const MONTH = lakeOfThisFile((lake) => writeCandleMonth(lake, DAYS))
/** More than there are threads, and no more than the share of a client allows. */
const SLOW_READERS = 5
const LONG = `/api/v1/candles?series=${CANDLE_SERIES}&from=${candleDate(1)}&to=${candleDate(DAYS)}&limit=190000&format=csv`

/** A client that reads the first bytes of its response and then stops reading. */
async function openSlowReader(t: TestContext, url: string, target: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.write(`GET ${target} HTTP/1.1\r\nHost: test\r\n\r\n`)
  const [first] = (await once(socket, 'data')) as [Buffer]
  socket.pause()
  assert.match(first.toString('latin1'), /^HTTP\/1\.1 200 /)
  return socket
}

test('slow readers of long responses do not block other clients', { timeout: 120_000 }, async (t) => {
  const { url } = await startRecordServer(t, place.store.postgres.address, MONTH.path)
  const readers: Socket[] = []
  for (let count = 0; count < SLOW_READERS; count += 1) readers.push(await openSlowReader(t, url, LONG))
  const sample = 'from=2026-07-01&to=2026-07-02'
  for (const target of [
    `/api/v1/candles?market=${candleMarket(1, 0)}&${sample}`,
    `/api/v1/observations?station=NYC&${sample}`,
    `/api/v1/climate?station=NYC&${sample}`,
    `/api/v1/analysis/climate-gaps?station=NYC&${sample}`,
  ]) {
    const answer = await fetch(`${url}${target}`)
    assert.equal(answer.status, 200, target)
    assert.ok(Array.isArray(await answer.json()))
  }
  const health = (await (await fetch(`${url}/health`)).json()) as { embedded_db: string }
  assert.equal(health.embedded_db, 'ok')
  // The slow readers are still connected: the others were not served at their cost.
  assert.ok(readers.every((reader) => !reader.destroyed && !reader.readableEnded))
})

test(
  'a request whose plan reads much moves to the threads for bulk work',
  { timeout: 120_000 },
  async (t) => {
    const server = await startColdServer(
      { ...TEST_CONFIG, lake: MONTH.path },
      { logger: pino({ level: 'silent' }), storeAddress: place.store.postgres.address },
    )
    t.after(() => server.close())
    const url = `http://127.0.0.1:${server.port}`
    const granted = async (): Promise<readonly number[]> => {
      const text = await (await fetch(`${url}/metrics`)).text()
      return ['records', 'bulk_records'].map((lane) =>
        Number(new RegExp(`^bookcast_lane_granted_total\\{lane="${lane}"\\} (\\d+)$`, 'm').exec(text)?.[1]),
      )
    }
    const month = `from=${candleDate(1)}&to=${candleDate(DAYS)}`
    for (const [target, small, bulk] of [
      [`market=${candleMarket(1, 0)}&${month}`, 1, 0],
      [`series=${CANDLE_SERIES}&from=${candleDate(2)}&to=${candleDate(2)}&aggregate=60`, 2, 0],
      // Few rows are requested, but a month of six markets must be read for them.
      [`series=${CANDLE_SERIES}&${month}&aggregate=1440&limit=10`, 3, 1],
      [`market=${candleMarket(1, 0)}&${month}&limit=50000`, 3, 2],
    ] as const) {
      const answer = await fetch(`${url}/api/v1/candles?${target}`)
      assert.equal(answer.status, 200, target)
      assert.ok(((await answer.json()) as unknown[]).length > 0)
      assert.deepEqual(await granted(), [small, bulk], target)
    }
  },
)
