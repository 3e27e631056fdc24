// Whole events that the exchange has removed: it refuses the candles of each of their markets.

import assert from 'node:assert/strict'
import { beforeEach, test, type TestContext } from 'node:test'
import { backfillSource, pollSource, type RunOutcome } from '../../server/ingest/run-source.ts'
import { type AskedRequest, send } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { startWorld, type UpstreamWorld, worldContext, worldSource } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const SPAN = { fromMs: Date.parse('2026-07-01T00:00:00Z'), toMs: Date.parse('2026-08-29T00:00:00Z') }
const LIKE = { poll: 'KXHIGHNY-26AUG30-T75', backfill: 'KXHIGHNY-26AUG28-T75' } as const
const STRIKES = 6

beforeEach(async () => {
  await command('TRUNCATE series, markets, candles, ingest_cursors')
})

function command<Row>(text: string): Promise<readonly Row[]> {
  return file.store.postgres.run<Row>({ text, parameters: [] })
}

/** The store has events of six markets that come first in ticker order and that the exchange refuses. */
async function takeAway(world: UpstreamWorld, like: string, events: readonly string[]): Promise<void> {
  const columns = await command<{ readonly name: string }>(
    `SELECT quote_ident(column_name) AS name FROM information_schema.columns
      WHERE table_name = 'markets' AND column_name NOT IN ('ticker', 'event_ticker')`,
  )
  const others = columns.map(({ name }) => name).join(', ')
  for (const event of events) {
    await command(`INSERT INTO markets (ticker, event_ticker, ${others})
      SELECT '${event}-T' || strike, '${event}', ${others}
      FROM markets, generate_series(1, ${STRIKES}) AS strike WHERE ticker = '${like}'`)
  }
  const isGone = ({ url }: AskedRequest): boolean =>
    url.includes('/candlesticks?') && events.some((event) => url.includes(event))
  world.fault = (request) => (isGone(request) ? send(404, '{"error":"not found"}') : undefined)
}

async function candlesAfter(
  t: TestContext,
  world: UpstreamWorld,
  how: keyof typeof LIKE,
  problems: string[],
): Promise<{ readonly outcome: RunOutcome; readonly rowCount: number }> {
  const source = worldSource(t, world, 'exchange-candles')
  const options = {
    ...worldContext(file.store.postgres),
    onEvent: (event: { readonly kind: string; readonly problems?: readonly string[] }) => {
      if (event.kind === 'rejected') problems.push(...(event.problems ?? []))
    },
  }
  const outcome =
    how === 'poll' ? await pollSource(source, options) : await backfillSource(source, SPAN, options)
  return { outcome, rowCount: (await command('SELECT FROM candles')).length }
}

async function catalogue(t: TestContext, world: UpstreamWorld): Promise<void> {
  const source = worldSource(t, world, 'exchange-catalogue')
  await pollSource(source, worldContext(file.store.postgres))
  await backfillSource(source, SPAN, worldContext(file.store.postgres))
}

for (const how of ['poll', 'backfill'] as const) {
  test(`${how}: an event that the exchange refuses does not affect the candles of others`, async (t) => {
    const world = await startWorld(t)
    await catalogue(t, world)
    const { rowCount: expected } = await candlesAfter(t, world, how, [])
    assert.ok(expected > 0)
    await command('TRUNCATE candles')
    await command("UPDATE markets SET candles_completed = '{}'")
    await command("DELETE FROM ingest_cursors WHERE source = 'exchange-candles'")
    await takeAway(world, LIKE[how], ['KXHIGHNY-26AUG00', 'KXHIGHNY-26AUG01'])
    const problems: string[] = []
    const { outcome, rowCount } = await candlesAfter(t, world, how, problems)
    assert.deepEqual([outcome.failure, rowCount], [null, expected])
    const named = new Set(problems.map((problem) => problem.slice(0, problem.indexOf(':'))))
    assert.equal(named.size, 2 * STRIKES, problems.join('\n'))
  })

  test(`${how}: three refused events before any successful response count as a fault of the exchange`, async (t) => {
    const world = await startWorld(t)
    await catalogue(t, world)
    await takeAway(world, LIKE[how], ['KXHIGHNY-26AUG00', 'KXHIGHNY-26AUG01', 'KXHIGHNY-26AUG02'])
    const { outcome } = await candlesAfter(t, world, how, [])
    assert.match(String(outcome.failure?.message), /status 404/)
  })
}
