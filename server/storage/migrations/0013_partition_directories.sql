-- A partition of the lake is a directory (`month=2026-07/candles.parquet`) and no longer a part of the file's name.
UPDATE lake_manifest SET path = left(path, -length('.parquet')) || '/' || dataset || '.parquet'
WHERE path ~ '/(date|month|year)=[0-9-]+\.parquet$';
