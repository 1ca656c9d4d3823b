-- Calls that were refused before a provider was asked. They cost nothing and have no row in the ledger; their holders
-- want to know why all the same. Of each key the last few are kept as they were told, the others as counts.

CREATE TABLE refusals (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  -- Empty text: the master key.
  api_key text NOT NULL,
  type text NOT NULL,
  status integer NOT NULL,
  model text,
  message text NOT NULL
);
CREATE INDEX refusals_key ON refusals (api_key, id DESC);
CREATE INDEX refusals_at ON refusals (at);

CREATE TABLE refusal_hours (
  hour timestamptz NOT NULL,
  api_key text NOT NULL,
  type text NOT NULL,
  count bigint NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (hour, api_key, type)
);
CREATE INDEX refusal_hours_key ON refusal_hours (api_key, hour);

CREATE VIEW report_refusals AS
  SELECT h.hour, h.api_key, k.key_alias, k.key_name, h.type, h.count, h.last_at
    FROM refusal_hours h LEFT JOIN keys k ON k.token = h.api_key;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearth_reports') THEN
    GRANT SELECT ON report_refusals TO hearth_reports;
  END IF;
END $$;
