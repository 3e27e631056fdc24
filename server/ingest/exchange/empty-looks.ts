// Looks at the exchange's lists that found no event of a series, so that nothing shows whether its markets are complete. The series
// may have no events, or the lists may be empty by a fault. Such a window is complete, but is requested once more when the lists
// are requested anyway, and whenever the store learns of a market that those lists lacked.

import { instantValue, sql, whereAll } from '../../../shared/sql/statement.ts'
import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import {
  type CursorName,
  readCursorState,
  type TimeWindow,
  writeCursorState,
} from '../../storage/cursor-store.ts'
import type { StoreTransaction } from '../../storage/store-transaction.ts'
import type { SourceContext } from '../source.ts'
import type { SeenGaps } from './lasting-gaps.ts'
import { FINAL_STATUS } from './unsettled-markets.ts'

/** Windows remembered for a series; beyond that, neighbours are joined. */
const WINDOWS_MAX = 100
/** A market's last daily candle ends up to a day after its close. */
export const LAST_CANDLE_MS = MS_PER_DAY

/** The state of a series. */
export interface CatalogueState {
  readonly empty: readonly EmptyLook[]
  readonly gaps: SeenGaps
}

/** A look at the lists that found no event. */
interface EmptyLook extends TimeWindow {
  /** When it was made; undefined if an earlier version stored it. */
  readonly atMs?: number
  /** Settled markets in the store that the lists should have had; null: the store had no market of the series. */
  readonly known?: number | null
  /** A second look found no event either. */
  readonly isConfirmed?: boolean
}

/** `isAsking`: the lists are requested anyway. */
export async function doubtfulLooks(
  context: SourceContext,
  cursor: CursorName,
  window: TimeWindow,
  isAsking: boolean,
): Promise<readonly TimeWindow[]> {
  const found: TimeWindow[] = []
  const { empty = [] } = await readCursorState<CatalogueState>(context.postgres, cursor)
  for (const look of empty) {
    const part = { fromMs: Math.max(look.fromMs, window.fromMs), toMs: Math.min(look.toMs, window.toMs) }
    if (part.fromMs >= part.toMs) continue
    const isNew = isAsking && look.isConfirmed !== true
    if (isNew || (await countKnown(context, cursor.scope, look)) > (look.known ?? 0)) found.push(part)
  }
  return found
}

interface Look {
  /** No event was listed. */
  readonly isEmpty: boolean
  /** The part of its window that is complete, if any. */
  readonly completed: TimeWindow | null
  /** The gaps of the lists to remember. */
  readonly gaps: SeenGaps
}

/** Returns a function that stores the look once its markets are written; undefined if nothing changes. */
export function rememberLook(
  context: SourceContext,
  cursor: CursorName,
  { empty: looks = [], gaps: before = {} }: Partial<CatalogueState>,
  { isEmpty, completed, gaps }: Look,
): ((transaction: StoreTransaction) => Promise<void>) | undefined {
  const tellsOfLooks = completed !== null && (isEmpty || looks.length > 0)
  const tellsOfGaps = [gaps, before].some((seen) => Object.keys(seen).length > 0)
  if (!tellsOfLooks && !tellsOfGaps) return undefined
  return async (transaction) => {
    const within = { clock: context.clock, postgres: { run: transaction.run.bind(transaction) } }
    const empty =
      completed === null ? looks : await looksAfter(within, cursor.scope, looks, { isEmpty, completed })
    await writeCursorState(transaction, cursor, { empty, gaps })
  }
}

/** The looks to remember after one whose markets are written. */
async function looksAfter(
  context: Counting,
  seriesTicker: string,
  looks: readonly EmptyLook[],
  { isEmpty, completed }: { readonly isEmpty: boolean; readonly completed: TimeWindow },
): Promise<readonly EmptyLook[]> {
  // Lists with events contain all markets that close after their start, also those of later dates.
  const answered = isEmpty ? completed : { ...completed, toMs: Number.MAX_SAFE_INTEGER }
  const rest = looks.flatMap((look) => without(look, answered))
  if (!isEmpty) return joined(rest)
  const isConfirmed = looks.some(({ fromMs, toMs }) => fromMs < completed.toMs && toMs > completed.fromMs)
  const look = { ...completed, atMs: context.clock.nowMs(), isConfirmed }
  const count = (known: number | null): Promise<number> =>
    countKnown(context, seriesTicker, { ...look, known })
  const known = (await count(null)) === 0 ? null : await count(0)
  return joined([...rest, { ...look, known }])
}

/** Where statements run: a transaction sees its own writes. */
interface Counting extends Pick<SourceContext, 'clock'> {
  readonly postgres: Pick<StoreTransaction, 'run'>
}

/**
 * Markets in the store that contradict a look. If the store had no market of the series then, any market does. Otherwise settled
 * markets do that had opened when the look was made and close after the start of its lists.
 */
async function countKnown(
  { postgres, clock }: Counting,
  seriesTicker: string,
  { fromMs, atMs, known = null }: EmptyLook,
): Promise<number> {
  const conditions = whereAll(
    sql`series_ticker = ${seriesTicker}`,
    known !== null &&
      sql`status = ${FINAL_STATUS} AND close_time >= ${instantValue(fromMs - LAST_CANDLE_MS)}
        AND open_time < ${instantValue(atMs ?? clock.nowMs())}`,
  )
  const rows = await postgres.run<{ readonly count: number }>(
    sql`SELECT count(*)::int4 AS count FROM markets ${conditions}`,
  )
  return rows[0]?.count ?? 0
}

function without(look: EmptyLook, { fromMs, toMs }: TimeWindow): readonly EmptyLook[] {
  return [
    { ...look, toMs: Math.min(look.toMs, fromMs) },
    { ...look, fromMs: Math.max(look.fromMs, toMs) },
  ].filter((part) => part.fromMs < part.toMs)
}

function joined(looks: readonly EmptyLook[]): readonly EmptyLook[] {
  const found: EmptyLook[] = []
  for (const look of looks.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = found.at(-1)
    if (last === undefined || found.length < WINDOWS_MAX) found.push(look)
    // The joined window is requested again if either one would be.
    else found.splice(-1, 1, { fromMs: last.fromMs, toMs: Math.max(last.toMs, look.toMs) })
  }
  return found
}
