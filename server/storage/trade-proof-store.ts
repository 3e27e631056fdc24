// How many trades are proven complete: for each series and date, the minutes with a candle, and those of them whose trades match
// the candle. The figures are in the cursor state of the trades source.

import { sql } from '../../shared/sql/statement.ts'
import { withinTime } from '../../shared/within-time.ts'
import type { CursorName } from './cursor-store.ts'
import type { Postgres } from './postgres.ts'

/** Dates kept for one series, the newest ones. */
const DATES_MAX = 2_000

export interface TradeProof {
  /** Compared minutes of markets, those that have a candle. */
  readonly minutes: number
  readonly proven: number
}

// Of series and dates: minutes, and proven ones.
const TOTAL = sql`
  SELECT sum((figures ->> 0)::bigint)::float8 AS minutes, sum((figures ->> 1)::bigint)::float8 AS proven
  FROM ingest_cursors, jsonb_each(state) AS dates (date, figures) WHERE source LIKE '%-trades' AND jsonb_typeof(figures) = 'array'
  HAVING count(*) > 0`

const WAIT_MS = 1_000

export type ReadTradeProof = () => Promise<TradeProof | undefined>

/** The totals over all series and dates. Resolves to undefined if nothing was compared, and while the store is unavailable. */
export function tradeProofOf(postgres: Postgres): ReadTradeProof {
  return async () => {
    const asked = postgres.run<TradeProof>(TOTAL).catch(() => [])
    return (await withinTime(asked, WAIT_MS))?.[0]
  }
}

/** Replaces the figures of some dates: minutes, and proven minutes. One statement, because others may note figures too. */
export async function noteTradeProof(
  postgres: Postgres,
  { source, scope }: CursorName,
  proof: ReadonlyMap<string, readonly [number, number]>,
): Promise<void> {
  const figures = JSON.stringify(Object.fromEntries(proof))
  await postgres.transaction((transaction) =>
    transaction.run(sql`
      INSERT INTO ingest_cursors AS known (source, scope, state) VALUES (${source}, ${scope}, ${figures}::jsonb)
      ON CONFLICT (source, scope) DO UPDATE SET state = (SELECT jsonb_object_agg(key, value) FROM (
        SELECT key, value FROM jsonb_each(known.state || excluded.state) ORDER BY key DESC LIMIT ${DATES_MAX}) AS newest)`),
  )
}
