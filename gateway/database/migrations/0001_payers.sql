-- Everyone who can pay for a call, and what limits them.
-- Budgets are dollars; spend is never a column here: it is a sum of the ledger (0002_ledger.sql).

CREATE TABLE budgets (
  budget_id text PRIMARY KEY,
  max_budget numeric,
  soft_budget numeric,
  budget_duration text,
  tpm_limit bigint,
  rpm_limit bigint,
  max_parallel_requests integer,
  model_max_budget jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);

CREATE TABLE organizations (
  organization_id text PRIMARY KEY,
  organization_alias text,
  models text[] NOT NULL DEFAULT '{}',
  max_budget numeric,
  soft_budget numeric,
  budget_duration text,
  budget_id text REFERENCES budgets ON DELETE SET NULL,
  tpm_limit bigint,
  rpm_limit bigint,
  max_parallel_requests integer,
  metadata jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);

CREATE TABLE users (
  user_id text PRIMARY KEY,
  user_email text,
  user_alias text,
  user_role text NOT NULL DEFAULT 'internal_user',
  models text[] NOT NULL DEFAULT '{}',
  max_budget numeric,
  soft_budget numeric,
  budget_duration text,
  budget_id text REFERENCES budgets ON DELETE SET NULL,
  tpm_limit bigint,
  rpm_limit bigint,
  max_parallel_requests integer,
  metadata jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);
CREATE INDEX users_email ON users (user_email);
CREATE INDEX users_created ON users (created_at, user_id);

CREATE TABLE organization_members (
  organization_id text NOT NULL REFERENCES organizations ON DELETE CASCADE,
  user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
  role text NOT NULL DEFAULT 'internal_user',
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text,
  PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX organization_members_user ON organization_members (user_id);

CREATE TABLE teams (
  team_id text PRIMARY KEY,
  team_alias text,
  organization_id text REFERENCES organizations ON DELETE SET NULL,
  models text[] NOT NULL DEFAULT '{}',
  max_budget numeric,
  soft_budget numeric,
  budget_duration text,
  budget_id text REFERENCES budgets ON DELETE SET NULL,
  tpm_limit bigint,
  rpm_limit bigint,
  max_parallel_requests integer,
  team_member_budget numeric,
  team_member_permissions text[] NOT NULL DEFAULT '{}',
  model_aliases jsonb NOT NULL DEFAULT '{}',
  tags text[] NOT NULL DEFAULT '{}',
  metadata jsonb NOT NULL DEFAULT '{}',
  blocked boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);

CREATE TABLE team_members (
  team_id text NOT NULL REFERENCES teams ON DELETE CASCADE,
  user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
  role text NOT NULL DEFAULT 'user',
  max_budget numeric,
  soft_budget numeric,
  budget_duration text,
  budget_id text REFERENCES budgets ON DELETE SET NULL,
  tpm_limit bigint,
  rpm_limit bigint,
  max_parallel_requests integer,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text,
  PRIMARY KEY (team_id, user_id)
);
CREATE INDEX team_members_user ON team_members (user_id);

CREATE TABLE end_users (
  user_id text PRIMARY KEY,
  alias text,
  blocked boolean NOT NULL DEFAULT false,
  max_budget numeric,
  soft_budget numeric,
  budget_duration text,
  budget_id text REFERENCES budgets ON DELETE SET NULL,
  tpm_limit bigint,
  rpm_limit bigint,
  max_parallel_requests integer,
  metadata jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);

CREATE TABLE tags (
  name text PRIMARY KEY,
  description text,
  max_budget numeric,
  soft_budget numeric,
  budget_duration text,
  budget_id text REFERENCES budgets ON DELETE SET NULL,
  tpm_limit bigint,
  rpm_limit bigint,
  max_parallel_requests integer,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);

CREATE TABLE keys (
  -- SHA-256 of the key, lower-case hex. The key itself is stored nowhere.
  token text PRIMARY KEY,
  key_name text NOT NULL,
  key_alias text UNIQUE,
  -- Nobody in particular: a key may outlive its user's row, and the ledger names users that were deleted.
  user_id text,
  team_id text REFERENCES teams ON DELETE CASCADE,
  organization_id text REFERENCES organizations ON DELETE SET NULL,
  models text[] NOT NULL DEFAULT '{}',
  max_budget numeric,
  soft_budget numeric,
  budget_duration text,
  budget_id text REFERENCES budgets ON DELETE SET NULL,
  temp_budget_increase numeric,
  temp_budget_expiry timestamptz,
  tpm_limit bigint,
  rpm_limit bigint,
  max_parallel_requests integer,
  model_max_budget jsonb NOT NULL DEFAULT '{}',
  model_rpm_limit jsonb NOT NULL DEFAULT '{}',
  model_tpm_limit jsonb NOT NULL DEFAULT '{}',
  tags text[] NOT NULL DEFAULT '{}',
  aliases jsonb NOT NULL DEFAULT '{}',
  permissions jsonb NOT NULL DEFAULT '{}',
  allowed_routes text[] NOT NULL DEFAULT '{}',
  key_type text NOT NULL DEFAULT 'default',
  metadata jsonb NOT NULL DEFAULT '{}',
  blocked boolean NOT NULL DEFAULT false,
  expires timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);
CREATE INDEX keys_user ON keys (user_id);
CREATE INDEX keys_team ON keys (team_id);
CREATE INDEX keys_organization ON keys (organization_id);
CREATE INDEX keys_created ON keys (created_at, token);
CREATE INDEX keys_budget ON keys (budget_id) WHERE budget_id IS NOT NULL;

CREATE TABLE deleted_keys (
  LIKE keys INCLUDING DEFAULTS,
  deleted_at timestamptz NOT NULL DEFAULT now(),
  deleted_by text
);
CREATE INDEX deleted_keys_token ON deleted_keys (token);

-- A replaced key opens its successor until its grace period ends: one budget, whichever of the two is used.
CREATE TABLE rotated_keys (
  old_token text PRIMARY KEY,
  token text NOT NULL REFERENCES keys ON DELETE CASCADE ON UPDATE CASCADE,
  valid_until timestamptz NOT NULL
);
CREATE INDEX rotated_keys_token ON rotated_keys (token);

CREATE TABLE audit_log (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  action text NOT NULL,
  object_type text NOT NULL,
  object_id text NOT NULL,
  before jsonb,
  after jsonb
);
CREATE INDEX audit_log_at ON audit_log (at);
CREATE INDEX audit_log_object ON audit_log (object_type, object_id);

-- Every change of a payer reaches every instance within a second: each listens on hearth_changes
-- and looks again at what it had looked up. A trigger, so that no write can forget it.
CREATE FUNCTION announce_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  row_json jsonb := to_jsonb(CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END);
  id text := '';
  part text;
BEGIN
  FOREACH part IN ARRAY TG_ARGV LOOP
    id := id || CASE WHEN id = '' THEN '' ELSE '/' END || (row_json ->> part);
  END LOOP;
  PERFORM pg_notify('hearth_changes', TG_TABLE_NAME || ':' || id);
  RETURN NULL;
END $$;

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON keys FOR EACH ROW EXECUTE FUNCTION announce_change('token');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON rotated_keys FOR EACH ROW EXECUTE FUNCTION announce_change('old_token');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON users FOR EACH ROW EXECUTE FUNCTION announce_change('user_id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON teams FOR EACH ROW EXECUTE FUNCTION announce_change('team_id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON team_members FOR EACH ROW EXECUTE FUNCTION announce_change('team_id', 'user_id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON organizations FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON organization_members FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id', 'user_id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON end_users FOR EACH ROW EXECUTE FUNCTION announce_change('user_id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON tags FOR EACH ROW EXECUTE FUNCTION announce_change('name');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON budgets FOR EACH ROW EXECUTE FUNCTION announce_change('budget_id');
