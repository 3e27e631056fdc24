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

/** Whether the station table has the series. */
export function isInTable(series: string): boolean {
  return TABLE.has(series)
}

export class SeriesStations {
  /** The station of each series, as far as it is known without a query. */
  known = TABLE
  #readAtMs = -Infinity
  /** The version that a request knew before the catalogue was read. */
  #readVersion: string | null = null

  /** The series of a station, sorted. */
  async seriesOf(station: string, request: CatalogueReader): Promise<string[]> {
    await this.refresh(request)
    return [...this.known.keys()].filter((series) => this.known.get(series) === station).toSorted()
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
    const catalogue = rows.map(({ ticker, station_code: station }) => [ticker, station] as const)
    this.known = new Map([...catalogue, ...TABLE])
    this.#readAtMs = startMs
    this.#readVersion = version
  }
}
