// Which station a series belongs to: by the station table, else by the exchange's catalogue, which is read again when the server
// reports a change.

import type { RememberedVersions } from '../../shared/record-task.ts'
import { SERIES_STATIONS } from '../../shared/sql/name-queries.ts'
import type { RunStatement } from '../../shared/sql/statement.ts'
import { STATIONS } from '../../shared/stations.ts'

/** How long a thread uses its copy of the catalogue while the catalogue's version is not known. */
const CATALOGUE_CACHE_MS = 30_000

/** The parts of a request that reading the catalogue needs: the store, and the last known version of the series. */
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
  /** The version that a request knew before the catalogue was read. */
  #readVersion: string | null = null

  /** The series of a station, sorted. */
  async seriesOf(station: string, request: CatalogueReader): Promise<string[]> {
    await this.refresh(request)
    const all = new Map([...this.#catalogue, ...TABLE])
    return [...all.keys()].filter((series) => all.get(series) === station).toSorted()
  }

  /** The stations of the given series, as far as they are known. */
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

  /** The station of a series, without a query. */
  known(series: string): string | undefined {
    return TABLE.get(series) ?? this.#catalogue.get(series)
  }

  /** Whether the station table has the series. */
  static isInTable(series: string): boolean {
    return TABLE.has(series)
  }

  /** Reads the catalogue, unless its version is unchanged or, with unknown version, the copy is less than 30 s old. */
  async refresh({ run, versions: { series: version } }: CatalogueReader): Promise<void> {
    const isFresh =
      version === null
        ? performance.now() - this.#readAtMs < CATALOGUE_CACHE_MS
        : version === this.#readVersion
    if (isFresh) return
    const startMs = performance.now()
    const rows = await run<{ readonly ticker: string; readonly station_code: string }>(SERIES_STATIONS)
    // Of two concurrent reads, the one that began later is kept.
    if (startMs < this.#readAtMs) return
    this.#catalogue = new Map(rows.map(({ ticker, station_code: station }) => [ticker, station]))
    this.#readAtMs = startMs
    this.#readVersion = version
  }
}
