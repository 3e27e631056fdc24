// Looks at the exchange's lists in which a series had nothing at all, while nothing was known of it. So is a series that has
// no events; so are lists of which all are empty by a fault. Such a window is complete as long as nothing is known; once
// the series turns out to have markets it is looked at again, one time.

import { StatementBuilder } from '../../../shared/sql/statement.ts'
import { readCursorState, type TimeWindow, writeCursorState } from '../../storage/cursor-store.ts'
import type { StoreTransaction } from '../../storage/store-transaction.ts'
import type { SourceContext } from '../source.ts'

/** Windows remembered of a series; beyond them the neighbours are joined to one. */
const WINDOWS_MAX = 100

interface Scope {
  readonly source: string
  readonly scope: string
}

/**
 * Windows that were complete because nothing was known of the series, of which something is known by now, or may be in a
 * moment: `isAsking` says that the lists are asked for anyway.
 */
export async function doubtfulLooks(
  context: SourceContext,
  cursor: Scope,
  { fromMs, toMs }: TimeWindow,
  isAsking: boolean,
): Promise<readonly TimeWindow[]> {
  const looks = await emptyLooks(context, cursor)
  const within = looks
    .map((look) => ({ fromMs: Math.max(look.fromMs, fromMs), toMs: Math.min(look.toMs, toMs) }))
    .filter((look) => look.fromMs < look.toMs)
  return within.length > 0 && (isAsking || (await isKnown(context, cursor.scope))) ? within : []
}

/**
 * What a look leaves to be remembered: undefined where nothing changes. `isEmpty`: it found nothing at all; `completed` is the
 * part of its window that is complete.
 */
export async function rememberLook(
  context: SourceContext,
  cursor: Scope,
  { isEmpty, completed }: { readonly isEmpty: boolean; readonly completed: TimeWindow },
): Promise<((transaction: StoreTransaction) => Promise<void>) | undefined> {
  const looks = await emptyLooks(context, cursor)
  const isDoubtful = isEmpty && !(await isKnown(context, cursor.scope))
  if (!isDoubtful && looks.length === 0) return undefined
  const rest = looks.flatMap((look) => without(look, completed))
  const empty = joined(isDoubtful ? [...rest, completed] : rest)
  return (transaction) => writeCursorState(transaction, cursor, { empty })
}

async function emptyLooks({ postgres }: SourceContext, cursor: Scope): Promise<readonly TimeWindow[]> {
  const state = await readCursorState(postgres, cursor)
  const { empty } = typeof state === 'object' && state !== null ? (state as { empty?: unknown }) : {}
  return Array.isArray(empty) ? (empty as readonly TimeWindow[]) : []
}

async function isKnown({ postgres, signal }: SourceContext, seriesTicker: string): Promise<boolean> {
  const statement = new StatementBuilder()
  const series = statement.add(seriesTicker, 'text')
  const rows = await postgres.run(
    statement.build(`SELECT ticker FROM markets WHERE series_ticker = ${series} LIMIT 1`),
    { signal },
  )
  return rows.length > 0
}

function without(look: TimeWindow, { fromMs, toMs }: TimeWindow): readonly TimeWindow[] {
  return [
    { fromMs: look.fromMs, toMs: Math.min(look.toMs, fromMs) },
    { fromMs: Math.max(look.fromMs, toMs), toMs: look.toMs },
  ].filter((part) => part.fromMs < part.toMs)
}

function joined(windows: readonly TimeWindow[]): readonly TimeWindow[] {
  const found: TimeWindow[] = []
  for (const window of windows.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = found.at(-1)
    const isTouching = last !== undefined && window.fromMs <= last.toMs
    if (last === undefined || (!isTouching && found.length < WINDOWS_MAX)) found.push(window)
    else found.splice(-1, 1, { fromMs: last.fromMs, toMs: Math.max(last.toMs, window.toMs) })
  }
  return found
}
