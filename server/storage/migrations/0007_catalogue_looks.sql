-- The marks of before could follow from lists of markets that were empty or cut by a fault of the exchange, and nothing in
-- the store tells which. They are earned anew, by a look at the lists of each series; candles are asked for only where that
-- brings markets or times that were not known.
UPDATE ingest_cursors SET completed = '{}' WHERE source = 'exchange-catalogue';
