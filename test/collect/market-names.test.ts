// Names of markets: the store keeps the listing that a recorder follows, and the explorer's page gets it from there.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { pino } from 'pino'
import { storeServices } from '../../server/catalogue/store-services.ts'
import { startCollection } from '../../server/collect/collection.ts'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { EVENT_CLEAR } from '../../shared/lob-v1.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { send, startRoutedUpstream } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { bookEvent, DAY_START } from '../support/recorded-events.ts'
import { eventually } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'
import { worldConfig } from '../support/upstream-world.ts'

const place = storeOfThisFile()
const SERIES = 'highest-temperature-in-nyc'
const QUESTION = 'Will the highest temperature in NYC be 94-95°F?'

test('a collector keeps the question and outcome of each token, and the page shows them', async (t) => {
  const { store } = place
  const lake = await temporaryDirectory(t)
  let question = QUESTION
  const gamma = await startRoutedUpstream(t, () => {
    const market = {
      conditionId: '0xab',
      clobTokenIds: '["111", "222"]',
      question,
      outcomes: '["Yes", "No"]',
    }
    return send(200, JSON.stringify([{ markets: [market] }]))
  })
  const logger = pino({ level: 'silent' })
  const collect = () =>
    startCollection({
      config: {
        ingest: worldConfig(gamma.baseUrl),
        names: [],
        recording: {
          lake,
          workDirectory: join(lake, '.recorder'),
          userAgent: 'bookcast-test',
          polymarket: { series: [SERIES], socketUrl: 'ws://127.0.0.1:9', restUrl: gamma.baseUrl },
        },
        compaction: null,
        push: null,
      },
      postgres: store.postgres,
      logger,
    })
  const server = await startColdServer(
    { ...TEST_CONFIG, lake, hasExplorer: true },
    { logger, store: storeServices(store.postgres), storeAddress: store.postgres.address },
  )
  t.after(() => server.close())
  const names = `http://127.0.0.1:${server.port}/explorer/names?source=polymarket`
  const namesOf = async (series: string, date = '2026-07-01'): Promise<unknown> =>
    (await fetch(`${names}&series=${encodeURIComponent(series)}&date=${date}`)).json()
  // The books of the date: one of the tokens, and one without a name.
  const writer = new LobRecordingWriter({ lake, source: 'polymarket' })
  for (const id of ['0xab:222', '0xcd:333']) writer.append(SERIES, bookEvent(id, DAY_START, EVENT_CLEAR))
  await writer.finish()
  const named = () => ({
    source: 'polymarket',
    series: SERIES,
    market_id: '0xab:222',
    question,
    outcome: 'No',
  })
  for (const asked of [QUESTION, 'Will it be 94-95°F in NYC?']) {
    question = asked
    const collection = collect()
    await eventually(async () => isDeepStrictEqual(await namesOf(SERIES), [named()]), 'the names are there')
    await collection.stop()
  }
  for (const series of ['another', '../lob', '..', 'a/b']) assert.deepEqual(await namesOf(series), [], series)
  assert.deepEqual(await namesOf(SERIES, '2026-07-02'), [])
})

test('without a store the page gets no names', async (t) => {
  const lake = await temporaryDirectory(t)
  const server = await startColdServer(
    { ...TEST_CONFIG, lake, hasExplorer: true },
    { logger: pino({ level: 'silent' }) },
  )
  t.after(() => server.close())
  const answer = await fetch(
    `http://127.0.0.1:${server.port}/explorer/names?source=polymarket&series=x&date=2026-07-01`,
  )
  assert.deepEqual([answer.status, await answer.json()], [200, []])
})
