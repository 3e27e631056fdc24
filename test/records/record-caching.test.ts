// Entity tags of record answers: they hold until the data or a lake file changes, and are left out where that cannot be
// told.

import assert from 'node:assert/strict'
import { utimesSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { storeServices } from '../../server/catalogue/store-services.ts'
import { startServer } from '../../server/server.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { writeCandleFile } from '../support/record-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'

const place = storeOfThisFile()

const SERIES = 'KXHIGHNY'
const MARKET = `${SERIES}-26JUL01-B81.5`
const CANDLES = `candles?market=${MARKET}&from=2026-07-01&to=2026-07-01`
const CLIMATE = 'climate?station=NYC'

test('record answers are 304 until what they are made from changes', async (t) => {
  const { postgres } = place.store
  const put = (dataset: 'candles' | 'climate', text: string): Promise<void> =>
    postgres.transaction(async (transaction) => {
      await transaction.run({ text, parameters: [] })
      transaction.markChanged(dataset)
    })
  const putCandle = (hour: number): Promise<void> =>
    put(
      'candles',
      `INSERT INTO candles VALUES ('${MARKET}', '${SERIES}-26JUL01', '${SERIES}', 60, '2026-07-01T${hour}:00:00Z',
        4000, 4100, 3900, 4050, 1200, 500)`,
    )
  await putCandle(12)
  const lake = await temporaryDirectory(t)
  const file = await writeCandleFile(lake, SERIES, '2026-06', [])
  const server = await startServer(
    { ...TEST_CONFIG, lake },
    {
      logger: pino({ level: 'silent' }),
      store: storeServices(postgres),
      storeAddress: postgres.address,
    },
  )
  t.after(() => server.close())
  const get = async (target: string, held = '') => {
    const headers = held === '' ? {} : { 'if-none-match': held }
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/${target}`, { headers })
    await response.arrayBuffer()
    const { status, headers: answered } = response
    return { status, etag: answered.get('etag') ?? '', cacheControl: answered.get('cache-control') }
  }
  const whole = `${CANDLES}&interval=60`
  const candles = await get(whole)
  const climate = await get(CLIMATE)
  for (const [target, { status, etag }] of [
    [whole, candles],
    [CLIMATE, climate],
  ] as const) {
    assert.equal(status, 200)
    assert.match(etag, /^"[\w-]{22}(?:-gzip)?"$/)
    assert.equal((await get(target, etag)).status, 304, target)
  }
  assert.equal((await get(whole, '*')).status, 304)
  assert.equal((await get(whole.replace(MARKET, 'KXNONE-1'), '*')).status, 404, 'there is no answer')
  assert.notEqual((await get(`${whole}&limit=1`)).etag, candles.etag)
  for (const moving of [
    `candles?market=${MARKET}&interval=60`,
    `${CANDLES.replace('&to=2026-07-01', '')}&interval=60`,
    'candles?from=2026-07-01&to=2026-07-01',
    'observations?from=2026-07-01&to=2026-07-01',
    'analysis/climate-gaps?station=NYC&from=2026-07-01&to=2026-07-02',
  ]) {
    const { etag, cacheControl } = await get(moving)
    assert.deepEqual({ etag, cacheControl }, { etag: '', cacheControl: 'no-store' }, moving)
  }
  utimesSync(join(lake, file), 1, 1)
  assert.equal((await get(whole, candles.etag)).etag === candles.etag, false, 'a lake file changed')
  const afterFile = (await get(whole)).etag
  await putCandle(13)
  let changed = await get(whole, afterFile)
  while (changed.status === 304) changed = await get(whole, afterFile)
  assert.notEqual(changed.etag, afterFile)
  assert.equal((await get(CLIMATE, climate.etag)).status, 304, 'candles do not concern the climate')
})
