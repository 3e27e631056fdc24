// Wrong parameters of /api/v1/lob/at are refused by name; markets, series and events are resolved as in /lob.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSampleServer } from '../support/sample-server.ts'
import { readProblem, startTestServer } from '../support/test-server.ts'

const TS = 'ts=2026-07-01T18:10:00Z'
const GOOD = `series=KXHIGHNY&${TS}`

/** Queries and the parameters for which they must be refused. */
const WRONG: readonly (readonly [string, readonly string[]])[] = [
  ['', ['market', 'series', 'event', 'ts']],
  [TS, ['market', 'series', 'event']],
  [`${GOOD}&event=KXHIGHNY-26JUL01`, ['series', 'event']],
  [`${GOOD}&market=KXHIGHNY-26JUL01-B81.5`, ['market', 'series']],
  [`${TS}&event=../x`, ['event']],
  [`${TS}&event=`, ['event']],
  [`${TS}&series=a/b`, ['series']],
  [`${TS}&market=KXHIGHNY-26JUL01-B81.5&source=polymarket`, ['market']],
  ['series=KXHIGHNY', ['ts']],
  ['series=KXHIGHNY&ts=', ['ts']],
  ['series=KXHIGHNY&ts=2026-07-01', ['ts']],
  ['series=KXHIGHNY&ts=2026-07-01T18:10:00', ['ts']],
  ['series=KXHIGHNY&ts=2026-02-30T18:10:00Z', ['ts']],
  ['series=KXHIGHNY&ts=2026-07-01T18:10:00.1234567891Z', ['ts']],
  ['series=KXHIGHNY&ts=2026-07-01T18:10:00+02:00', ['ts']],
  ['series=KXHIGHNY&ts=1782929400', ['ts']],
  ['series=KXHIGHNY&ts=1782929400123', ['ts']],
  ['series=KXHIGHNY&ts=9999999999999999999', ['ts']],
  ['series=KXHIGHNY&ts=-178292940012345678', ['ts']],
  [`${GOOD}&${TS}`, ['ts']],
  [`${GOOD}&by=`, ['by']],
  [`${GOOD}&by=Received`, ['by']],
  [`${GOOD}&by=received&by=exchange`, ['by']],
  [`${GOOD}&levels=0`, ['levels']],
  [`${GOOD}&levels=x`, ['levels']],
  [`${GOOD}&date=2026-07-01`, ['date']],
  [`${GOOD}&interval=1`, ['interval']],
  [`${GOOD}&format=csv`, ['format']],
]

test('refuses wrong parameters with their names', async (t) => {
  const { url } = await startTestServer(t)
  for (const [query, names] of WRONG) {
    const problem = await readProblem(await fetch(`${url}/api/v1/lob/at?${query}`))
    assert.equal(problem.status, 400, query)
    assert.deepEqual(problem.errors.map(({ parameter }) => parameter).toSorted(), names.toSorted(), query)
  }
})

test('answers a market, a series and an event, and revalidates', async (t) => {
  const { url } = await startSampleServer(t)
  const idsOf = async (query: string): Promise<string[]> => {
    const response = await fetch(`${url}/api/v1/lob/at?${query}&${TS}`)
    assert.equal(response.status, 200, query)
    return ((await response.json()) as { market_id: string }[]).map(({ market_id: id }) => id)
  }
  assert.deepEqual(await idsOf('market=KXHIGHNY-26JUL01-B81.5'), ['KXHIGHNY-26JUL01-B81.5'])
  const event = await idsOf('event=KXHIGHNY-26JUL01')
  assert.ok(event.length > 1 && event.every((id) => id.startsWith('KXHIGHNY-26JUL01-')))
  assert.ok((await idsOf('series=KXHIGHNY')).length >= event.length)

  const target = `${url}/api/v1/lob/at?${GOOD}`
  const etag = (await fetch(target)).headers.get('etag')!
  assert.equal((await fetch(target, { headers: { 'If-None-Match': etag } })).status, 304)
  assert.notEqual((await fetch(`${target}&by=received`)).headers.get('etag'), etag)
  const missing = await readProblem(
    await fetch(`${url}/api/v1/lob/at?series=KXHIGHNY&ts=2026-06-01T00:00:00Z`),
  )
  assert.deepEqual([missing.status, missing.code], [404, 'no_data'])
})
