// Which station a series belongs to: the station table first, then the exchange's catalogue, which is asked now and
// then. A series is taken to stay with its station.

import { CATALOGUE_CACHE_MS } from '../../shared/limits.ts'
import { SERIES_STATIONS } from '../../shared/sql/name-queries.ts'
import type { RunStatement } from '../../shared/sql/statement.ts'
import { STATIONS } from '../../shared/stations.ts'

const TABLE: ReadonlyMap<string, string> = new Map(
  STATIONS.flatMap(({ code, highSeries, lowSeries }) => [
    [highSeries, code],
    [lowSeries, code],
  ]),
)

export class SeriesStations {
  #catalogue: ReadonlyMap<string, string> = new Map()
  #readAtMs = -Infinity

  /** The series of a station, sorted. */
  async seriesOf(station: string, run: RunStatement): Promise<string[]> {
    await this.refresh(run)
    const all = new Map([...this.#catalogue, ...TABLE])
    return [...all.keys()]
      .filter((series) => all.get(series) === station)
      .toSorted((a, b) => (a < b ? -1 : 1))
  }

  /** The station of each of some series that has a known one. */
  async stationsOf(series: Iterable<string>, run: RunStatement): Promise<ReadonlyMap<string, string>> {
    const names = [...series]
    if (names.some((name) => !TABLE.has(name))) await this.refresh(run)
    const stations = new Map<string, string>()
    for (const name of names) {
      const station = TABLE.get(name) ?? this.#catalogue.get(name)
      if (station !== undefined) stations.set(name, station)
    }
    return stations
  }

  /** The station of a series without asking the store. */
  known(series: string): string | undefined {
    return TABLE.get(series) ?? this.#catalogue.get(series)
  }

  /** Whether the table or the catalogue has the series, as far as stations are concerned. */
  static isInTable(series: string): boolean {
    return TABLE.has(series)
  }

  /** Asks the catalogue, unless that was done a moment ago. */
  async refresh(run: RunStatement): Promise<void> {
    if (performance.now() - this.#readAtMs < CATALOGUE_CACHE_MS) return
    const rows = await run<{ readonly ticker: string; readonly station_code: string }>(SERIES_STATIONS)
    this.#catalogue = new Map(rows.map(({ ticker, station_code: station }) => [ticker, station]))
    this.#readAtMs = performance.now()
  }
}
