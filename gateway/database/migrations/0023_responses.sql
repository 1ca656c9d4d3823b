-- Responses and conversations that calls of the Responses API may refer to. What people and models wrote is in `sealed` only,
-- encrypted as credentials of providers are (0005_models.sql). No money: a call is billed whether or not its response is stored.

CREATE TABLE responses (
  response_id text PRIMARY KEY,
  -- The user in its team, or the key of a caller without a user: nobody else can read it.
  owner text NOT NULL,
  -- The response that it continues, and the first one of these: itself where it continues none.
  previous_id text,
  root_id text NOT NULL,
  conversation_id text,
  status text NOT NULL,
  created_at timestamptz NOT NULL,
  -- NULL: never.
  expires_at timestamptz,
  -- Of a response in background that has not ended: without a sign of its gateway until then, it has failed.
  runs_until timestamptz,
  -- Of its input and output.
  item_ids text[] NOT NULL,
  bytes integer NOT NULL,
  sealed text NOT NULL
);
CREATE INDEX responses_root ON responses (root_id, expires_at);
CREATE INDEX responses_expires ON responses (expires_at);
CREATE INDEX responses_items ON responses USING gin (item_ids);
-- Encrypted text cannot be compressed.
ALTER TABLE responses ALTER COLUMN sealed SET STORAGE EXTERNAL;

CREATE TABLE conversations (
  conversation_id text PRIMARY KEY,
  owner text NOT NULL,
  created_at timestamptz NOT NULL,
  -- After its last use. NULL: never.
  expires_at timestamptz,
  -- Of all its items.
  bytes bigint NOT NULL DEFAULT 0,
  -- Its metadata.
  sealed text NOT NULL
);
CREATE INDEX conversations_expires ON conversations (expires_at);

CREATE TABLE conversation_items (
  conversation_id text NOT NULL REFERENCES conversations ON DELETE CASCADE,
  place bigint GENERATED ALWAYS AS IDENTITY,
  item_id text NOT NULL,
  bytes integer NOT NULL,
  sealed text NOT NULL,
  PRIMARY KEY (conversation_id, place)
);
CREATE INDEX conversation_items_id ON conversation_items (conversation_id, item_id);
ALTER TABLE conversation_items ALTER COLUMN sealed SET STORAGE EXTERNAL;
