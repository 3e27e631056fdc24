// Which station a series belongs to: the station table first, then the exchange's catalogue, which is asked again when
// the server says that it has changed.

import type { RememberedVersions } from '../../shared/record-task.ts'
import { SERIES_STATIONS } from '../../shared/sql/name-queries.ts'
import type { RunStatement } from '../../shared/sql/statement.ts'
import { STATIONS } from '../../shared/stations.ts'

/** How long a thread relies on what the catalogue said of series and stations, while its version is not known. */
const CATALOGUE_CACHE_MS = 30_000

/** Who asks: a way to the store, and the version of the series that is known at least. */
interface CatalogueReader {
  readonly run: RunStatement
  readonly versions: Pick<RememberedVersions, 'series'>
}

const TABLE: ReadonlyMap<string, string> = new Map(
  STATIONS.flatMap(({ code, highSeries, lowSeries }) => [
    [highSeries, code],
    [lowSeries, code],
  ]),
)

export class SeriesStations {
  #catalogue: ReadonlyMap<string, string> = new Map()
  #readAtMs = -Infinity
  /** The version that a request knew of before the catalogue was read. */
  #readVersion: string | null = null

  /** The series of a station, sorted. */
  async seriesOf(station: string, request: CatalogueReader): Promise<string[]> {
    await this.refresh(request)
    const all = new Map([...this.#catalogue, ...TABLE])
    return [...all.keys()].filter((series) => all.get(series) === station).toSorted()
  }

  /** The station of each of some series that has a known one. */
  async stationsOf(series: Iterable<string>, request: CatalogueReader): Promise<ReadonlyMap<string, string>> {
    const names = [...series]
    if (names.some((name) => !TABLE.has(name))) await this.refresh(request)
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

  /** Asks the catalogue, unless it is as it was, or, while its version is not known, unless that was done a moment ago. */
  async refresh({ run, versions: { series: version } }: CatalogueReader): Promise<void> {
    const isFresh =
      version === null
        ? performance.now() - this.#readAtMs < CATALOGUE_CACHE_MS
        : version === this.#readVersion
    if (isFresh) return
    const startMs = performance.now()
    const rows = await run<{ readonly ticker: string; readonly station_code: string }>(SERIES_STATIONS)
    // Of two readings under way the one that was begun later counts, whichever ends first.
    if (startMs < this.#readAtMs) return
    this.#catalogue = new Map(rows.map(({ ticker, station_code: station }) => [ticker, station]))
    this.#readAtMs = startMs
    this.#readVersion = version
  }
}
