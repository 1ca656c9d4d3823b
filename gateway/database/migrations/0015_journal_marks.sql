-- Up to where each gateway's journal is in the ledger, written in the transaction of its rows: a database that took the place of
-- another and lacks its last transactions has an older mark, and the gateway writes the rows after it again.

CREATE TABLE journal_marks (
  -- The id in the journal's directory.
  instance uuid PRIMARY KEY,
  -- The line that comes next, and the oldest segment with a call whose row comes after it.
  segment bigint NOT NULL,
  line_offset bigint NOT NULL,
  from_segment bigint NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  -- When rows were last written again, in ms since the epoch: versions of totals continue there, above all that were read from
  -- the lost transactions.
  restored_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX journal_marks_restored ON journal_marks (restored_at);
