-- The exchange's catalogue. Text columns sort by bytes (collation "C"), so that an order by ticker is the same here,
-- in DuckDB and in JavaScript, whatever locale the server was installed with.

CREATE TABLE series (
  ticker              text COLLATE "C" PRIMARY KEY,
  measure_type        text NOT NULL,
  title               text NOT NULL,
  station_code        text COLLATE "C",
  category            text NOT NULL,
  frequency           text NOT NULL,
  tags                jsonb NOT NULL,
  active              boolean NOT NULL,
  settlement_sources  jsonb NOT NULL DEFAULT '[]',
  contract_url        text,
  fee_type            text,
  fee_multiplier      double precision,
  last_seen_at        timestamptz NOT NULL,
  written_at          timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX series_by_station ON series (station_code, ticker);

-- The market's own station wins over its series' one: the settlement source changed in the middle of a series' life.
-- Prices are 1/10000 dollar, as everywhere.
CREATE TABLE markets (
  ticker                    text COLLATE "C" PRIMARY KEY,
  event_ticker              text COLLATE "C" NOT NULL,
  series_ticker             text COLLATE "C" NOT NULL,
  station_code              text COLLATE "C",
  status                    text NOT NULL,
  result                    text NOT NULL,
  market_type               text,
  title                     text,
  yes_sub_title             text,
  no_sub_title              text,
  strike_type               text,
  floor_strike              double precision,
  cap_strike                double precision,
  open_time                 timestamptz,
  close_time                timestamptz NOT NULL,
  created_time              timestamptz,
  updated_time              timestamptz,
  expected_expiration_time  timestamptz,
  latest_expiration_time    timestamptz,
  settlement_timer_seconds  integer,
  settlement_value          integer,
  settlement_ts             timestamptz,
  expiration_value          text,
  can_close_early           boolean,
  price_level_structure     text,
  price_ranges              jsonb,
  rules_primary             text,
  rules_secondary           text,
  last_seen_at              timestamptz NOT NULL,
  written_at                timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX markets_by_series ON markets (series_ticker, ticker);
CREATE INDEX markets_by_event ON markets (event_ticker, ticker);
CREATE INDEX markets_by_station ON markets (station_code, ticker);
CREATE INDEX markets_by_close_time ON markets (close_time);

-- One number per dataset that every change raises: what cache validators and readers compare. Raised at the end of
-- the writing transaction, so that nobody sees a new number before the data.
CREATE TABLE data_versions (
  dataset     text COLLATE "C" PRIMARY KEY,
  version     bigint NOT NULL DEFAULT 0,
  changed_at  timestamptz
);

INSERT INTO data_versions (dataset)
VALUES ('series'), ('markets'), ('candles'), ('observations'), ('climate'), ('lake_manifest');
