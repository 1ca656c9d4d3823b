-- What a response in background has streamed so far, for clients that follow it. Of a response that was created with `stream` only.
CREATE TABLE response_events (
  response_id text NOT NULL REFERENCES responses ON DELETE CASCADE,
  -- `sequence_number` of the last event of the row; those of one response have no gaps.
  last_number integer NOT NULL,
  -- The events as JSON, encrypted as the response is.
  sealed text NOT NULL,
  PRIMARY KEY (response_id, last_number)
);
-- Encrypted text cannot be compressed.
ALTER TABLE response_events ALTER COLUMN sealed SET STORAGE EXTERNAL;
