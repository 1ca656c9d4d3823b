-- What alerts about usage read: calls one by one, without prompts, names or addresses, and the hashes that a key had before.

CREATE VIEW report_calls AS
  SELECT started_at, completion_started_at, ended_at, status, api_key, model_group, spend, unpriced
    FROM spend_log WHERE payer IS NULL;

CREATE VIEW report_rotated_keys AS SELECT old_token, token FROM rotated_keys;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearth_reports') THEN
    GRANT SELECT ON report_calls, report_rotated_keys TO hearth_reports;
  END IF;
END $$;
