// Written by the build from the server's own declarations: npm run clients:write. A build whose declarations say
// something else fails.

export interface Snapshot {
  /** Nanoseconds since the Unix epoch. */
  readonly ts: number
  /** Market identifier. */
  readonly market_id: string
  /** Highest bid, cents; 0 without a bid, null with nulls=true. */
  readonly best_bid: number
  /** Lowest ask, cents; 0 without an ask, null with nulls=true. */
  readonly best_ask: number
  /** Ask minus bid; -1 when there is no two-sided book, null with nulls=true. */
  readonly spread: number
  /** (bid + ask) / 2; 0 when there is no two-sided book, null with nulls=true. */
  readonly mid: number
  /** Bid levels, high to low. */
  readonly bids: readonly { readonly price: number; readonly qty: number }[]
  /** Ask levels, low to high. */
  readonly asks: readonly { readonly price: number; readonly qty: number }[]
  /** Only if `columns` names it. gap: lost, and empty here; held: lost, with the levels of the last book (on_gap=hold); carried: from the file of an earlier date; crossed: best_bid is not below best_ask. */
  readonly book_state?: 'known' | 'gap' | 'held' | 'carried' | 'crossed' | undefined
}

export type LobColumn = keyof Snapshot

/** Order-book snapshots at a regular interval, rebuilt from recorded deltas. */
export interface LobParameters<Column extends LobColumn = LobColumn> {
  /** Market ticker; for polymarket <condition_id>:<token_id>, or <condition_id> for both its tokens. Give exactly one of market and series. */
  readonly market?: string | undefined
  /** Series ticker, or the ticker of one event of a series: all its markets. */
  readonly series?: string | undefined
  /** Data source. Default: kalshi. */
  readonly source?: 'kalshi' | 'polymarket' | undefined
  /** One UTC date. Give either date, or from and to. */
  readonly date?: string | Date | undefined
  /** First UTC date of a range. */
  readonly from?: string | Date | undefined
  /** Last UTC date of a range, of at most 31 days. */
  readonly to?: string | Date | undefined
  /** Seconds from one snapshot to the next. A whole number from 1 to 3600. Default: 60. */
  readonly interval?: number | undefined
  /** Book levels per side. A whole number from 1 to 50. Default: 10. */
  readonly levels?: number | undefined
  /** Only the snapshots of this UTC hour. A whole number from 0 to 23. */
  readonly hour?: number | undefined
  /** Of bytes and files; rows are read in the form that suits them. Default: json. */
  readonly format?: 'json' | 'csv' | 'parquet' | 'ndjson' | undefined
  /** Comma-separated columns, in the order wanted. Default: all but book_state. */
  readonly columns?: readonly Column[] | undefined
  /** true: best_bid and best_ask are null without a level on that side, spread and mid unless both sides have one. Default: false. */
  readonly nulls?: boolean | undefined
  /** Rows whose book is lost: empty gives them without levels, hold with those of the last book, skip leaves them out, fail refuses the request with 409. Default: empty. */
  readonly on_gap?: 'empty' | 'skip' | 'hold' | 'fail' | undefined
  /** Only the rows after <ts>, nanoseconds in 19 digits or 0, or after the row <ts>,<market_id>. Rows are ordered by ts, then market_id. */
  readonly after?: string | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** A version of the lake, as Lake-Version or /api/v1/versions name it: the server reads only its files, or refuses the request. */
  readonly version?: string | undefined
}

export interface LobReceipt {
  /** Version of the lake; null if a file of the answer is still open, or while the server has not read all of its files. */
  readonly version: string | null
  /** ETag of the answer without compression. */
  readonly etag: string
  /** The query of the request in canonical form. */
  readonly parameters: string
  /** Format of the answer. */
  readonly format: string
  /** Rows of the answer. */
  readonly rows: number
  /** Bytes of the body. */
  readonly bytes: number
  /** SHA-256, 64 hex digits. */
  readonly sha256: string
  /** ts of the first row; null without rows. */
  readonly first_ts: number | null
  /** ts of the last row; null without rows. */
  readonly last_ts: number | null
  /** Markets that have rows. */
  readonly markets: number
  /** Parts that make up the body: hours, or dates whose files have no keyframes. Empty for parquet. */
  readonly blocks: readonly {
    readonly hour: string
    readonly rows: number
    readonly bytes: number
    readonly sha256: string
  }[]
  /** Seconds in which the books are known, summed over all markets; with after or limit, only in the time of the rows. */
  readonly known_s: number
  /** Seconds in which the books are lost, summed likewise. */
  readonly gap_s: number
  /** Requested dates without a file. */
  readonly missing_dates: readonly string[]
}

export interface LobDate {
  /** UTC date. */
  readonly date: string
  /** open: today or the day before, to which recordings may be added; invalid: the footer of the file cannot be read. */
  readonly state: 'closed' | 'open' | 'invalid'
  /** Bytes of the file of the date, with all its markets. */
  readonly bytes: number
  /** Book events and keyframes in the file; for an event, those of its markets, or null if the footer does not list markets. */
  readonly rows: number | null
}

/** UTC dates of a series or event that have order books. */
export interface LobDatesParameters {
  /** Series ticker, or the ticker of one event of a series. */
  readonly series: string
  /** Data source. Default: kalshi. */
  readonly source?: 'kalshi' | 'polymarket' | undefined
  /** First UTC date. Default: the first date with data. */
  readonly from?: string | Date | undefined
  /** Last UTC date. Default: the last date with data. */
  readonly to?: string | Date | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Records to skip. A whole number from 0 to 1000000000. Default: 0. */
  readonly offset?: number | undefined
}

export interface BookAt {
  /** The instant asked for, ns since the Unix epoch. */
  readonly ts: number
  /** Market identifier. */
  readonly market_id: string
  /** Highest bid, cents; 0 without a bid. */
  readonly best_bid: number
  /** Lowest ask, cents; 0 without an ask. */
  readonly best_ask: number
  /** Ask minus bid; -1 when there is no two-sided book. */
  readonly spread: number
  /** (bid + ask) / 2; 0 when there is no two-sided book. */
  readonly mid: number
  /** Bid levels, high to low. */
  readonly bids: readonly { readonly price: number; readonly qty: number }[]
  /** Ask levels, low to high. */
  readonly asks: readonly { readonly price: number; readonly qty: number }[]
  readonly provenance: {
    /** The file below the root of the lake. */
    readonly file: string
    /** The row group of the last replayed row; null if no row of this file was replayed. */
    readonly row_group: number | null
    /** Time of the full book at which the replay begins; null if it comes from an earlier file. */
    readonly keyframe_ts: number | null
    /** Time of the last replayed event; null if no event followed the keyframe. */
    readonly last_event_ts: number | null
    /** When the recorder received this event; the time of the event if the recording has no receive time. */
    readonly last_received_ts: number | null
    /** The exchange's sequence number of this event; the recording's own number if the exchange has none. */
    readonly sequence: number | null
    /** Number of replayed rows, including those of the keyframe. */
    readonly events_applied: number
    /** Whole milliseconds from the last event to the instant, by the clock that `by` names. */
    readonly age_ms: number | null
    /** gap: unknown since a loss, and empty here. carried: from the file of an earlier date. closed: the book at the close. not_recorded: the last book before the recording ends. */
    readonly state: 'known' | 'gap' | 'carried' | 'crossed' | 'closed' | 'not_recorded'
  }
}

/** Order books at one instant, exact to the nanosecond, with the provenance of each. */
export interface LobAtParameters {
  /** One market, named as in /lob. Give exactly one of market, series and event. */
  readonly market?: string | undefined
  /** Series ticker: all its markets. */
  readonly series?: string | undefined
  /** Ticker of one event of a series: all its markets. */
  readonly event?: string | undefined
  /** Data source. Default: kalshi. */
  readonly source?: 'kalshi' | 'polymarket' | undefined
  /** The instant: RFC 3339 with a zone and up to nine places of a second (a + in it is written %2B), or nanoseconds since the Unix epoch in 19 digits. */
  readonly ts: string
  /** Book levels per side. A whole number from 1 to 50. Default: 10. */
  readonly levels?: number | undefined
  /** exchange: the events that happened by the instant. received: those that the recorder had received by then; the books of midnight count as received. Default: exchange. */
  readonly by?: 'exchange' | 'received' | undefined
  /** A version of the lake, as Lake-Version or /api/v1/versions name it: the server reads only its files, or refuses the request. */
  readonly version?: string | undefined
}

export interface LobEstimate {
  readonly format: 'json' | 'csv' | 'parquet' | 'ndjson'
  /** Rows of the answer. */
  readonly rows: number
  /** Bytes of the answer, estimated. */
  readonly bytes: number
  /** Files below the root of the lake. */
  readonly files: readonly string[]
  /** Row groups of these files that may have to be decoded. */
  readonly row_groups: number
  /** Dates without a file. */
  readonly missing_dates: readonly string[]
  /** Whether the rows are within the limit of the format. */
  readonly allowed: boolean
  /** The limit of the format. */
  readonly rows_max: number
  /** The error of /lob for this request; null if it is allowed. */
  readonly detail: string | null
  /** Changes that each make the request allowed on their own; null for a change that cannot. */
  readonly cut: {
    readonly formats: readonly string[]
    /** Smallest sufficient interval that divides a day, in seconds. */
    readonly interval: number | null
    /** Number of dates that one request may have. */
    readonly days: number | null
  }
}

export interface Candle {
  /** Market ticker. */
  readonly market_ticker: string
  /** Candle length, minutes. */
  readonly period_interval: number
  /** End of the candle. */
  readonly end_period_ts: string
  /** Open price, cents. */
  readonly open: number
  /** High price, cents. */
  readonly high: number
  /** Low price, cents. */
  readonly low: number
  /** Close price, cents. */
  readonly close: number
  /** Traded volume, contracts. */
  readonly volume: number
  /** Open interest, contracts. */
  readonly open_interest: number
  /** True for a forward fill, false for real trades. */
  readonly filled: boolean
}

export type CandleColumn = keyof Candle

/** Candles of temperature markets. */
export interface CandlesParameters<Column extends CandleColumn = CandleColumn> {
  /** Market ticker. */
  readonly market?: string | undefined
  /** Event ticker. */
  readonly event?: string | undefined
  /** Station code, three letters or ICAO. */
  readonly station?: string | undefined
  /** Series ticker, or the ticker of one event of a series. A candle must match all given selectors. */
  readonly series?: string | undefined
  /** Start: candles whose period ends after it. RFC 3339 or a UTC date. Default: 24 hours ago. */
  readonly from?: string | Date | undefined
  /** End: candles whose period ends at or before it. RFC 3339, or a UTC date, which means its end. Default: now. */
  readonly to?: string | Date | undefined
  /** Length of a candle in minutes. One of 1, 5, 15, 30, 60, 1440. Default: 1. */
  readonly interval?: 1 | 5 | 15 | 30 | 60 | 1440 | undefined
  /** Fill gaps between traded candles. Only for json; the other formats ignore it. Default: true. */
  readonly fill?: boolean | undefined
  /** Aggregate to this many minutes, a multiple of interval. Buckets are aligned to local midnight of tz; a candle is returned if its own end lies in the range. A whole number from 1 to 1440. */
  readonly aggregate?: number | undefined
  /** Zone of the time labels: UTC, station (each row's station) or an IANA name. Filters stay UTC. Default: UTC. */
  readonly tz?: string | undefined
  /** Of bytes and files; rows are read in the form that suits them. Default: json. */
  readonly format?: 'json' | 'csv' | 'parquet' | 'ndjson' | undefined
  /** Comma-separated columns, in the order wanted. Default: all. */
  readonly columns?: readonly Column[] | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Rows to skip. If limit cuts an answer short, its Link header has the address of the next page. A whole number from 0 to 10000000. Default: 0. */
  readonly offset?: number | undefined
  /** A version of the lake, as Lake-Version or /api/v1/versions name it: the server reads only its files, or refuses the request. */
  readonly version?: string | undefined
}

export interface Observation {
  /** Station code. */
  readonly station_code: string
  /** Observation time. */
  readonly observed_at: string
  /** `METAR` (routine) or `SPECI` (special). */
  readonly observation_type: string
  /** Origin: `awc` (live feed), `iem` or `ncei` (archives). */
  readonly source: string
  /** Temperature. */
  readonly temp_f: number | null
  /** Dewpoint. */
  readonly dewpoint_f: number | null
  /** Wind speed; 0 is calm, null is not reported. */
  readonly wind_speed_kt: number | null
  /** Altimeter setting. */
  readonly altimeter_inhg: number | null
  /** Visibility; the bound itself where a report says more or less than it. */
  readonly visibility_miles: number | null
  /** First sky-cover layer: CLR, SKC, FEW, SCT, BKN, OVC, VV. */
  readonly sky_cover_1: string | null
  /** Raw report text. */
  readonly raw_metar: string | null
  /** Relative humidity, percent, from temperature and dewpoint. */
  readonly relative_humidity: number | null
  /** Direction the wind blows from; 0 is calm, null is variable or not reported. */
  readonly wind_dir_degrees: number | null
  /** Gust speed; null is no gust. */
  readonly wind_gust_kt: number | null
  /** Sea-level pressure, millibars (hPa). */
  readonly sea_level_pressure_mb: number | null
  /** Present weather as reported, separated by spaces. */
  readonly weather_codes: string | null
  /** Base of the first layer above ground, feet. */
  readonly sky_base_1_ft: number | null
  /** Second sky-cover layer. */
  readonly sky_cover_2: string | null
  /** Base of the second layer, feet. */
  readonly sky_base_2_ft: number | null
  /** Third sky-cover layer. */
  readonly sky_cover_3: string | null
  /** Base of the third layer, feet. */
  readonly sky_base_3_ft: number | null
  /** Fourth sky-cover layer. */
  readonly sky_cover_4: string | null
  /** Base of the fourth layer, feet. */
  readonly sky_base_4_ft: number | null
  /** Precipitation since the last routine report; 0.0001 is a trace. */
  readonly precip_1hr_inches: number | null
  /** Snow on the ground. */
  readonly snow_depth_inches: number | null
  /** Peak wind since the last routine report. */
  readonly peak_wind_speed_kt: number | null
  /** Direction of the peak wind. */
  readonly peak_wind_dir_degrees: number | null
  /** Time of the peak wind. */
  readonly peak_wind_time: string | null
  /** Wind chill, heat index or temperature, by the NWS formulas. */
  readonly feels_like_f: number | null
  /** Maximum of the last 6 hours. */
  readonly max_temp_6hr_f: number | null
  /** Minimum of the last 6 hours. */
  readonly min_temp_6hr_f: number | null
  /** Maximum of the 24 hours to midnight local standard time. */
  readonly max_temp_24hr_f: number | null
  /** Minimum of the 24 hours to midnight local standard time. */
  readonly min_temp_24hr_f: number | null
}

export type ObservationColumn = keyof Observation

/** Weather observations (METAR and SPECI). */
export interface ObservationsParameters<Column extends ObservationColumn = ObservationColumn> {
  /** Station code, three letters or ICAO. */
  readonly station?: string | undefined
  /** Start, inclusive: RFC 3339 or a UTC date. Default: 24 hours ago. */
  readonly from?: string | Date | undefined
  /** End, exclusive: RFC 3339, or a UTC date, which means its end. Default: now. */
  readonly to?: string | Date | undefined
  /** Only routine (METAR) or special (SPECI) reports. */
  readonly type?: 'METAR' | 'SPECI' | undefined
  /** Units of the values. Field names keep their raw suffix. Default: raw. */
  readonly units?: 'raw' | 'metric' | 'imperial' | undefined
  /** Zone of the time labels: UTC, station (each row's station) or an IANA name. Filters stay UTC. Default: UTC. */
  readonly tz?: string | undefined
  /** Of bytes and files; rows are read in the form that suits them. Default: json. */
  readonly format?: 'json' | 'csv' | 'parquet' | 'ndjson' | undefined
  /** Comma-separated columns, in the order wanted. Default: all. */
  readonly columns?: readonly Column[] | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Rows to skip. If limit cuts an answer short, its Link header has the address of the next page. A whole number from 0 to 10000000. Default: 0. */
  readonly offset?: number | undefined
  /** A version of the lake, as Lake-Version or /api/v1/versions name it: the server reads only its files, or refuses the request. */
  readonly version?: string | undefined
}

export interface ClimateRecord {
  /** Station code. */
  readonly station_code: string
  /** Climate date: midnight to midnight local standard time. */
  readonly observation_date: string
  /** Daily high; null where the report does not have it. */
  readonly high_temp_f: number | null
  /** Daily low; null where the report does not have it. */
  readonly low_temp_f: number | null
  /** `final`, `correction`, `preliminary` or `estimated`. */
  readonly report_type: string
  /** Origin: `nws` or `iem` for official products, `acis` for estimates. */
  readonly source: string
  /** Identifier of the issued product; null for an estimate. */
  readonly product_id: string | null
  /** Issue time of the product; null for an estimate. */
  readonly issued_at: string | null
}

export type ClimateColumn = keyof ClimateRecord

/** Official daily climate reports, with estimates for dates without a report. */
export interface ClimateParameters<Column extends ClimateColumn = ClimateColumn> {
  /** Station code, three letters or ICAO. */
  readonly station?: string | undefined
  /** First climate date. */
  readonly from?: string | Date | undefined
  /** Last climate date. */
  readonly to?: string | Date | undefined
  /** raw: degrees F; metric: degrees C. Field names keep their raw suffix. Default: raw. */
  readonly units?: 'raw' | 'metric' | undefined
  /** true: every product of a date instead of the one that settles. Default: false. */
  readonly revisions?: boolean | undefined
  /** Of bytes and files; rows are read in the form that suits them. Default: json. */
  readonly format?: 'json' | 'csv' | 'parquet' | 'ndjson' | undefined
  /** Comma-separated columns, in the order wanted. Default: all. */
  readonly columns?: readonly Column[] | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Rows to skip. If limit cuts an answer short, its Link header has the address of the next page. A whole number from 0 to 10000000. Default: 0. */
  readonly offset?: number | undefined
}

export interface ClimateGap {
  /** Station code. */
  readonly station_code: string
  /** First missing date. */
  readonly gap_start: string
  /** Last missing date. */
  readonly gap_end: string
  /** Number of missing days. */
  readonly missing_days: number
}

/** Missing dates in a station's daily climate reports. */
export interface ClimateGapsParameters {
  /** Station code, three letters or ICAO. */
  readonly station: string
  /** First date. Default: 5 years ago. */
  readonly from?: string | Date | undefined
  /** Last date. Default: today. The range is at most 10 years. */
  readonly to?: string | Date | undefined
  /** true: a date that has only an estimate is missing too. Default: false. */
  readonly official?: boolean | undefined
}

export interface Trade {
  /** Time of the trade by the exchange, nanoseconds since 1970-01-01 UTC. */
  readonly ts: number
  /** When it was first received, nanoseconds; null where it was only fetched later. */
  readonly recv_ts: number | null
  /** Market. */
  readonly market_id: string
  /** Trade; null in old recordings that do not name it. */
  readonly trade_id: string | null
  /** Price of the YES side or of the token, in cents. */
  readonly price: number
  /** Contracts. */
  readonly qty: number
  /** What the taker did: bid (bought), ask (sold) or unknown. */
  readonly aggressor: string
  /** Whether it was a block trade; null where the exchange does not say it. */
  readonly block: boolean | null
  /** The best origin that has it: ws (recorded), import or rest (fetched later). */
  readonly origin: string
}

export type TradesColumn = keyof Trade

/** Trades of markets. */
export interface TradesParameters<Column extends TradesColumn = TradesColumn> {
  /** kalshi: Market ticker; polymarket: <condition_id>:<token_id>, or <condition_id> for both its tokens. Give at least one of market, event and series; a trade must match all that are given. */
  readonly market?: string | undefined
  /** Event ticker: the tickers of its markets begin with it. */
  readonly event?: string | undefined
  /** Series ticker, or the ticker of one event of a series. */
  readonly series?: string | undefined
  /** Data source. Default: kalshi. */
  readonly source?: 'kalshi' | 'polymarket' | undefined
  /** One UTC date, instead of from and to. */
  readonly date?: string | Date | undefined
  /** Start, inclusive: RFC 3339 or a UTC date. Default: 24 hours ago. */
  readonly from?: string | Date | undefined
  /** End, exclusive: RFC 3339, or a UTC date, which means its end. Default: now. */
  readonly to?: string | Date | undefined
  /** Of bytes and files; rows are read in the form that suits them. Default: json. */
  readonly format?: 'json' | 'csv' | 'parquet' | 'ndjson' | undefined
  /** Comma-separated columns, in the order wanted. Default: all. */
  readonly columns?: readonly Column[] | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Rows to skip. If limit cuts an answer short, its Link header has the address of the next page. A whole number from 0 to 10000000. Default: 0. */
  readonly offset?: number | undefined
  /** A version of the lake, as Lake-Version or /api/v1/versions name it: the server reads only its files, or refuses the request. */
  readonly version?: string | undefined
}

export interface Coverage {
  /** Market; null for all markets of a series on a date without a file. */
  readonly market_id: string | null
  /** UTC date. */
  readonly date: string
  /** Start of the UTC hour; only with by=hour. */
  readonly hour?: string | undefined
  /** complete, partial, gap, not_listed, not_recorded or closed. */
  readonly state: string
  /** available, degraded, missing or pending; only with by=day. */
  readonly condition: string
  /** Seconds in which the book is known. */
  readonly known_s: number
  /** Recorded seconds in which the book is unknown. */
  readonly gap_s: number
  /** Gaps that begin here. */
  readonly gaps: number
  /** Book events, without those of keyframes. */
  readonly events: number
  /** First instant at which the book is known, nanoseconds since the epoch. */
  readonly first_book_ts: number | null
  /** How often the exchange stated the whole book. */
  readonly snapshots: number
  /** Median of the receive lag (receive time minus event time) in milliseconds, accurate to a tenth of its value; null without receive times, or if they are not after the event times. */
  readonly recv_lag_p50_ms: number | null
  /** 99th percentile of the receive lag, likewise. */
  readonly recv_lag_p99_ms: number | null
  /** Path of the file below the lake; null without one. */
  readonly file: string | null
}

export type CoverageColumn = keyof Coverage

/** How much of each hour or date of a market is known. */
export interface CoverageParameters<Column extends CoverageColumn = CoverageColumn> {
  /** Market ticker; for polymarket <condition_id>:<token_id>, or <condition_id> for both its tokens. Give exactly one of market and series. */
  readonly market?: string | undefined
  /** Series ticker, or the ticker of one event of a series: all its markets. */
  readonly series?: string | undefined
  /** Data source. Default: kalshi. */
  readonly source?: 'kalshi' | 'polymarket' | undefined
  /** First UTC date. Default: the first date with data. */
  readonly from?: string | Date | undefined
  /** Last UTC date. Default: the last date with data. With from and to, dates without a file are listed too. */
  readonly to?: string | Date | undefined
  /** One row for each hour or for each date of a market. Default: day. */
  readonly by?: 'hour' | 'day' | undefined
  /** Of bytes and files; rows are read in the form that suits them. Default: json. */
  readonly format?: 'json' | 'csv' | 'parquet' | 'ndjson' | undefined
  /** Comma-separated columns, in the order wanted. Default: all. */
  readonly columns?: readonly Column[] | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Rows to skip. If limit cuts an answer short, its Link header has the address of the next page. A whole number from 0 to 10000000. Default: 0. */
  readonly offset?: number | undefined
}

export interface Gap {
  /** Market; null for all markets of a series on dates without a file. */
  readonly market_id: string | null
  /** Start, nanoseconds since the epoch. */
  readonly from_ts: number
  /** End, exclusive. */
  readonly to_ts: number
  /** interrupted, no_snapshot or not_recorded. */
  readonly cause: string
}

export type GapsColumn = keyof Gap

/** When the book of a market is unknown. */
export interface GapsParameters<Column extends GapsColumn = GapsColumn> {
  /** Market ticker; for polymarket <condition_id>:<token_id>, or <condition_id> for both its tokens. Give exactly one of market and series. */
  readonly market?: string | undefined
  /** Series ticker, or the ticker of one event of a series: all its markets. */
  readonly series?: string | undefined
  /** Data source. Default: kalshi. */
  readonly source?: 'kalshi' | 'polymarket' | undefined
  /** First UTC date. Default: the first date with data. */
  readonly from?: string | Date | undefined
  /** Last UTC date. Default: the last date with data. With from and to, dates without a file are listed too. */
  readonly to?: string | Date | undefined
  /** Of bytes and files; rows are read in the form that suits them. Default: json. */
  readonly format?: 'json' | 'csv' | 'parquet' | 'ndjson' | undefined
  /** Comma-separated columns, in the order wanted. Default: all. */
  readonly columns?: readonly Column[] | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Rows to skip. If limit cuts an answer short, its Link header has the address of the next page. A whole number from 0 to 10000000. Default: 0. */
  readonly offset?: number | undefined
}

export interface Series {
  /** Series ticker. */
  readonly ticker: string
  /** What the markets settle on: the day's high or low, or the temperature of an hour. */
  readonly measure_type: 'high' | 'low' | 'hourly'
  /** Title. */
  readonly title: string
  /** Station that settles it; null if Bookcast does not have the station. */
  readonly station_code: string | null
  /** Category, as the exchange has it; Climate and Weather for temperatures. */
  readonly category: string
  /** How often there is an event, as the exchange has it, such as daily or hourly. */
  readonly frequency: string
  /** Tags. */
  readonly tags: readonly string[]
  /** Whether the exchange still lists it. */
  readonly active: boolean
  /** When it was last listed, with milliseconds. */
  readonly last_seen_at: string
}

/** The series of the catalogue, by ticker. */
export interface SeriesParameters {
  /** true: only active series; false: only inactive series. */
  readonly active?: boolean | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Records to skip. A whole number from 0 to 1000000000. Default: 0. */
  readonly offset?: number | undefined
}

export interface Market {
  /** Market ticker. */
  readonly ticker: string
  /** Ticker of the event that the strike belongs to. */
  readonly event_ticker: string
  /** Ticker of the series that the event belongs to. */
  readonly series_ticker: string
  /** Status, as the exchange has it: initialized, inactive, active, closed, determined, disputed, amended or finalized. The exchange may add others. */
  readonly status: string
  /** Result: yes, no or scalar; empty while there is none. */
  readonly result: string
  /** Close time, UTC. */
  readonly close_time: string
}

/** The markets of the catalogue, by ticker. Conditions combine with AND. */
export interface MarketsParameters {
  /** Series ticker, or the ticker of one event. */
  readonly series?: string | undefined
  /** Station code, NYC or KNYC. */
  readonly station?: string | undefined
  /** Earliest close time: RFC 3339, or a date, which means its start. */
  readonly from?: string | Date | undefined
  /** Latest close time, inclusive: RFC 3339, or a date, which means its end. */
  readonly to?: string | Date | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Records to skip. A whole number from 0 to 1000000000. Default: 0. */
  readonly offset?: number | undefined
}

export interface LakeVersion {
  /** Value of the parameter version and of the header Lake-Version. */
  readonly id: string
  /** When this server first saw it. */
  readonly created_at: string
  /** Files added, replaced or removed since the version before. */
  readonly changed: number
  /** Paths of these files, at most 1000. In the oldest version, all files are added ones. */
  readonly partitions: readonly string[]
}

/** The versions of a dataset of the lake, the newest first. */
export interface VersionsParameters {
  /** Order books (lob), trades, candles or observations. */
  readonly dataset: 'lob' | 'trades' | 'candles' | 'observations'
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Records to skip. A whole number from 0 to 1000000000. Default: 0. */
  readonly offset?: number | undefined
}

export interface LakeFile {
  /** Path below the lake. */
  readonly path: string
  /** Address in object storage; null if the lake is not a copy of a bucket. */
  readonly url: string | null
  /** Size. */
  readonly bytes: number
  /** Rows; null where the footer cannot be read. */
  readonly rows: number | null
  /** SHA-256 of the bytes, in hexadecimal. */
  readonly sha256: string
  /** First time of a row, with nanoseconds; null if the file does not state it. */
  readonly min_ts: string | null
  /** Last time of a row, likewise. */
  readonly max_ts: string | null
}

/** The files of the lake with size, rows, checksum and times, by path. */
export interface FilesParameters {
  /** Order books (lob), trades, candles or observations. */
  readonly dataset: 'lob' | 'trades' | 'candles' | 'observations'
  /** Only this exchange; for lob and trades. */
  readonly source?: 'kalshi' | 'polymarket' | undefined
  /** Only this series, as its directory names it; for lob, trades and candles. */
  readonly series?: string | undefined
  /** Only this station, three letters or ICAO; for observations. */
  readonly station?: string | undefined
  /** First UTC date: files whose date, month or year ends before it are left out. */
  readonly from?: string | Date | undefined
  /** Last UTC date: files whose date, month or year begins after it are left out. */
  readonly to?: string | Date | undefined
  /** Rows at most, of all pages together. Default: all there are. */
  readonly limit?: number | undefined
  /** Records to skip. A whole number from 0 to 1000000000. Default: 0. */
  readonly offset?: number | undefined
}

export interface Health {
  /** ok if everything below is ok. */
  readonly status: 'ok' | 'degraded'
  /** The embedded analytical database. */
  readonly embedded_db: 'ok' | 'error'
  /** The relational database; off where the server runs without one. */
  readonly hosted_db: 'ok' | 'error' | 'off'
  /** The last synchronization of the lake; without object storage, the last look at its directory. */
  readonly sync: {
    readonly last_sync: string | null
    /** Parquet files in the lake. */
    readonly file_count: number
    /** Whether it was more than two hours ago. */
    readonly is_stale: boolean
  }
  /** How many of the trades are proven complete; only after `bookcast verify --trades`. */
  readonly trades: {
    /** Market minutes with a candle that were compared. */
    readonly minutes: number
    /** Minutes whose trades have the candle's volume and last price. */
    readonly proven: number
    readonly share: number
  }
  /** Present only if the server serves sample data, which is invented. */
  readonly samples: {
    /** Order-book files of the lake that are samples. */
    readonly files: number
    /** Whether the relational store holds the sample records. */
    readonly records: boolean
  }
}

export interface Ready {
  readonly status: 'ready'
}

export interface Live {
  readonly status: 'ok'
}

/** What the client has to know of an endpoint to ask it. */
export interface EndpointForm {
  readonly path: string
  readonly formats: readonly string[]
  /** The highest limit of one answer; null where there are no pages. */
  readonly limitMax: number | null
  /** Whether gaps between rows can be filled, which is done in json alone. */
  readonly hasFill: boolean
  /** The parameters that are dates, not instants. */
  readonly dates: readonly string[]
}

export const ENDPOINTS = {
  lob: {
    path: '/api/v1/lob',
    formats: ['json', 'csv', 'parquet', 'ndjson'],
    limitMax: null,
    hasFill: false,
    dates: ['date', 'from', 'to'],
  },
  lobReceipt: {
    path: '/api/v1/lob/receipt',
    formats: ['json'],
    limitMax: null,
    hasFill: false,
    dates: ['date', 'from', 'to'],
  },
  lobDates: {
    path: '/api/v1/lob/dates',
    formats: ['json'],
    limitMax: 10000,
    hasFill: false,
    dates: ['from', 'to'],
  },
  lobAt: {
    path: '/api/v1/lob/at',
    formats: ['json'],
    limitMax: null,
    hasFill: false,
    dates: [],
  },
  lobEstimate: {
    path: '/api/v1/lob/estimate',
    formats: ['json'],
    limitMax: null,
    hasFill: false,
    dates: ['date', 'from', 'to'],
  },
  candles: {
    path: '/api/v1/candles',
    formats: ['json', 'csv', 'parquet', 'ndjson'],
    limitMax: 500000,
    hasFill: true,
    dates: [],
  },
  observations: {
    path: '/api/v1/observations',
    formats: ['json', 'csv', 'parquet', 'ndjson'],
    limitMax: 500000,
    hasFill: false,
    dates: [],
  },
  climate: {
    path: '/api/v1/climate',
    formats: ['json', 'csv', 'parquet', 'ndjson'],
    limitMax: 500000,
    hasFill: false,
    dates: ['from', 'to'],
  },
  climateGaps: {
    path: '/api/v1/analysis/climate-gaps',
    formats: ['json'],
    limitMax: null,
    hasFill: false,
    dates: ['from', 'to'],
  },
  trades: {
    path: '/api/v1/trades',
    formats: ['json', 'csv', 'parquet', 'ndjson'],
    limitMax: 500000,
    hasFill: false,
    dates: ['date'],
  },
  coverage: {
    path: '/api/v1/coverage',
    formats: ['json', 'csv', 'parquet', 'ndjson'],
    limitMax: 500000,
    hasFill: false,
    dates: ['from', 'to'],
  },
  gaps: {
    path: '/api/v1/gaps',
    formats: ['json', 'csv', 'parquet', 'ndjson'],
    limitMax: 500000,
    hasFill: false,
    dates: ['from', 'to'],
  },
  series: {
    path: '/api/v1/series',
    formats: ['json'],
    limitMax: 10000,
    hasFill: false,
    dates: [],
  },
  seriesNamed: {
    path: '/api/v1/series/{ticker}',
    formats: ['json'],
    limitMax: null,
    hasFill: false,
    dates: [],
  },
  markets: {
    path: '/api/v1/markets',
    formats: ['json'],
    limitMax: 10000,
    hasFill: false,
    dates: [],
  },
  marketNamed: {
    path: '/api/v1/markets/{ticker}',
    formats: ['json'],
    limitMax: null,
    hasFill: false,
    dates: [],
  },
  versions: {
    path: '/api/v1/versions',
    formats: ['json'],
    limitMax: 10000,
    hasFill: false,
    dates: [],
  },
  files: {
    path: '/api/v1/files',
    formats: ['json'],
    limitMax: 10000,
    hasFill: false,
    dates: ['from', 'to'],
  },
  health: {
    path: '/health',
    formats: ['json'],
    limitMax: null,
    hasFill: false,
    dates: [],
  },
  ready: {
    path: '/readyz',
    formats: ['json'],
    limitMax: null,
    hasFill: false,
    dates: [],
  },
  live: {
    path: '/livez',
    formats: ['json'],
    limitMax: null,
    hasFill: false,
    dates: [],
  },
} as const satisfies Record<string, EndpointForm>
