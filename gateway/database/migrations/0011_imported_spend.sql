-- What each payer had spent at LiteLLM when it was last imported from there, so that the next import brings what came since
-- and no more, whatever was spent here meanwhile.

CREATE TABLE imported_spend (
  -- As the payer was called when it came: a key keeps this name when it gets another secret.
  entity text PRIMARY KEY,
  spend numeric NOT NULL,
  imported_at timestamptz NOT NULL DEFAULT now()
);
