-- A market's candles are asked for again after its settlement, because the exchange shows some of them late. candles_look
-- counts the looks that had become due when candles_completed was noted; a later look starts it anew. What was complete of
-- markets settled a week ago stays complete: "bookcast verify" names what they lack.
ALTER TABLE markets ADD COLUMN candles_look int4 NOT NULL DEFAULT 0;

-- A completed window used to hold the ends of candles from its beginning on, its end excluded. A candle belongs to the period
-- that it covers, so a window now excludes its beginning and includes its end. Candles end on full minutes: the same ends are
-- in a window that lies a minute earlier.
UPDATE markets
SET candles_look = CASE WHEN settlement_ts <= now() - interval '7 days' THEN 3 ELSE 0 END,
  candles_completed = (
    SELECT range_agg(tstzrange(lower(part) - interval '1 minute', upper(part) - interval '1 minute'))
    FROM unnest(candles_completed) AS part
  )
WHERE candles_completed <> '{}';
