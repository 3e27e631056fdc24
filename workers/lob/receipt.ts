// What the plan of an answer says of its receipt; the server measures the body (server/lob/lob-parts.ts).

import type { ReceiptPlan } from '../../shared/lob-receipt.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import { SECONDS_PER_HOUR } from '../../shared/utc-date.ts'
import { countRows, type LobPlan, spanOf } from './plan.ts'
import type { Section } from './sections.ts'

/** `blocks` are empty where the body is not cut. */
export function planReceipt(
  query: LobQuery,
  plan: LobPlan,
  blocks: readonly Section[],
): Omit<ReceiptPlan, 'markets' | 'knownS' | 'gapS'> {
  const span = spanOf(query, plan)
  return {
    rows: plan.rows,
    firstSeconds: span === undefined ? null : span.firstMs / 1000,
    lastSeconds: span === undefined ? null : span.lastMs / 1000,
    blocks: blocks.map(({ datePlan, firstTick, lastTick }) => ({
      seconds: startOf(datePlan.startSeconds + firstTick * query.intervalS),
      rows: countRows(datePlan.markets, lastTick + 1) - countRows(datePlan.markets, firstTick),
    })),
  }
}

function startOf(seconds: number): number {
  return Math.floor(seconds / SECONDS_PER_HOUR) * SECONDS_PER_HOUR
}
