// Clients that do not read what they asked for: everybody else is answered meanwhile.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { CANDLE_SERIES, candleDate, candleMarket, writeCandleMonth } from '../../bench/candle-file.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { startRecordServer } from '../support/record-server.ts'

const place = storeOfThisFile()
const DAYS = 20
/** More than the threads there are, and no more than the budget of rows allows. */
const SLOW_READERS = 6
const LONG = `/api/v1/candles?series=${CANDLE_SERIES}&from=${candleDate(1)}&to=${candleDate(DAYS)}&limit=300000&format=csv`

/** A client that has asked, has got the first bytes of its answer, and reads no more. */
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

test('slow readers of long answers hold nobody else up', { timeout: 120_000 }, async (t) => {
  const { url, lake } = await startRecordServer(t, place.store.postgres.address)
  await writeCandleMonth(lake, DAYS)
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
  // The slow ones are still being served: what was answered was not answered in their stead.
  assert.ok(readers.every((reader) => !reader.destroyed && !reader.readableEnded))
})
