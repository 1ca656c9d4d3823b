-- What the page of a call shows: what its cost is the sum of, and how long it waited for providers. Columns that are null
-- are added without touching rows; per call they take about 60 bytes.

ALTER TABLE spend_log ADD COLUMN cost_lines json;
ALTER TABLE spend_log ADD COLUMN waited_ms integer;

-- Expensive and slow calls, newest first: few among many, so that a search for them does not read the others. An ordinary
-- call has no entry and costs nothing more to write than two comparisons; one of these calls costs an entry of 16 bytes in
-- each index. Built from one reading of the ledger each, about a second for a million calls; meanwhile calls are served and wait in the
-- journal, since only the ledger's writers have to wait.
CREATE INDEX spend_log_expensive ON spend_log (started_at DESC) WHERE spend >= 0.1;
CREATE INDEX spend_log_slow ON spend_log (started_at DESC) WHERE ended_at - started_at >= interval '30 seconds';

-- A key whose prompts and answers are stored although `store_prompts_in_spend_logs` is off, and the headers stored with them.

ALTER TABLE keys ADD COLUMN store_prompts boolean NOT NULL DEFAULT false;
ALTER TABLE deleted_keys ADD COLUMN store_prompts boolean NOT NULL DEFAULT false;
ALTER TABLE prompts ADD COLUMN headers jsonb;
