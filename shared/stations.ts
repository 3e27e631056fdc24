// The weather stations that settle the exchange's daily temperature markets. To add a station, add a line to the table. Sources:
// the markets' rules, the NWS climate product list and the NCEI station list.

export interface Station {
  /** Three letters, as the API names it. */
  readonly code: string
  readonly icao: string
  readonly name: string
  /**
   * Words in the headline of its climate report, in capitals. They are checked, because reports of several stations, and of other
   * stations, have been issued under one product identifier.
   */
  readonly climateName: string
  /** Product identifier of its daily climate report. */
  readonly climatePil: string
  /** NWS office that issues the climate report. */
  readonly wfo: string
  readonly timeZone: string
  /** Local standard time minus UTC, in hours, all year: the climate day has no daylight saving time. */
  readonly standardOffsetHours: number
  /** NCEI's station identifier (GHCN-daily and GHCN-hourly). Its last five digits are the WBAN number. */
  readonly ghcnId: string
  readonly highSeries: string
  readonly lowSeries: string
}

/**
 * One line per station: ICAO, name, name in the climate report, office, zone, standard offset, GHCN id, high, low series.
 */
// oxfmt-ignore
const ROWS = [
  ['KNYC', 'New York City, Central Park', 'CENTRAL PARK', 'OKX', 'America/New_York', -5, 'USW00094728', 'KXHIGHNY', 'KXLOWTNYC'],
  ['KMDW', 'Chicago Midway', 'MIDWAY', 'LOT', 'America/Chicago', -6, 'USW00014819', 'KXHIGHCHI', 'KXLOWTCHI'],
  ['KMIA', 'Miami', 'MIAMI', 'MFL', 'America/New_York', -5, 'USW00012839', 'KXHIGHMIA', 'KXLOWTMIA'],
  ['KAUS', 'Austin-Bergstrom', 'BERGSTROM', 'EWX', 'America/Chicago', -6, 'USW00013904', 'KXHIGHAUS', 'KXLOWTAUS'],
  ['KDEN', 'Denver', 'DENVER', 'BOU', 'America/Denver', -7, 'USW00003017', 'KXHIGHDEN', 'KXLOWTDEN'],
  ['KPHL', 'Philadelphia', 'PHILADELPHIA', 'PHI', 'America/New_York', -5, 'USW00013739', 'KXHIGHPHIL', 'KXLOWTPHIL'],
  ['KLAX', 'Los Angeles', 'LOS ANGELES', 'LOX', 'America/Los_Angeles', -8, 'USW00023174', 'KXHIGHLAX', 'KXLOWTLAX'],
  ['KATL', 'Atlanta', 'ATLANTA', 'FFC', 'America/New_York', -5, 'USW00013874', 'KXHIGHTATL', 'KXLOWTATL'],
  ['KBOS', 'Boston', 'BOSTON', 'BOX', 'America/New_York', -5, 'USW00014739', 'KXHIGHTBOS', 'KXLOWTBOS'],
  ['KDFW', 'Dallas-Fort Worth', 'DALLAS', 'FWD', 'America/Chicago', -6, 'USW00003927', 'KXHIGHTDAL', 'KXLOWTDAL'],
  ['KDCA', 'Washington National', 'WASHINGTON', 'LWX', 'America/New_York', -5, 'USW00013743', 'KXHIGHTDC', 'KXLOWTDC'],
  ['KHOU', 'Houston Hobby', 'HOBBY', 'HGX', 'America/Chicago', -6, 'USW00012918', 'KXHIGHTHOU', 'KXLOWTHOU'],
  ['KLAS', 'Las Vegas', 'LAS VEGAS', 'VEF', 'America/Los_Angeles', -8, 'USW00023169', 'KXHIGHTLV', 'KXLOWTLV'],
  ['KMSP', 'Minneapolis', 'TWIN CITIES', 'MPX', 'America/Chicago', -6, 'USW00014922', 'KXHIGHTMIN', 'KXLOWTMIN'],
  ['KMSY', 'New Orleans', 'NEW ORLEANS', 'LIX', 'America/Chicago', -6, 'USW00012916', 'KXHIGHTNOLA', 'KXLOWTNOLA'],
  ['KOKC', 'Oklahoma City', 'OKLAHOMA CITY', 'OUN', 'America/Chicago', -6, 'USW00013967', 'KXHIGHTOKC', 'KXLOWTOKC'],
  ['KPHX', 'Phoenix', 'PHOENIX', 'PSR', 'America/Phoenix', -7, 'USW00023183', 'KXHIGHTPHX', 'KXLOWTPHX'],
  ['KSAT', 'San Antonio', 'SAN ANTONIO', 'EWX', 'America/Chicago', -6, 'USW00012921', 'KXHIGHTSATX', 'KXLOWTSATX'],
  ['KSEA', 'Seattle-Tacoma', 'TACOMA', 'SEW', 'America/Los_Angeles', -8, 'USW00024233', 'KXHIGHTSEA', 'KXLOWTSEA'],
  ['KSFO', 'San Francisco', 'SAN FRANCISCO', 'MTR', 'America/Los_Angeles', -8, 'USW00023234', 'KXHIGHTSFO', 'KXLOWTSFO'],
] as const

export const STATIONS: readonly Station[] = ROWS.map(
  ([icao, name, climateName, wfo, timeZone, standardOffsetHours, ghcnId, highSeries, lowSeries]) => ({
    code: icao.slice(1),
    icao,
    name,
    climateName,
    climatePil: `CLI${icao.slice(1)}`,
    wfo,
    timeZone,
    standardOffsetHours,
    ghcnId,
    highSeries,
    lowSeries,
  }),
)

const BY_NAME: ReadonlyMap<string, Station> = new Map(
  STATIONS.flatMap((station) => [
    [station.code, station],
    [station.icao, station],
  ]),
)

/** The station of a three-letter code or ICAO identifier, in upper or lower case, or `undefined`. */
export function findStation(name: string): Station | undefined {
  return BY_NAME.get(name.toUpperCase())
}
