-- What an exchange calls markets whose identifiers do not say it: the question that is asked, and the outcome that pays.
CREATE TABLE market_names (
  source     text COLLATE "C" NOT NULL,
  series     text COLLATE "C" NOT NULL,
  market_id  text COLLATE "C" NOT NULL,
  question   text NOT NULL,
  outcome    text NOT NULL,
  PRIMARY KEY (source, series, market_id)
);
