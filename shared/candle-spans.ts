// The spans in the footer of a candles file: for each market and interval, the first and last candle and the number of rows. With
// them a request is planned without reading rows. The writer of a file counts them by the same statement that a reader uses for
// a file without them.

/** The footer's key: a JSON list of `[market, event, interval, first, last, rows]`, instants in ms since the epoch. */
export const CANDLE_SPANS_KEY = 'market_spans'

/** One market's candles of one interval in one file, within the file's part (LakePart). */
export interface MarketSpan {
  readonly market: string
  readonly event: string
  /** Minutes. */
  readonly interval: number
  /** The ends of the first and the last candle, in ms since the epoch. */
  readonly firstMs: number
  readonly lastMs: number
  readonly rows: number
}

/** A DuckDB statement for the spans of the rows in `source`: a table, optionally with a WHERE clause. */
export function candleSpansSql(source: string): string {
  return (
    'SELECT market_ticker, min(event_ticker), period_interval::DOUBLE, epoch_ms(min(end_period_ts))::DOUBLE,' +
    ` epoch_ms(max(end_period_ts))::DOUBLE, count(*)::DOUBLE FROM ${source} GROUP BY market_ticker, period_interval` +
    ' ORDER BY market_ticker, period_interval'
  )
}

/** The spans from the result of `candleSpansSql`. Equal texts share one string, since a thread caches the spans of a whole lake. */
export function candleSpansOf(rows: readonly (readonly unknown[])[]): MarketSpan[] {
  const texts = new Map<string, string>()
  const shared = (text: string): string => {
    const known = texts.get(text) ?? text
    texts.set(text, known)
    return known
  }
  return rows.map((row) => {
    const [market, event, interval, firstMs, lastMs, count] = row as [
      string,
      string,
      number,
      number,
      number,
      number,
    ]
    return { market: shared(market), event: shared(event), interval, firstMs, lastMs, rows: count }
  })
}

/** Parses the footer's text; undefined if it is not such a list. */
export function parseCandleSpans(text: string): MarketSpan[] | undefined {
  try {
    const rows: unknown = JSON.parse(text)
    return Array.isArray(rows) ? candleSpansOf(rows as unknown[][]) : undefined
  } catch {
    return undefined
  }
}
