-- Recent candles and observations (older ones are in the lake) and every climate record.

-- Traded candles only. Prices are 1/10000 dollar, volume and open interest 1/100 contract. Series and event stand here
-- too, because the lake is partitioned by series and a candle must be found without the catalogue.
CREATE TABLE candles (
  market_ticker    text COLLATE "C" NOT NULL,
  event_ticker     text COLLATE "C" NOT NULL,
  series_ticker    text COLLATE "C" NOT NULL,
  period_interval  integer NOT NULL CHECK (period_interval IN (1, 60, 1440)),
  end_period_ts    timestamptz NOT NULL,
  open             integer NOT NULL,
  high             integer NOT NULL,
  low              integer NOT NULL,
  close            integer NOT NULL,
  volume           bigint NOT NULL,
  open_interest    bigint NOT NULL,
  written_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (market_ticker, period_interval, end_period_ts)
);

-- The answer's total order is (end_period_ts, market_ticker) within one interval.
CREATE INDEX candles_by_time ON candles (period_interval, end_period_ts, market_ticker);
CREATE INDEX candles_by_series ON candles (series_ticker, period_interval, end_period_ts, market_ticker);

-- Raw units. What a report does not say is NULL, never 0.
CREATE TABLE observations (
  station_code           text COLLATE "C" NOT NULL,
  observed_at            timestamptz NOT NULL,
  received_at            timestamptz,
  observation_type       text COLLATE "C" NOT NULL CHECK (observation_type IN ('METAR', 'SPECI')),
  source                 text NOT NULL,
  temp_f                 double precision,
  dewpoint_f             double precision,
  wind_speed_kt          double precision,
  altimeter_inhg         double precision,
  visibility_miles       double precision,
  sky_cover_1            text,
  raw_metar              text,
  relative_humidity      double precision,
  wind_dir_degrees       integer,
  wind_gust_kt           double precision,
  sea_level_pressure_mb  double precision,
  weather_codes          text,
  sky_base_1_ft          integer,
  sky_cover_2            text,
  sky_base_2_ft          integer,
  sky_cover_3            text,
  sky_base_3_ft          integer,
  sky_cover_4            text,
  sky_base_4_ft          integer,
  precip_1hr_inches      double precision,
  snow_depth_inches      double precision,
  peak_wind_speed_kt     double precision,
  peak_wind_dir_degrees  integer,
  peak_wind_time         timestamptz,
  feels_like_f           double precision,
  max_temp_6hr_f         double precision,
  min_temp_6hr_f         double precision,
  max_temp_24hr_f        double precision,
  min_temp_24hr_f        double precision,
  written_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (station_code, observed_at, observation_type)
);

-- The answer's total order is (observed_at, station_code, observation_type).
CREATE INDEX observations_by_time ON observations (observed_at, station_code, observation_type);

-- Every official product and one estimate per station and date. `is_correction` is what the product's own text says;
-- `report_type` is what it counts as among the other products of its date (a second final with other values is a
-- correction), so it may change when an earlier product arrives late. An estimate has neither product nor issue time.
CREATE TABLE climate_records (
  station_code      text COLLATE "C" NOT NULL,
  observation_date  date NOT NULL,
  high_temp_f       double precision,
  low_temp_f        double precision,
  report_type       text NOT NULL CHECK (report_type IN ('final', 'correction', 'preliminary', 'estimated')),
  is_correction     boolean NOT NULL,
  source            text NOT NULL,
  product_id        text COLLATE "C",
  issued_at         timestamptz,
  received_at       timestamptz,
  written_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((report_type = 'estimated') = (product_id IS NULL)),
  CHECK ((product_id IS NULL) = (issued_at IS NULL)),
  UNIQUE NULLS NOT DISTINCT (station_code, observation_date, product_id)
);

CREATE INDEX climate_records_by_date ON climate_records (observation_date, station_code);
