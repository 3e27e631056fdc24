// The choices of the page: series, dates with recordings, events and their markets. The lake states what was recorded, the
// catalogue has the names. If the server has no catalogue, the markets come from the date's order books.

import { ApiError, type Market, type Series } from '../clients/typescript/bookcast.ts'
import { STATIONS } from '../shared/stations.ts'
import { addDays, utcDateStartMs } from '../shared/utc-date.ts'
import { monthAfter, type RecordedSeries, worstConditions } from './recorded-days.ts'
import type { SeriesFacts } from './series-facts.ts'
import type { Session } from './session.ts'
import { asLobSource, eventOf, isCatalogued } from './sources.ts'
import type { MarketName } from './strikes.ts'

/** An event is open from the date before its day until the date after it. */
const OPEN_DAYS = 3
const MARKETS_KEPT = 50

export interface ListedMarket {
  readonly market: string
  /** Empty if the identifier does not contain it. */
  readonly event: string
  /** `yes` or `no` once it is settled. */
  readonly result: string
  /** The exchange's name for a market whose identifier is not readable. */
  readonly name: MarketName | null
  /** Whether the catalogue lists the market; otherwise it comes from the books of the date. */
  readonly isListed: boolean
}

/** An event's strikes in the catalogue; none without a catalogue. Only the catalogue shows whether a strike is missing. */
export function listedStrikes(markets: readonly ListedMarket[], event: string): string[] {
  return markets.filter((each) => each.isListed && each.event === event).map(({ market }) => market)
}

export class Catalogue {
  readonly recorded: readonly RecordedSeries[]
  /** Whether the server has a catalogue with the names of the series, and not only the lake's series. */
  readonly isNamed: boolean
  readonly #series: readonly Series[]
  readonly #session: Session
  readonly #markets = new Map<string, Promise<readonly ListedMarket[]>>()

  private constructor(
    session: Session,
    recorded: readonly RecordedSeries[],
    series: readonly Series[] | null,
  ) {
    this.#session = session
    this.recorded = recorded
    this.isNamed = series !== null
    this.#series = series ?? []
  }

  static async load(session: Session): Promise<Catalogue> {
    const series = session.impatientClient
      .series()
      .toArray()
      // Without a store, or while it is unavailable, the server has no catalogue, but still serves order books.
      .catch((error: unknown): null => {
        if (error instanceof ApiError && ['unknown_path', 'store_unavailable'].includes(error.code))
          return null
        throw error
      })
    const [recorded, listed] = await Promise.all([session.recordings(), series])
    return new Catalogue(session, recorded, listed)
  }

  titleOf(ticker: string): string {
    return this.#series.find((series) => series.ticker === ticker)?.title ?? ''
  }

  spansOf(source: string, series: string): RecordedSeries['spans'] {
    return this.recorded.find((each) => each.source === source && each.series === series)?.spans ?? []
  }

  /** The dates of a month whose books are not completely known, each with its condition: degraded or pending. */
  async conditionsOf(source: string, series: string, month: string): Promise<ReadonlyMap<string, string>> {
    const columns = ['date', 'condition'] as const
    const range = { from: `${month}-01`, to: addDays(`${monthAfter(month, 1)}-01`, -1) }
    const asked = { source: asLobSource(source), series, ...range, columns }
    return worstConditions(await this.#session.impatientClient.coverage(asked).toArray())
  }

  /** Series of a source, those with recordings first. */
  seriesOf(source: string): string[] {
    const recorded = this.recorded.filter((each) => each.source === source).map(({ series }) => series)
    const others = isCatalogued(source) ? this.#series.map(({ ticker }) => ticker) : []
    return [...recorded, ...others.filter((ticker) => !recorded.includes(ticker))]
  }

  factsOf(ticker: string): SeriesFacts {
    const listed = this.#series.find((series) => series.ticker === ticker)
    const known = STATIONS.find(({ highSeries, lowSeries }) => highSeries === ticker || lowSeries === ticker)
    const code = listed?.station_code ?? known?.code ?? null
    const kind = known?.lowSeries === ticker || /low|min/i.test(listed?.measure_type ?? '') ? 'low' : 'high'
    const station = STATIONS.find((each) => each.code === code)
    return { station: code, kind, standardOffsetHours: station?.standardOffsetHours ?? null }
  }

  /** The markets that may have books on a date; none if the series is empty or the date is invalid. */
  marketsOn(source: string, series: string, date: string): Promise<readonly ListedMarket[]> {
    const key = JSON.stringify([source, series, date])
    const kept = this.#markets.get(key)
    if (kept !== undefined) return kept
    if (this.#markets.size >= MARKETS_KEPT) this.#markets.clear()
    const listed = this.#listMarkets(source, series, date).catch(() => {
      // The view's own request reports the error. Forget the failure, so that the next call retries.
      this.#markets.delete(key)
      return []
    })
    this.#markets.set(key, listed)
    return listed
  }

  async #listMarkets(source: string, series: string, date: string): Promise<readonly ListedMarket[]> {
    if (series === '' || utcDateStartMs(date) === undefined) return []
    if (this.#series.some(({ ticker }) => ticker === series)) {
      const range = { from: `${date}T00:00:01Z`, to: addDays(date, OPEN_DAYS) }
      const markets = await this.#session.client.markets({ series, ...range }).toArray()
      if (markets.length > 0) return markets.map(listedMarket)
    }
    const columns = ['market_id'] as const
    const parameters = { source: asLobSource(source), series, date, interval: 3600, levels: 1, columns }
    const [rows, names] = await Promise.all([
      this.#session.client.lob(parameters).toArray(),
      // Without names, the page shows the ids.
      isCatalogued(source) ? [] : this.#session.marketNames(source, series, date).catch(() => []),
    ])
    const markets = [...new Set(rows.map(({ market_id: market }) => market))]
    return markets.map((market) => ({
      market,
      event: eventOf(source, market),
      result: '',
      name: names.find(({ market_id: named }) => named === market) ?? null,
      isListed: false,
    }))
  }
}

function listedMarket({ ticker, event_ticker: event, result }: Market): ListedMarket {
  return { market: ticker, event, result, name: null, isListed: true }
}
