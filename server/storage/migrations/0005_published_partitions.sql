-- Servers with a copy of the lake fetch its files some time after they were written. `revision` counts the files of a
-- partition: a copy that holds an older one than the manifest counts on lacks rows.
ALTER TABLE lake_manifest ADD COLUMN revision bigint NOT NULL DEFAULT 0;

-- The partition's next file, which is in the lake already while its rows are still served from the tables above. The
-- rows go, and these become the partition's figures, when the copies have had time to fetch the file and the rows are
-- still those that `next_digest` was made of.
ALTER TABLE lake_manifest
  ADD COLUMN next_cut_over   timestamptz,
  ADD COLUMN next_rows       bigint,
  ADD COLUMN next_size_bytes bigint,
  ADD COLUMN next_sha256     text,
  ADD COLUMN next_revision   bigint,
  ADD COLUMN next_digest     text,
  ADD COLUMN published_at    timestamptz,
  ADD CHECK (num_nonnulls(next_cut_over, next_rows, next_size_bytes, next_sha256, next_revision, next_digest,
    published_at) IN (0, 7));
