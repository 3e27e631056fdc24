-- A window of the archive of climate reports used to hold times of issue: complete to a date, it lacked the final report of
-- the date before, which is issued on the next morning. It now holds climate dates, so the last one is asked for again.
UPDATE ingest_cursors
SET completed = completed - (
  SELECT range_agg(tstzrange(upper(part) - interval '1 day', upper(part))) FROM unnest(completed) AS part
)
WHERE source = 'climate-afos' AND completed <> '{}';
