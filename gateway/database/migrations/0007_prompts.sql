-- Prompts and answers, only where `store_prompts_in_spend_logs` says so. No money: written behind the calls, in batches.
-- Text, not jsonb: what people write may hold characters that jsonb refuses.

CREATE TABLE prompts (
  request_id text PRIMARY KEY,
  started_at timestamptz NOT NULL,
  request text NOT NULL,
  response text
);
CREATE INDEX prompts_started_at ON prompts (started_at);
