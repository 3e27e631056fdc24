-- The times for which a market's candles were asked for and written. They stand with the market, so that one that becomes
-- known later has none, and one whose life turns out longer lacks the rest: what was not asked for is never complete.
ALTER TABLE markets ADD COLUMN candles_completed tstzmultirange NOT NULL DEFAULT '{}';

-- Contracts traded in a market's life, in 1/100, as the exchange counts them: what the candles must add up to.
ALTER TABLE markets ADD COLUMN volume bigint;

-- The marks of before said that a series' window was complete for markets that were not known, and that a catalogue's
-- was when only the markets that closed in it had been asked for. Both mean something else now, and are earned anew.
UPDATE ingest_cursors SET completed = '{}'
WHERE source = 'exchange-catalogue' OR (source = 'exchange-candles' AND scope <> 'live');
