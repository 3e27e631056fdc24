// The canonical text of an order-book query.

import type { LobQuery, RowPlace } from './lob-task.ts'

/** A place as the value of `after`. */
export function textOfPlace({ seconds, marketId }: RowPlace): string {
  return marketId === null ? tsText(seconds) : `${tsText(seconds)},${marketId}`
}

/** Nanoseconds in decimal digits. */
function tsText(seconds: number): string {
  return seconds === 0 ? '0' : `${seconds}000000000`
}

/** The parameters of a query in canonical form and order: equal queries have equal texts. */
export function canonicalParameters(query: LobQuery): string {
  const { source, market, series, dates, intervalS, levels, hour, format, columns, nulls, after, limit } =
    query
  const { onGap = null } = query
  return Object.entries({
    market,
    series,
    source,
    from: dates[0],
    to: dates.at(-1),
    interval: intervalS,
    levels,
    hour,
    format,
    columns: columns.join(','),
    nulls,
    on_gap: onGap,
    after: after && textOfPlace(after),
    limit,
  })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value)).replaceAll('%2C', ',')}`)
    .join('&')
}
