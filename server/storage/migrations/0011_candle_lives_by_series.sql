-- A fill asks which markets of the lake's series trade in the store before or behind its window.
CREATE INDEX candle_lives_by_series ON candle_lives (series_ticker);
