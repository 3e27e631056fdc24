-- Which groups of an observation's fields were taken from another report than its `source` and `received_at` say, so that
-- a later merge can tell which value counts. Only while a row is here: the lake does not keep it.
ALTER TABLE observations ADD COLUMN filled jsonb NOT NULL DEFAULT '{}';
