-- Models that an admin added beside those of the configuration file. What may be a secret (provider keys, headers) is in
-- `sealed` only, encrypted: a dump of the database does not give it away.

CREATE TABLE models (
  model_id text PRIMARY KEY,
  model_name text NOT NULL,
  params jsonb NOT NULL,
  sealed text,
  info jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON models FOR EACH ROW EXECUTE FUNCTION announce_change('model_id');
