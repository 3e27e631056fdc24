-- What the lake holds, what was fetched, and how current this server's copy of the lake is.

-- A partition of a dataset is cold before `cut_over` (its file holds the rows) and hot from it on (the tables above
-- do). `scope` is the series or station; `generation` rises with every registration of the dataset's partitions.
CREATE TABLE lake_manifest (
  dataset        text COLLATE "C" NOT NULL,
  scope          text COLLATE "C" NOT NULL,
  period_start   timestamptz NOT NULL,
  period_end     timestamptz NOT NULL,
  cut_over       timestamptz NOT NULL,
  path           text COLLATE "C" NOT NULL UNIQUE,
  rows           bigint NOT NULL,
  size_bytes     bigint NOT NULL,
  sha256         text NOT NULL,
  generation     bigint NOT NULL,
  registered_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (dataset, scope, period_start),
  CHECK (period_start < period_end AND cut_over >= period_start AND cut_over <= period_end),
  -- Reads find a row's partition by its start: months of candles, years of observations.
  CHECK (dataset <> 'candles' OR (period_start = date_trunc('month', period_start, 'UTC')
    AND period_end = date_trunc('month', period_start + interval '32 days', 'UTC'))),
  CHECK (dataset <> 'observations' OR (period_start = date_trunc('year', period_start, 'UTC')
    AND period_end = date_trunc('year', period_start + interval '367 days', 'UTC')))
);

CREATE INDEX lake_manifest_by_period ON lake_manifest (dataset, period_start, scope);

-- One row per source and scope (a series, a station, a product): the windows that were fetched completely, the
-- source's own state (cursors, validators) and how its last runs went.
CREATE TABLE ingest_cursors (
  source                text COLLATE "C" NOT NULL,
  scope                 text COLLATE "C" NOT NULL,
  completed             tstzmultirange NOT NULL DEFAULT '{}',
  state                 jsonb NOT NULL DEFAULT '{}',
  rows_written          bigint NOT NULL DEFAULT 0,
  last_success_at       timestamptz,
  last_failure_at       timestamptz,
  last_failure          text,
  consecutive_failures  integer NOT NULL DEFAULT 0,
  PRIMARY KEY (source, scope)
);

-- Replicas share this database but each has a lake directory of its own, hence one row per replica.
CREATE TABLE lake_syncs (
  replica     text COLLATE "C" PRIMARY KEY,
  last_sync   timestamptz,
  file_count  integer NOT NULL,
  state       jsonb NOT NULL DEFAULT '{}'
);
