-- From when to when each market has candles here, in whole days: what a forward fill needs to find the markets that trade
-- around a window without reading the candles before and behind it. A life may be longer than what is left of it, never
-- shorter.
CREATE TABLE candle_lives (
  market_ticker    text COLLATE "C" NOT NULL,
  period_interval  integer NOT NULL,
  series_ticker    text COLLATE "C" NOT NULL,
  event_ticker     text COLLATE "C" NOT NULL,
  life             tstzrange NOT NULL,
  PRIMARY KEY (market_ticker, period_interval)
);

CREATE INDEX candle_lives_by_time ON candle_lives USING gist (life);
CREATE INDEX candle_lives_by_event ON candle_lives (event_ticker);

-- 24 hours, because a day of the session's zone may have 23 or 25.
INSERT INTO candle_lives
SELECT market_ticker, period_interval, min(series_ticker), min(event_ticker),
  tstzrange(date_trunc('day', min(end_period_ts), 'UTC'), date_trunc('day', max(end_period_ts), 'UTC') + interval '24 hours')
FROM candles GROUP BY market_ticker, period_interval;

-- Triggers, so that every writer of candles keeps the lives.
CREATE FUNCTION grow_candle_lives() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO candle_lives AS known
  SELECT market_ticker, period_interval, min(series_ticker), min(event_ticker),
    tstzrange(date_trunc('day', min(end_period_ts), 'UTC'), date_trunc('day', max(end_period_ts), 'UTC') + interval '24 hours')
  FROM written GROUP BY market_ticker, period_interval ORDER BY market_ticker, period_interval
  ON CONFLICT (market_ticker, period_interval) DO UPDATE SET life = range_merge(known.life, excluded.life)
  WHERE NOT known.life @> excluded.life;
  RETURN NULL;
END $$;

CREATE FUNCTION end_candle_lives() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM candle_lives l USING (SELECT DISTINCT market_ticker, period_interval FROM removed) r
  WHERE l.market_ticker = r.market_ticker AND l.period_interval = r.period_interval AND NOT EXISTS (
    SELECT FROM candles c WHERE c.market_ticker = r.market_ticker AND c.period_interval = r.period_interval);
  RETURN NULL;
END $$;

CREATE FUNCTION forget_candle_lives() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM candle_lives;
  RETURN NULL;
END $$;

CREATE TRIGGER candles_written AFTER INSERT ON candles
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION grow_candle_lives();
CREATE TRIGGER candles_removed AFTER DELETE ON candles
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION end_candle_lives();
CREATE TRIGGER candles_truncated AFTER TRUNCATE ON candles
  FOR EACH STATEMENT EXECUTE FUNCTION forget_candle_lives();
