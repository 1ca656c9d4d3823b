-- Credentials of providers that several models of the database share. What may be a secret is in `sealed` only, encrypted as
-- that of models is (0005_models.sql).

CREATE TABLE credentials (
  credential_name text PRIMARY KEY,
  display_name text,
  credential_info jsonb NOT NULL DEFAULT '{}',
  sealed text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON credentials FOR EACH ROW EXECUTE FUNCTION announce_change('credential_name');

-- Models by a name, which keys and teams may call in addition to those of their own lists.

CREATE TABLE access_groups (
  access_group_id text PRIMARY KEY,
  access_group_name text NOT NULL UNIQUE,
  description text,
  access_model_names text[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON access_groups FOR EACH ROW EXECUTE FUNCTION announce_change('access_group_id');

ALTER TABLE keys ADD COLUMN access_group_ids text[] NOT NULL DEFAULT '{}';
ALTER TABLE deleted_keys ADD COLUMN access_group_ids text[] NOT NULL DEFAULT '{}';
ALTER TABLE teams ADD COLUMN access_group_ids text[] NOT NULL DEFAULT '{}';
CREATE INDEX keys_access_groups ON keys USING gin (access_group_ids) WHERE access_group_ids <> '{}';
CREATE INDEX teams_access_groups ON teams USING gin (access_group_ids) WHERE access_group_ids <> '{}';
